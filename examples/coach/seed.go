package coach

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// inserter runs statements until the first one fails.
type inserter struct {
	ctx context.Context
	tx  *sql.Tx
	err error
}

func (in *inserter) exec(what any, text string, args ...any) {
	if in.err != nil {
		return
	}
	if _, err := in.tx.ExecContext(in.ctx, text, args...); err != nil {
		in.err = fmt.Errorf("%v: %w", what, err)
	}
}

// null is NULL for the zero value.
func null[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func (y *year) insert(ctx context.Context, tx *sql.Tx) error {
	in := &inserter{ctx: ctx, tx: tx}
	for _, e := range exercises {
		in.exec(e.ID, `INSERT INTO exercises VALUES (?, ?, ?, ?, ?)`, e.ID, e.English, e.Spanish, e.Muscle, e.Equipment)
		for w := range strings.SplitSeq(e.words, ",") {
			in.exec(e.ID, `INSERT INTO exercise_words (word, exercise) VALUES (?, ?)`, strings.Join(words(w), " "), e.ID)
		}
	}
	best := map[string]int64{}
	for n, w := range y.workouts {
		in.workout(int64(n+1), w, best)
	}
	for _, m := range y.missed {
		in.exec(m.day, `INSERT INTO missed VALUES (?, ?, ?)`, m.day, m.title, m.reason)
	}
	for _, s := range spells {
		in.exec(s.first, `INSERT INTO spells VALUES (?, ?, ?, ?)`, s.first, s.last, s.kind, s.note)
	}
	for n, m := range y.measured {
		in.exec(m.day, `INSERT INTO measurements (id, day, kind, value) VALUES (?, ?, ?, ?)`, n+1, m.day, m.kind, m.value)
	}
	for n, g := range goalsBefore {
		in.exec(g, `INSERT INTO goals (id, set_on, kind, exercise, target_g, by_day, note, status) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			n+1, g.setOn, g.kind, null(g.exercise), g.grams, g.by, g.note, g.status)
	}
	return in.err
}

// workout inserts one with its sets and, where it has some, its records. best is the highest estimate so far.
func (in *inserter) workout(id int64, w workoutData, best map[string]int64) {
	deload := 0
	if w.deload {
		deload = 1
	}
	in.exec(w, `INSERT INTO workouts (id, day, title, minutes, note, deload) VALUES (?, ?, ?, ?, ?, ?)`, id, w.day, w.title, null(w.minutes), w.note, deload)
	in.sets(id, w, best)
}

// sets inserts the sets of a workout and the records among them, and returns the exercises that have one.
func (in *inserter) sets(id int64, w workoutData, best map[string]int64) []string {
	top := map[string]setData{}
	var order []string
	for n, s := range w.sets {
		in.exec(w, `INSERT INTO sets VALUES (?, ?, ?, ?, ?, ?, ?)`, id, n+1, s.exercise, s.kind, s.grams, s.reps, null(s.rpe10))
		est, ok := Epley.Estimate(s.grams, s.reps)
		if !ok || s.kind != "work" || est <= best[s.exercise] {
			continue
		}
		if _, again := top[s.exercise]; !again {
			order = append(order, s.exercise)
		}
		best[s.exercise], top[s.exercise] = est, s
	}
	for _, name := range order {
		s := top[name]
		in.exec(w, `INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)`, name, id, w.day, s.grams, s.reps, best[name])
	}
	return order
}

package coach

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
)

// WorkoutsQuery asks for the workouts of a time.
type WorkoutsQuery struct {
	From     string `json:"from,omitempty" jsonschema:"first day, YYYY-MM-DD; the first of this month if absent"`
	To       string `json:"to,omitempty" jsonschema:"last day, YYYY-MM-DD; today if absent"`
	Exercise string `json:"exercise,omitempty" jsonschema:"only workouts with this exercise: its id, or a name in English or Spanish"`
}

// Workouts are those of a time, in order, with what else was written down of it.
type Workouts struct {
	Today    string    `json:"today"`
	From     string    `json:"from"`
	To       string    `json:"to"`
	Exercise *Exercise `json:"exercise,omitempty"`
	Workouts []Summary `json:"workouts"`
	More     int       `json:"more,omitempty"` // left out: the latest ones are listed
	Missed   []Missed  `json:"missed,omitempty"`
	Spells   []Spell   `json:"spells,omitempty"`
}

// Summary is one workout in a line. Top lists the heaviest work set of each exercise, or of the one that was asked for.
type Summary struct {
	ID     string  `json:"workout_id"`
	Day    string  `json:"day"`
	Title  string  `json:"title"`
	Deload bool    `json:"deload,omitempty"`
	Sets   int64   `json:"work_sets"`
	Volume float64 `json:"volume_kg"` // sum of weight × repetitions of the work sets counted here
	Top    []Lift  `json:"top"`
	Note   string  `json:"note,omitempty"`
}

// Lift is one set.
type Lift struct {
	Exercise string  `json:"exercise"`
	Weight   float64 `json:"weight_kg"` // 0: the body's own weight
	Reps     int64   `json:"reps"`
}

// Missed is a planned session that did not happen.
type Missed struct {
	Day    string `json:"day"`
	Title  string `json:"title"`
	Reason string `json:"reason"`
}

// Spell is a longer time in which training was different.
type Spell struct {
	From string `json:"from"`
	To   string `json:"to"`
	Kind string `json:"kind"` // injury, illness, holiday
	Note string `json:"note"`
}

// maxWorkouts is how many workouts one answer lists.
const maxWorkouts = 20

// WorkoutID is how workouts are named.
func WorkoutID(n int64) string { return "W-" + strconv.FormatInt(n, 10) }

// number reads an id with its letter, such as W-151.
func number(id, letter string) (int64, bool) {
	s, ok := strings.CutPrefix(strings.ToUpper(strings.TrimSpace(id)), letter+"-")
	n, err := strconv.ParseInt(s, 10, 64)
	return n, ok && err == nil && n > 0
}

// ListWorkouts lists the workouts of a time.
func (db *DB) ListWorkouts(ctx context.Context, in WorkoutsQuery) (*Workouts, error) {
	p := Period{in.From, in.To}.within(firstOfMonth(db.today), db.today)
	if err := p.valid(""); err != nil {
		return nil, err
	}
	res := &Workouts{Today: db.today, From: p.From, To: p.To}
	if in.Exercise != "" {
		e, err := db.exercise(ctx, db.sql, "exercise", in.Exercise)
		if err != nil {
			return nil, failed("list the workouts", err)
		}
		res.Exercise = &e
	}
	err := db.listWorkouts(ctx, res)
	if err != nil {
		return nil, failed("list the workouts", err)
	}
	return res, nil
}

func (db *DB) listWorkouts(ctx context.Context, res *Workouts) (err error) {
	exercise := ""
	if res.Exercise != nil {
		exercise = res.Exercise.ID
	}
	res.Workouts, err = rows(ctx, db.sql, func(scan func(...any) error, s *Summary) error {
		var id, volume int64
		err := scan(&id, &s.Day, &s.Title, &s.Deload, &s.Note, &s.Sets, &volume)
		s.ID, s.Volume = WorkoutID(id), kilos(volume)
		return err
	}, `SELECT w.id, w.day, w.title, w.deload, w.note, count(*), sum(s.weight_g * s.reps) FROM workouts w
		JOIN sets s ON s.workout = w.id AND s.kind = 'work' AND (?3 = '' OR s.exercise = ?3)
		WHERE w.day BETWEEN ?1 AND ?2 GROUP BY w.id ORDER BY w.day, w.id`, res.From, res.To, exercise)
	if err != nil {
		return err
	}
	res.More = max(len(res.Workouts)-maxWorkouts, 0)
	res.Workouts = res.Workouts[res.More:]
	for i := range res.Workouts {
		w := &res.Workouts[i]
		n, _ := number(w.ID, "W")
		w.Top, err = rows(ctx, db.sql, scanLift, `SELECT exercise, weight_g, reps FROM (SELECT exercise, weight_g, reps, n,
			row_number() OVER (PARTITION BY exercise ORDER BY weight_g DESC, reps DESC, n) AS place FROM sets
			WHERE workout = ?1 AND kind = 'work' AND (?2 = '' OR exercise = ?2)) WHERE place = 1 ORDER BY n`, n, exercise)
		if err != nil {
			return err
		}
	}
	if res.Spells, err = db.spells(ctx, Period{res.From, res.To}); err != nil {
		return err
	}
	if exercise == "" {
		res.Missed, err = rows(ctx, db.sql, func(scan func(...any) error, m *Missed) error { return scan(&m.Day, &m.Title, &m.Reason) },
			`SELECT day, title, reason FROM missed WHERE day BETWEEN ? AND ? ORDER BY day`, res.From, res.To)
	}
	return err
}

func scanLift(scan func(...any) error, l *Lift) error {
	var grams int64
	err := scan(&l.Exercise, &grams, &l.Reps)
	l.Weight = kilos(grams)
	return err
}

func (db *DB) spells(ctx context.Context, p Period) ([]Spell, error) {
	return rows(ctx, db.sql, func(scan func(...any) error, s *Spell) error { return scan(&s.From, &s.To, &s.Kind, &s.Note) },
		`SELECT first, last, kind, note FROM spells WHERE first <= ?2 AND last >= ?1 ORDER BY first`, p.From, p.To)
}

// WorkoutQuery names a workout.
type WorkoutQuery struct {
	ID string `json:"workout_id" jsonschema:"id of a workout, such as W-151"`
}

// Workout is a whole workout.
type Workout struct {
	ID        string    `json:"workout_id"`
	Day       string    `json:"day"`
	Title     string    `json:"title"`
	Minutes   int64     `json:"minutes,omitempty"`
	Deload    bool      `json:"deload,omitempty"`
	Note      string    `json:"note,omitempty"`
	Exercises []Trained `json:"exercises"`
	Records   []Record  `json:"records,omitempty"` // that were set in it
}

// Trained is what was done of one exercise in a workout, in order.
type Trained struct {
	Exercise string `json:"exercise"`
	English  string `json:"name_en"`
	Spanish  string `json:"name_es"`
	Sets     []Set  `json:"sets"`
}

// Set is one set of an exercise.
type Set struct {
	Kind   string   `json:"kind"`      // warmup, work
	Weight float64  `json:"weight_kg"` // 0: the body's own weight
	Reps   int64    `json:"reps"`
	RPE    *float64 `json:"rpe,omitempty"`
}

// Record is a personal record: the highest estimated one-repetition maximum (Epley) up to its day.
type Record struct {
	Exercise string  `json:"exercise"`
	Day      string  `json:"day"`
	Workout  string  `json:"workout_id"`
	Weight   float64 `json:"weight_kg"`
	Reps     int64   `json:"reps"`
	Max      float64 `json:"one_rep_max_kg"`
}

// ReadWorkout reads a workout with all its sets.
func (db *DB) ReadWorkout(ctx context.Context, in WorkoutQuery) (*Workout, error) {
	n, ok := number(in.ID, "W")
	if !ok {
		return nil, invalid("workout_id: %q is no id of a workout. list_workouts gives them, such as W-151", in.ID)
	}
	w, err := db.readWorkout(ctx, n)
	if err != nil {
		return nil, failed("read workout "+in.ID, err)
	}
	return w, nil
}

func (db *DB) readWorkout(ctx context.Context, n int64) (*Workout, error) {
	w := &Workout{ID: WorkoutID(n)}
	row := db.sql.QueryRowContext(ctx, `SELECT day, title, coalesce(minutes, 0), deload, note FROM workouts WHERE id = ?`, n)
	switch err := row.Scan(&w.Day, &w.Title, &w.Minutes, &w.Deload, &w.Note); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, invalid("workout_id: there is no workout %s. list_workouts gives the ids", w.ID)
	case err != nil:
		return nil, err
	}
	type line struct {
		Trained
		Set
	}
	lines, err := rows(ctx, db.sql, func(scan func(...any) error, l *line) error {
		var grams int64
		err := scan(&l.Exercise, &l.English, &l.Spanish, &l.Kind, &grams, &l.Reps, &l.RPE)
		l.Weight = kilos(grams)
		return err
	}, `SELECT e.id, e.name_en, e.name_es, s.kind, s.weight_g, s.reps, s.rpe10 / 10.0 FROM sets s JOIN exercises e ON e.id = s.exercise
		WHERE s.workout = ? ORDER BY s.n`, n)
	if err != nil {
		return nil, err
	}
	w.Exercises = []Trained{}
	for _, l := range lines {
		if last := len(w.Exercises) - 1; last < 0 || w.Exercises[last].Exercise != l.Exercise {
			w.Exercises = append(w.Exercises, l.Trained)
		}
		t := &w.Exercises[len(w.Exercises)-1]
		t.Sets = append(t.Sets, l.Set)
	}
	w.Records, err = rows(ctx, db.sql, scanRecord, `SELECT `+recordColumns+` FROM records WHERE workout = ? ORDER BY exercise`, n)
	return w, err
}

const recordColumns = `exercise, day, workout, weight_g, reps, estimate_g`

func scanRecord(scan func(...any) error, r *Record) error {
	var workout, grams, estimate int64
	err := scan(&r.Exercise, &r.Day, &workout, &grams, &r.Reps, &estimate)
	r.Workout, r.Weight, r.Max = WorkoutID(workout), kilos(grams), kilos(estimate)
	return err
}

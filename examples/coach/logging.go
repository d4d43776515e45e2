package coach

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
)

// WorkoutInput is a workout to be logged.
type WorkoutInput struct {
	Day       string         `json:"day,omitempty" jsonschema:"YYYY-MM-DD; today if absent"`
	Title     string         `json:"title" jsonschema:"a few words, in the athlete's language"`
	Minutes   int64          `json:"minutes,omitempty" jsonschema:"how long it took"`
	Note      string         `json:"note,omitempty" jsonschema:"one line, in the athlete's language"`
	Exercises []TrainedInput `json:"exercises" jsonschema:"in the order in which they were done"`
}

// TrainedInput is what was done of one exercise.
type TrainedInput struct {
	Exercise string     `json:"exercise" jsonschema:"id of the exercise, from search_exercises"`
	Sets     []SetInput `json:"sets" jsonschema:"in order; each set by itself"`
}

// SetInput is one set.
type SetInput struct {
	Weight float64 `json:"weight_kg" jsonschema:"0 for the body's own weight"`
	Reps   int64   `json:"reps"`
	RPE    float64 `json:"rpe,omitempty" jsonschema:"rate of perceived exertion, 1 to 10"`
	Warmup bool    `json:"warmup,omitempty"`
}

// Logged is a workout that was logged: the fact "workout".
type Logged struct {
	ID      string   `json:"workout_id"`
	Day     string   `json:"day"`
	Title   string   `json:"title"`
	Sets    int64    `json:"sets"`
	Volume  float64  `json:"volume_kg"` // sum of weight × repetitions of the work sets
	Records []Record `json:"records"`
}

// LogWorkout logs a workout, in one transaction with the records that were set in it. The same key again changes nothing and
// returns what was logged the first time.
func (db *DB) LogWorkout(ctx context.Context, by Origin, in WorkoutInput) (*Logged, error) {
	if err := by.valid("log the workout"); err != nil {
		return nil, err
	}
	var l *Logged
	err := db.write(ctx, func(tx *sql.Tx) (err error) {
		if l, err = logged(ctx, tx, by.Key); l != nil || err != nil {
			return err
		}
		w, err := db.acceptWorkout(ctx, tx, in)
		if err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, `INSERT INTO workouts (day, title, minutes, note, run, key) VALUES (?, ?, ?, ?, ?, ?)`,
			w.day, w.title, null(w.minutes), w.note, by.Run, by.Key)
		if err != nil {
			return err
		}
		id, err := res.LastInsertId()
		if err != nil {
			return err
		}
		best, err := bestSoFar(ctx, tx)
		if err != nil {
			return err
		}
		ins := &inserter{ctx: ctx, tx: tx}
		ins.sets(id, w, best)
		if ins.err != nil {
			return ins.err
		}
		l, err = logged(ctx, tx, by.Key)
		return err
	})
	if err != nil {
		return nil, failed("log the workout", err)
	}
	return l, nil
}

func bestSoFar(ctx context.Context, q query) (map[string]int64, error) {
	type pair struct {
		exercise string
		grams    int64
	}
	list, err := rows(ctx, q, func(scan func(...any) error, p *pair) error { return scan(&p.exercise, &p.grams) },
		`SELECT exercise, max(estimate_g) FROM records GROUP BY exercise`)
	best := map[string]int64{}
	for _, p := range list {
		best[p.exercise] = p.grams
	}
	return best, err
}

// Bounds of a workout: more is a mistake.
const (
	maxTrained = 20
	maxSets    = 30 // of one exercise
)

// acceptWorkout checks a workout.
func (db *DB) acceptWorkout(ctx context.Context, q query, in WorkoutInput) (workoutData, error) {
	w := workoutData{title: strings.TrimSpace(in.Title), note: in.Note, minutes: in.Minutes}
	var err error
	if w.day, err = db.past(in.Day); err != nil {
		return w, err
	}
	switch {
	case w.title == "" || len(w.title) > maxNote || strings.ContainsAny(w.title, "\r\n"):
		return w, invalid("title: it must be one line of at most %d bytes", maxNote)
	case len(in.Note) > maxNote:
		return w, invalid("note: it has %d bytes, at most %d are allowed", len(in.Note), maxNote)
	case in.Minutes < 0 || in.Minutes > 600:
		return w, invalid("minutes: %d is not between 1 and 600", in.Minutes)
	case len(in.Exercises) == 0 || len(in.Exercises) > maxTrained:
		return w, invalid("exercises: there are %d, a workout has 1 to %d", len(in.Exercises), maxTrained)
	}
	for _, t := range in.Exercises {
		e, err := db.exercise(ctx, q, "exercises.exercise", t.Exercise)
		if err != nil {
			return w, err
		}
		if len(t.Sets) == 0 || len(t.Sets) > maxSets {
			return w, invalid("exercises.sets: %s has %d sets, it must have 1 to %d", e.ID, len(t.Sets), maxSets)
		}
		for _, s := range t.Sets {
			set, err := s.accept(e.ID)
			if err != nil {
				return w, err
			}
			w.sets = append(w.sets, set)
		}
	}
	return w, nil
}

func (s SetInput) accept(exercise string) (setData, error) {
	grams, ok := gramsOf(s.Weight)
	switch {
	case !ok:
		return setData{}, invalid("exercises.sets.weight_kg: %v is not a weight between 0 and %v kg", s.Weight, kilos(maxLoad))
	case s.Reps < 1 || s.Reps > 100:
		return setData{}, invalid("exercises.sets.reps: %d is not between 1 and 100", s.Reps)
	case s.RPE != 0 && !(s.RPE >= 1 && s.RPE <= 10):
		return setData{}, invalid("exercises.sets.rpe: %v is not between 1 and 10", s.RPE)
	}
	set := setData{exercise: exercise, kind: "work", grams: grams, reps: s.Reps, rpe10: int64(math.Round(s.RPE * 10))}
	if s.Warmup {
		set.kind = "warmup"
	}
	return set, nil
}

// logged finds the workout that was logged under a key; nil where nothing was.
func logged(ctx context.Context, q query, key string) (*Logged, error) {
	l := &Logged{}
	var id, volume int64
	row := q.QueryRowContext(ctx, `SELECT id, day, title, (SELECT count(*) FROM sets WHERE workout = w.id),
		(SELECT coalesce(sum(weight_g * reps), 0) FROM sets WHERE workout = w.id AND kind = 'work') FROM workouts w WHERE key = ?`, key)
	switch err := row.Scan(&id, &l.Day, &l.Title, &l.Sets, &volume); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	l.ID, l.Volume = WorkoutID(id), kilos(volume)
	var err error
	l.Records, err = rows(ctx, q, scanRecord, `SELECT `+recordColumns+` FROM records WHERE workout = ? ORDER BY exercise`, id)
	return l, err
}

// FindWorkout returns the workout that was logged under a key; nil where nothing was. It waits for a logging that is under way.
func (db *DB) FindWorkout(ctx context.Context, key string) (l *Logged, err error) {
	err = db.write(ctx, func(tx *sql.Tx) (err error) {
		l, err = logged(ctx, tx, key)
		return err
	})
	if err != nil {
		return nil, failed("look up the workout", err)
	}
	return l, nil
}

package coach

import (
	"context"
	"database/sql"
	"errors"
	"slices"
)

// MaxQuery asks for a one-repetition maximum: of an exercise in a time, or of one set.
type MaxQuery struct {
	Exercise string  `json:"exercise,omitempty" jsonschema:"id or name of an exercise: the best set of the time is looked for"`
	From     string  `json:"from,omitempty" jsonschema:"first day, YYYY-MM-DD; 90 days before the last day if absent"`
	To       string  `json:"to,omitempty" jsonschema:"last day, YYYY-MM-DD; today if absent"`
	Weight   float64 `json:"weight_kg,omitempty" jsonschema:"instead of an exercise: the weight of one set"`
	Reps     int64   `json:"reps,omitempty" jsonschema:"beside weight_kg: its repetitions, 1 to 10"`
	Formula  string  `json:"formula,omitempty" jsonschema:"epley if absent"`
}

// Max is an estimated one-repetition maximum, with the formula and its source. Other is what the other formula makes of the same
// set.
type Max struct {
	Formula
	Max      float64   `json:"one_rep_max_kg"`
	Weight   float64   `json:"weight_kg"`
	Reps     int64     `json:"reps"`
	Exercise *Exercise `json:"exercise,omitempty"`
	Day      string    `json:"day,omitempty"`
	Workout  string    `json:"workout_id,omitempty"`
	Other    *OtherMax `json:"other_formula,omitempty"`
	Record   *Record   `json:"record,omitempty"` // the best of all days up to today
	Note     string    `json:"note"`
}

// OtherMax is the estimate of another formula.
type OtherMax struct {
	Name string  `json:"formula"`
	Max  float64 `json:"one_rep_max_kg"`
}

const estimateNote = "An estimate, not a tested maximum: it holds for sets close to failure."

// OneRepMax estimates a one-repetition maximum from a set, or from the best set of an exercise in a time: the one with the highest
// estimate among its work sets of 1 to MaxReps repetitions, of equal ones the latest.
func (db *DB) OneRepMax(ctx context.Context, in MaxQuery) (*Max, error) {
	f, err := formulaOf(in.Formula)
	if err != nil {
		return nil, err
	}
	switch {
	case in.Exercise == "" && in.Weight == 0:
		return nil, invalid("exercise, weight_kg: both are missing. Name an exercise, or give weight_kg and reps of one set")
	case in.Exercise != "" && (in.Weight != 0 || in.Reps != 0):
		return nil, invalid("exercise, weight_kg: give one or the other, not both")
	case in.Exercise == "":
		return maxOfSet(f, in.Weight, in.Reps)
	}
	m, err := db.maxOf(ctx, f, in)
	if err != nil {
		return nil, failed("estimate the one-repetition maximum", err)
	}
	return m, nil
}

func maxOfSet(f Formula, weight float64, reps int64) (*Max, error) {
	grams, ok := gramsOf(weight)
	if !ok {
		return nil, invalid("weight_kg: %v is not a weight between 0 and %v kg", weight, kilos(maxLoad))
	}
	est, ok := f.Estimate(grams, reps)
	if !ok {
		return nil, invalid("reps: %d is not between 1 and %d. The formulas are not meant for longer sets", reps, MaxReps)
	}
	return &Max{Formula: f, Max: kilos(est), Weight: kilos(grams), Reps: reps, Other: f.other(grams, reps), Note: estimateNote}, nil
}

func (f Formula) other(grams, reps int64) *OtherMax {
	o := Brzycki
	if f.Name == Brzycki.Name {
		o = Epley
	}
	est, ok := o.Estimate(grams, reps)
	if !ok {
		return nil
	}
	return &OtherMax{o.Name, kilos(est)}
}

func (db *DB) maxOf(ctx context.Context, f Formula, in MaxQuery) (*Max, error) {
	e, err := db.exercise(ctx, db.sql, "exercise", in.Exercise)
	if err != nil {
		return nil, err
	}
	p := Period{in.From, in.To}
	p = p.within("", db.today)
	if in.From == "" {
		p.From = addDays(p.To, -90)
	}
	if err := p.valid(""); err != nil {
		return nil, err
	}
	s, err := db.bestSet(ctx, f, e.ID, p)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, invalid("exercise: there is no work set of %s with a weight and 1 to %d repetitions from %s to %s. Ask for a longer time",
			e.ID, MaxReps, p.From, p.To)
	}
	m := &Max{Formula: f, Max: kilos(s.estimate), Weight: kilos(s.grams), Reps: s.reps, Exercise: &e, Day: s.day,
		Workout: WorkoutID(s.workout), Other: f.other(s.grams, s.reps), Note: estimateNote}
	m.Record, err = db.record(ctx, e.ID)
	return m, err
}

// datedSet is a set with the workout that it belongs to.
type datedSet struct {
	workout, grams, reps, estimate int64
	day                            string
}

// bestSet is the set with the highest estimate in a time; nil where there is none that the formula covers.
func (db *DB) bestSet(ctx context.Context, f Formula, exercise string, p Period) (*datedSet, error) {
	list, err := rows(ctx, db.sql, func(scan func(...any) error, s *datedSet) error { return scan(&s.workout, &s.day, &s.grams, &s.reps) },
		`SELECT w.id, w.day, s.weight_g, s.reps FROM sets s JOIN workouts w ON w.id = s.workout
		WHERE s.exercise = ? AND s.kind = 'work' AND w.day BETWEEN ? AND ? ORDER BY w.day, w.id, s.n`, exercise, p.From, p.To)
	if err != nil {
		return nil, err
	}
	var best *datedSet
	for i := range list {
		s := &list[i]
		var ok bool
		if s.estimate, ok = f.Estimate(s.grams, s.reps); ok && (best == nil || s.estimate >= best.estimate) {
			best = s
		}
	}
	return best, nil
}

// record is the personal record of an exercise; nil where there is none.
func (db *DB) record(ctx context.Context, exercise string) (*Record, error) {
	r := &Record{}
	row := db.sql.QueryRowContext(ctx, `SELECT `+recordColumns+` FROM records WHERE exercise = ? AND day <= ?
		ORDER BY estimate_g DESC, day LIMIT 1`, exercise, db.today)
	switch err := scanRecord(row.Scan, r); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return r, nil
}

// Comparison asks what changed in an exercise from one time to another.
type Comparison struct {
	Exercise string `json:"exercise" jsonschema:"id or name of an exercise"`
	Before   Period `json:"before" jsonschema:"the earlier time"`
	After    Period `json:"after" jsonschema:"the later time"`
	Formula  string `json:"formula,omitempty" jsonschema:"epley if absent"`
}

// Compared says what changed. Change and percentages are those of After against Before.
type Compared struct {
	Exercise Exercise `json:"exercise"`
	Formula
	Before Amount  `json:"before"`
	After  Amount  `json:"after"`
	Change Change  `json:"change"`
	Spells []Spell `json:"spells,omitempty"` // that fall in one of the times
	Note   string  `json:"note"`
}

// Amount is what was done of an exercise in a time. Max and what it rests on are absent where no set has an estimate.
type Amount struct {
	Period
	Sessions int64    `json:"sessions"`
	Sets     int64    `json:"work_sets"`
	Reps     int64    `json:"reps"`
	Volume   float64  `json:"volume_kg"` // sum of weight × repetitions of the work sets
	Heaviest float64  `json:"heaviest_kg"`
	Max      *float64 `json:"one_rep_max_kg,omitempty"`
	Weight   float64  `json:"best_set_weight_kg,omitempty"`
	BestReps int64    `json:"best_set_reps,omitempty"`
	Day      string   `json:"best_set_day,omitempty"`
	Workout  string   `json:"best_set_workout_id,omitempty"`

	volume, max int64
}

// Change is a difference; absent where one side has nothing.
type Change struct {
	Max           *float64 `json:"one_rep_max_kg,omitempty"`
	MaxPercent    *float64 `json:"one_rep_max_percent,omitempty"`
	Volume        float64  `json:"volume_kg"`
	VolumePercent *float64 `json:"volume_percent,omitempty"`
}

// ComparePeriods compares what was done of an exercise in two times.
func (db *DB) ComparePeriods(ctx context.Context, in Comparison) (*Compared, error) {
	f, err := formulaOf(in.Formula)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(in.Before.valid("before."), in.After.valid("after.")); err != nil {
		return nil, invalid("%v", err)
	}
	if in.Before.To >= in.After.From {
		return nil, invalid("before, after: the first time ends on %s, the second begins on %s. Give the earlier time as before; they may not overlap",
			in.Before.To, in.After.From)
	}
	c, err := db.compare(ctx, f, in)
	if err != nil {
		return nil, failed("compare the two times", err)
	}
	return c, nil
}

func (db *DB) compare(ctx context.Context, f Formula, in Comparison) (*Compared, error) {
	e, err := db.exercise(ctx, db.sql, "exercise", in.Exercise)
	if err != nil {
		return nil, err
	}
	c := &Compared{Exercise: e, Formula: f, Before: Amount{Period: in.Before}, After: Amount{Period: in.After}, Note: estimateNote}
	for _, a := range []*Amount{&c.Before, &c.After} {
		if err := db.amount(ctx, f, e.ID, a); err != nil {
			return nil, err
		}
		spells, err := db.spells(ctx, a.Period)
		if err != nil {
			return nil, err
		}
		for _, s := range spells {
			if !slices.Contains(c.Spells, s) { // one may fall in both
				c.Spells = append(c.Spells, s)
			}
		}
	}
	c.Change = Change{Volume: kilos(c.After.volume - c.Before.volume), VolumePercent: percent(c.Before.volume, c.After.volume)}
	if c.Before.Max != nil && c.After.Max != nil {
		d := kilos(c.After.max - c.Before.max)
		c.Change.Max, c.Change.MaxPercent = &d, percent(c.Before.max, c.After.max)
	}
	return c, nil
}

func (db *DB) amount(ctx context.Context, f Formula, exercise string, a *Amount) error {
	var heaviest int64
	row := db.sql.QueryRowContext(ctx, `SELECT count(DISTINCT w.id), count(*), coalesce(sum(s.reps), 0), coalesce(sum(s.weight_g * s.reps), 0),
		coalesce(max(s.weight_g), 0) FROM sets s JOIN workouts w ON w.id = s.workout
		WHERE s.exercise = ? AND s.kind = 'work' AND w.day BETWEEN ? AND ?`, exercise, a.From, a.To)
	if err := row.Scan(&a.Sessions, &a.Sets, &a.Reps, &a.volume, &heaviest); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	a.Volume, a.Heaviest = kilos(a.volume), kilos(heaviest)
	best, err := db.bestSet(ctx, f, exercise, a.Period)
	if best == nil || err != nil {
		return err
	}
	m := kilos(best.estimate)
	a.max, a.Max = best.estimate, &m
	a.Weight, a.BestReps, a.Day, a.Workout = kilos(best.grams), best.reps, best.day, WorkoutID(best.workout)
	return nil
}

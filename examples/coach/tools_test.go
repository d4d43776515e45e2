package coach

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

func TestFormulas(t *testing.T) {
	type row struct {
		grams, reps    int64
		epley, brzycki int64 // 0: not covered
	}
	for _, r := range []row{
		{100_000, 1, 100_000, 100_000},
		{100_000, 5, 116_700, 112_500},
		{80_000, 8, 101_300, 99_300},
		{100_000, 10, 133_300, 133_300}, // the two meet at ten repetitions
		{62_500, 3, 68_800, 66_200},
		{100_000, 11, 0, 0},
		{100_000, 0, 0, 0},
		{0, 5, 0, 0},
		{-100, 5, 0, 0},
		{math.MaxInt64, 10, 0, 0},
	} {
		got := row{grams: r.grams, reps: r.reps}
		got.epley, _ = Epley.Estimate(r.grams, r.reps)
		got.brzycki, _ = Brzycki.Estimate(r.grams, r.reps)
		if got != r {
			t.Errorf("got %+v, want %+v", got, r)
		}
	}
}

func TestToolsVerify(t *testing.T) {
	for _, tl := range Tools(open(t)) {
		if _, err := tool.Verify(tl); err != nil {
			t.Error(err)
		}
	}
}

func TestSearchExercises(t *testing.T) {
	db := open(t)
	for query, want := range map[string][]string{
		"bench press":                {"bench_press", "close_grip_bench_press"},
		"Press de Banca":             {"bench_press", "close_grip_bench_press"},
		"banca":                      {"bench_press", "close_grip_bench_press"},
		"squat":                      {"squat", "front_squat"},
		"sentadilla":                 {"squat", "front_squat"},
		"peso muerto":                {"deadlift", "romanian_deadlift"},
		"tríceps":                    {"triceps_pushdown", "close_grip_bench_press"},
		"remo":                       {"barbell_row"},
		"espalda":                    {"barbell_row", "pull_up", "lat_pulldown"},
		"underwater basket weaving!": nil,
	} {
		got, err := db.SearchExercises(t.Context(), ExerciseQuery{query})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range got.Exercises {
			ids = append(ids, e.ID)
		}
		if !cmp.Equal(ids, want) {
			t.Errorf("%q: found %v, want %v", query, ids, want)
		}
		if want == nil && (got.Note == "" || len(got.All) != len(exercises)) {
			t.Errorf("%q: %+v", query, got)
		}
	}
	_, err := db.SearchExercises(t.Context(), ExerciseQuery{" ?! "})
	wantClass(t, err, loop.ClassInvalid, "query")
}

func TestListWorkouts(t *testing.T) {
	db := open(t)
	got, err := db.ListWorkouts(t.Context(), WorkoutsQuery{Exercise: "Press de banca", From: "2026-11-02", To: "2026-11-09"})
	if err != nil {
		t.Fatal(err)
	}
	bench := exercises[0].Exercise
	want := &Workouts{Today: lastDay, From: "2026-11-02", To: "2026-11-09", Exercise: &bench, Workouts: []Summary{
		{ID: "W-161", Day: "2026-11-02", Title: "Torso A: press de banca y remo", Sets: 4, Volume: 1050, Top: []Lift{{"bench_press", 87.5, 3}}},
		{ID: "W-165", Day: "2026-11-09", Title: "Torso A: press de banca y remo", Deload: true, Sets: 3, Volume: 937.5,
			Top: []Lift{{"bench_press", 62.5, 5}}, Note: "Deload."},
	}, Spells: []Spell{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	all, err := db.ListWorkouts(t.Context(), WorkoutsQuery{From: firstDay})
	if err != nil || len(all.Workouts) != maxWorkouts || all.More != 175-maxWorkouts || len(all.Spells) != len(spells) || len(all.Missed) != 33 {
		t.Errorf("the year: %d workouts, %d more, %d spells, %d missed, %v", len(all.Workouts), all.More, len(all.Spells), len(all.Missed), err)
	}
	if last := all.Workouts[maxWorkouts-1]; last.ID != "W-175" {
		t.Errorf("the last one is %+v", last)
	}
	for _, c := range []struct {
		in   WorkoutsQuery
		want string
	}{
		{WorkoutsQuery{From: "1/2/2026"}, "from:"}, {WorkoutsQuery{From: "2026-12-01"}, "from:"},
		{WorkoutsQuery{To: "2026-02-30"}, "to:"}, {WorkoutsQuery{Exercise: "chess"}, "exercise:"},
	} {
		_, err := db.ListWorkouts(t.Context(), c.in)
		wantClass(t, err, loop.ClassInvalid, c.want)
	}
}

func TestReadWorkout(t *testing.T) {
	db := open(t)
	got, err := db.ReadWorkout(t.Context(), WorkoutQuery{"w-172"})
	if err != nil {
		t.Fatal(err)
	}
	rpe := func(v float64) *float64 { return &v }
	want := Trained{"bench_press", "Bench press", "Press de banca", []Set{
		{"warmup", 40, 8, nil}, {"warmup", 60, 4, nil}, {"work", 80, 6, rpe(8)}, {"work", 80, 6, rpe(8)}, {"work", 80, 6, rpe(8)}, {"work", 80, 8, rpe(9)}}}
	trained := got.Exercises[0]
	for i := range trained.Sets[2:] {
		trained.Sets[i+2].RPE = want.Sets[i+2].RPE // drawn by the dice
	}
	if diff := cmp.Diff(want, trained); diff != "" {
		t.Error(diff)
	}
	record := Record{"bench_press", "2026-11-23", "W-172", 80, 8, 101.3}
	if got.Day != "2026-11-23" || len(got.Exercises) != 5 || len(got.Records) == 0 || !cmp.Equal(record, got.Records[1]) {
		t.Errorf("%+v", got)
	}
	for _, id := range []string{"", "172", "W-0", "W-9999", "G-1", "W-1x"} {
		_, err := db.ReadWorkout(t.Context(), WorkoutQuery{id})
		wantClass(t, err, loop.ClassInvalid, "workout_id")
	}
}

func TestOneRepMax(t *testing.T) {
	db := open(t)
	got, err := db.OneRepMax(t.Context(), MaxQuery{Exercise: "bench_press", From: "2026-10-01", To: "2026-10-31"})
	if err != nil {
		t.Fatal(err)
	}
	bench := exercises[0].Exercise
	want := &Max{Formula: Epley, Max: 96, Weight: 80, Reps: 6, Exercise: &bench, Day: "2026-10-26", Workout: "W-157",
		Other: &OtherMax{"Brzycki", 92.9}, Record: &Record{"bench_press", "2026-11-23", "W-172", 80, 8, 101.3}, Note: estimateNote}
	ignore := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".estimate" }, cmp.Ignore())
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Error(diff)
	}
	b, _ := json.Marshal(got)
	for _, part := range []string{`"formula":"Epley"`, `"source":"Boyd Epley, Poundage Chart`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("the result does not say %s: %s", part, b)
		}
	}
	set, err := db.OneRepMax(t.Context(), MaxQuery{Weight: 100, Reps: 5, Formula: "brzycki"})
	if err != nil || set.Max != 112.5 || set.Name != "Brzycki" || set.Other.Max != 116.7 {
		t.Errorf("%+v, %v", set, err)
	}
	for _, c := range []struct {
		in   MaxQuery
		want string
	}{
		{MaxQuery{}, "both are missing"}, {MaxQuery{Exercise: "squat", Weight: 100}, "not both"}, {MaxQuery{Weight: 100}, "reps:"},
		{MaxQuery{Weight: 100, Reps: 11}, "reps:"}, {MaxQuery{Weight: -1, Reps: 2}, "weight_kg:"}, {MaxQuery{Weight: 501, Reps: 2}, "weight_kg:"},
		{MaxQuery{Weight: 100, Reps: 2, Formula: "astrology"}, "formula:"}, {MaxQuery{Exercise: "plank"}, "longer time"}, {MaxQuery{Exercise: "chess"}, "exercise:"},
		{MaxQuery{Exercise: "bench_press", From: "2026-05-12", To: "2026-05-30"}, "longer time"}, {MaxQuery{Exercise: "squat", From: "x"}, "from:"},
	} {
		_, err := db.OneRepMax(t.Context(), c.in)
		wantClass(t, err, loop.ClassInvalid, c.want)
	}
}

func TestComparePeriods(t *testing.T) {
	db := open(t)
	in := Comparison{Exercise: "bench_press", Before: Period{"2026-10-01", "2026-10-31"}, After: Period{"2026-11-01", "2026-11-30"}}
	got, err := db.ComparePeriods(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	f := func(v float64) *float64 { return &v }
	want := &Compared{Exercise: exercises[0].Exercise, Formula: Epley,
		Before: Amount{Period: in.Before, Sessions: 4, Sets: 16, Reps: 98, Volume: 7232.5, Heaviest: 80, Max: f(96), Weight: 80, BestReps: 6, Day: "2026-10-26", Workout: "W-157"},
		After:  Amount{Period: in.After, Sessions: 4, Sets: 15, Reps: 87, Volume: 6617.5, Heaviest: 87.5, Max: f(101.3), Weight: 80, BestReps: 8, Day: "2026-11-23", Workout: "W-172"},
		Change: Change{Max: f(5.3), MaxPercent: f(5.5), Volume: -615, VolumePercent: f(-8.5)}, Note: estimateNote}
	private := cmp.FilterPath(func(p cmp.Path) bool {
		return strings.ToLower(p.Last().String()) == p.Last().String() && p.Last().String()[0] == '.'
	}, cmp.Ignore())
	if diff := cmp.Diff(want, got, private); diff != "" {
		t.Error(diff)
	}
	// A time without the exercise has no estimate, and nothing is divided by nothing.
	in.Before, in.After = Period{"2026-04-01", "2026-05-10"}, Period{"2026-05-11", "2026-05-30"}
	if got, err = db.ComparePeriods(t.Context(), in); err != nil || got.Change.Max != nil || got.After.Max != nil || len(got.Spells) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	in.Before, in.After = in.After, in.Before
	_, err = db.ComparePeriods(t.Context(), in)
	wantClass(t, err, loop.ClassInvalid, "before, after:")
	in.Before.From = "May"
	_, err = db.ComparePeriods(t.Context(), in)
	wantClass(t, err, loop.ClassInvalid, "before.from:")
}

func TestMeasurements(t *testing.T) {
	db := open(t)
	by := Origin{"r1", "k1"}
	in := MeasurementInput{Kind: "body_weight", Value: 81.6}
	m, err := db.WriteMeasurement(t.Context(), by, in)
	if err != nil {
		t.Fatal(err)
	}
	again, err := db.WriteMeasurement(t.Context(), by, in)
	if err != nil || !cmp.Equal(m, again) || count(t, db, `SELECT count(*) FROM measurements WHERE key = 'k1'`) != 1 {
		t.Errorf("the same key again: %+v, %v; first %+v", again, err, m)
	}
	got, err := db.ReadMeasurements(t.Context(), MeasurementsQuery{Kind: "body_weight", From: "2026-11-23"})
	if err != nil {
		t.Fatal(err)
	}
	f := func(v float64) *float64 { return &v }
	want := &Measurements{Today: lastDay, Kind: "body_weight", Unit: "kg", From: "2026-11-23", To: lastDay,
		Values:    []Measured{{Day: "2026-11-23", Value: 81.5}, {Day: "2026-11-26", Value: 81.5}, {Day: lastDay, Value: 81.6}},
		FirstMean: f(81.5), LastMean: f(81.6), Change: f(0.1)}
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".milli" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		in   MeasurementInput
		want string
	}{
		{MeasurementInput{"mood", 5, ""}, "kind:"}, {MeasurementInput{"waist", 20, ""}, "value:"}, {MeasurementInput{"body_weight", -80, ""}, "value:"},
		{MeasurementInput{"body_weight", math.NaN(), ""}, "value:"}, {MeasurementInput{"body_weight", math.Inf(1), ""}, "value:"},
		{MeasurementInput{"body_weight", 80, "2026-12-01"}, "after today"}, {MeasurementInput{"body_weight", 80, "yesterday"}, "day:"},
	} {
		_, err := db.WriteMeasurement(t.Context(), Origin{"r1", "k2"}, c.in)
		wantClass(t, err, loop.ClassInvalid, c.want)
	}
}

package coach

import (
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

func benchGoal() GoalInput {
	return GoalInput{Kind: "one_rep_max", Exercise: "Press de banca", Target: 105, By: "2027-03-31"}
}

func TestSaveGoal(t *testing.T) {
	db := open(t)
	g, err := db.SaveGoal(t.Context(), Origin{"r1", "k1"}, benchGoal())
	if err != nil {
		t.Fatal(err)
	}
	want := &Goal{ID: "G-6", Kind: "one_rep_max", Exercise: "bench_press", Target: 105, By: "2027-03-31", Status: "open", SetOn: lastDay, Replaces: "G-4"}
	if diff := cmp.Diff(want, g); diff != "" {
		t.Error(diff)
	}
	next, err := db.SaveGoal(t.Context(), Origin{"r2", "k2"}, benchGoal())
	if err != nil || next.ID != "G-7" || next.Replaces != "G-6" {
		t.Errorf("another key: %+v, %v", next, err)
	}
	// The first key again: what it did stays what it was, also with another goal in its place.
	again, err := db.SaveGoal(t.Context(), Origin{"r1", "k1"}, benchGoal())
	if diff := cmp.Diff(want, again); diff != "" || err != nil {
		t.Errorf("%s, %v", diff, err)
	}
	if n := count(t, db, `SELECT count(*) FROM goals WHERE exercise = 'bench_press' AND status = 'open'`); n != 1 {
		t.Errorf("%d open goals for the bench press", n)
	}
	body, err := db.SaveGoal(t.Context(), Origin{"r3", "k3"}, GoalInput{Kind: "body_weight", Target: 80, By: "2027-06-30"})
	if err != nil || body.ID != "G-8" || body.Replaces != "" || body.Exercise != "" {
		t.Errorf("%+v, %v", body, err)
	}
	open, err := db.ListGoals(t.Context(), GoalsQuery{"open"})
	if err != nil || len(open.Goals) != 3 || !cmp.Equal(open.Goals[0], *body) {
		t.Errorf("open goals: %+v, %v", open, err)
	}
}

func TestSaveGoalRefuses(t *testing.T) {
	db := open(t)
	for _, c := range []struct {
		change func(*GoalInput)
		want   string
	}{
		{func(g *GoalInput) { g.By = lastDay }, "not after today"},
		{func(g *GoalInput) { g.By = "2030-01-01" }, "two years"},
		{func(g *GoalInput) { g.By = "soon" }, "by:"},
		{func(g *GoalInput) { g.Target = 0 }, "target_kg:"},
		{func(g *GoalInput) { g.Target = math.NaN() }, "target_kg:"},
		{func(g *GoalInput) { g.Exercise = "chess" }, "exercise:"},
		{func(g *GoalInput) { g.Kind = "body_weight" }, "exercise:"},
		{func(g *GoalInput) { g.Kind, g.Exercise, g.Target = "body_weight", "", 20 }, "target_kg:"},
		{func(g *GoalInput) { g.Kind = "fame" }, "kind:"},
		{func(g *GoalInput) { g.Note = strings.Repeat("x", maxNote+1) }, "note:"},
	} {
		g := benchGoal()
		c.change(&g)
		_, err := db.SaveGoal(t.Context(), Origin{"r1", "k1"}, g)
		wantClass(t, err, loop.ClassInvalid, c.want)
	}
	_, err := db.SaveGoal(t.Context(), Origin{}, benchGoal())
	wantClass(t, err, loop.ClassFatal, "idempotency key")
	if n := count(t, db, `SELECT count(*) FROM goals WHERE key IS NOT NULL OR status = 'replaced'`); n != 0 {
		t.Errorf("%d goals changed", n)
	}
}

func todaysWorkout() WorkoutInput {
	return WorkoutInput{Title: "Press de banca y remo", Minutes: 45, Exercises: []TrainedInput{
		{"bench press", []SetInput{{Weight: 40, Reps: 8, Warmup: true}, {Weight: 82.5, Reps: 5, RPE: 8.5}, {Weight: 85, Reps: 6, RPE: 9.5}}},
		{"remo", []SetInput{{Weight: 70, Reps: 8}}},
		{"pull_up", []SetInput{{Reps: 8}}},
	}}
}

func TestLogWorkout(t *testing.T) {
	db := open(t)
	l, err := db.LogWorkout(t.Context(), Origin{"r1", "k1"}, todaysWorkout())
	if err != nil {
		t.Fatal(err)
	}
	want := &Logged{ID: "W-176", Day: lastDay, Title: "Press de banca y remo", Sets: 5, Volume: 1482.5,
		Records: []Record{{"bench_press", lastDay, "W-176", 85, 6, 102}}}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Error(diff)
	}
	other := todaysWorkout()
	other.Title = "Another"
	again, err := db.LogWorkout(t.Context(), Origin{"r1", "k1"}, other)
	if diff := cmp.Diff(want, again); diff != "" || err != nil {
		t.Errorf("the same key again: %s, %v", diff, err)
	}
	if n := count(t, db, `SELECT count(*) FROM workouts WHERE key IS NOT NULL`); n != 1 {
		t.Errorf("%d workouts were logged", n)
	}
	w, err := db.ReadWorkout(t.Context(), WorkoutQuery{"W-176"})
	if err != nil || w.Minutes != 45 || len(w.Exercises) != 3 || w.Exercises[1].Exercise != "barbell_row" || *w.Exercises[0].Sets[1].RPE != 8.5 {
		t.Errorf("%+v, %v", w, err)
	}
}

// Attempts with one key at the same time write once.
func TestWritesAtOnce(t *testing.T) {
	db := open(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if l, err := db.LogWorkout(t.Context(), Origin{"r1", "k1"}, todaysWorkout()); err != nil || l.ID != "W-176" {
				t.Errorf("%+v, %v", l, err)
			}
		})
		wg.Go(func() {
			if g, err := db.SaveGoal(t.Context(), Origin{"r1", "k1"}, benchGoal()); err != nil || g.ID != "G-6" {
				t.Errorf("%+v, %v", g, err)
			}
		})
	}
	wg.Wait()
}

func TestLogWorkoutRefuses(t *testing.T) {
	db := open(t)
	for _, c := range []struct {
		change func(*WorkoutInput)
		want   string
	}{
		{func(w *WorkoutInput) { w.Day = "2026-12-01" }, "after today"},
		{func(w *WorkoutInput) { w.Title = " " }, "title:"},
		{func(w *WorkoutInput) { w.Title = "a\nb" }, "title:"},
		{func(w *WorkoutInput) { w.Minutes = -5 }, "minutes:"},
		{func(w *WorkoutInput) { w.Note = strings.Repeat("x", maxNote+1) }, "note:"},
		{func(w *WorkoutInput) { w.Exercises = nil }, "exercises:"},
		{func(w *WorkoutInput) { w.Exercises[2].Exercise = "chess" }, "exercises.exercise:"},
		{func(w *WorkoutInput) { w.Exercises[2].Sets = nil }, "exercises.sets:"},
		{func(w *WorkoutInput) { w.Exercises[2].Sets[0].Reps = 0 }, "reps:"},
		{func(w *WorkoutInput) { w.Exercises[2].Sets[0].Weight = 900 }, "weight_kg:"},
		{func(w *WorkoutInput) { w.Exercises[2].Sets[0].Weight = math.Inf(1) }, "weight_kg:"},
		{func(w *WorkoutInput) { w.Exercises[2].Sets[0].RPE = 11 }, "rpe:"},
	} {
		w := todaysWorkout()
		c.change(&w)
		_, err := db.LogWorkout(t.Context(), Origin{"r1", "k1"}, w)
		wantClass(t, err, loop.ClassInvalid, c.want)
	}
	_, err := db.LogWorkout(t.Context(), Origin{Run: "r1"}, todaysWorkout())
	wantClass(t, err, loop.ClassFatal, "idempotency key")
	if n := count(t, db, `SELECT count(*) FROM workouts WHERE key IS NOT NULL`); n != 0 {
		t.Errorf("%d workouts were logged", n)
	}
}

// Each checker answers with what Run returned, facts included.
func TestCheckers(t *testing.T) {
	db := open(t)
	for name, in := range map[string]any{"save_goal": benchGoal(), "log_workout": todaysWorkout()} {
		var write tool.Tool
		for _, tl := range Tools(db) {
			if tl.Def().Name == name {
				write = tl
			}
		}
		args, _ := json.Marshal(in)
		call := tool.Call{Run: "r1", ID: "c1", Name: name, Key: "key of " + name, Args: args}
		checker := write.(tool.Checker)
		if happened, _, err := checker.Check(t.Context(), call); happened != loop.HappenedNo || err != nil {
			t.Errorf("%s before: %s, %v", name, happened, err)
		}
		ran, err := write.Run(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		happened, res, err := checker.Check(t.Context(), call)
		if happened != loop.HappenedYes || err != nil || !cmp.Equal(res, ran) || len(res.Facts) != 1 {
			t.Errorf("%s after: %s, %+v, %v; Run gave %+v", name, happened, res, err, ran)
		}
	}
	db.Close()
	for _, tl := range Tools(db) {
		if checker, ok := tl.(tool.Checker); ok && tl.Def().Check {
			if happened, _, err := checker.Check(t.Context(), tool.Call{Run: "r1", Key: "k", Args: json.RawMessage("{}")}); happened != loop.HappenedUnknown || err == nil {
				t.Errorf("%s without a database: %s, %v", tl.Def().Name, happened, err)
			}
		}
	}
}

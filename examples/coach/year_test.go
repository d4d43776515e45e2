package coach

import (
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
)

// The data is the same on every machine and with every version of Go: scripts and documents quote it.
func TestYearIsAlwaysTheSame(t *testing.T) {
	h := sha256.New()
	y := makeYear(Seed)
	fmt.Fprintf(h, "%+v\n", *y)
	for _, w := range y.workouts {
		fmt.Fprintf(h, "%s %q %q %d %v %v\n", w.day, w.title, w.note, w.minutes, w.deload, w.sets)
	}
	const want = "b29e51c95d2c8a86"
	if got := fmt.Sprintf("%x", h.Sum(nil))[:16]; got != want {
		t.Errorf("the year has the digest %s, want %s. If the change is meant, look at the scripts' numbers too", got, want)
	}
	if reflect.DeepEqual(makeYear(Seed+1), y) {
		t.Error("another seed makes the same year")
	}
}

// best is the highest estimate of an exercise from one day to another.
func (y *year) best(exercise, from, to string) int64 {
	var best int64
	for _, w := range y.workouts {
		for _, s := range w.sets {
			if est, ok := Epley.Estimate(s.grams, s.reps); ok && s.exercise == exercise && s.kind == "work" && from <= w.day && w.day <= to {
				best = max(best, est)
			}
		}
	}
	return best
}

func TestYearIsPlausible(t *testing.T) {
	y := makeYear(Seed)
	if n := len(y.workouts); n < 160 || n > 200 {
		t.Errorf("%d workouts", n)
	}
	if n := len(y.missed); n < 20 || n > 45 {
		t.Errorf("%d sessions were missed", n)
	}
	days := map[string]bool{}
	last := ""
	for _, w := range y.workouts {
		if days[w.day] || w.day < firstDay || w.day > lastDay || w.day < last {
			t.Errorf("%v is twice, out of order or out of the year", w)
		}
		days[w.day], last = true, w.day
		if w.minutes < 25 || w.minutes > 100 || len(w.sets) < 4 {
			t.Errorf("%v takes %d minutes", w, w.minutes)
		}
		for _, s := range w.sets {
			if s.grams%500 != 0 || s.grams < 0 || s.reps < 1 || s.reps > 20 || s.rpe10 > 100 {
				t.Errorf("%v: %+v", w, s)
			}
			if !slices.ContainsFunc(exercises, func(e struct {
				Exercise
				words string
			}) bool {
				return e.ID == s.exercise
			}) {
				t.Errorf("%v: there is no exercise %q", w, s.exercise)
			}
		}
	}
	for _, m := range y.missed {
		if days[m.day] {
			t.Errorf("%s was trained and missed", m.day)
		}
	}
}

// What the program promises of the year (year.go).
func TestYearHasItsStory(t *testing.T) {
	y := makeYear(Seed)
	for _, s := range spells {
		for _, w := range y.workouts {
			if s.away && s.first <= w.day && w.day <= s.last {
				t.Errorf("%v in a time away (%s)", w, s.note)
			}
		}
	}
	if n := y.best("bench_press", "2026-05-11", "2026-05-31"); n != 0 {
		t.Errorf("pressed %d g in the first weeks of the injury", n)
	}
	spring, july, autumn := y.best("bench_press", "2026-04-01", "2026-05-10"), y.best("bench_press", "2026-06-01", "2026-07-15"), y.best("bench_press", "2026-09-01", "2026-10-15")
	october, november := y.best("bench_press", "2026-10-01", "2026-10-31"), y.best("bench_press", "2026-11-01", "2026-11-30")
	if july >= spring*95/100 || autumn < spring || october > autumn+1000 || november < october+2000 || november > october*107/100 {
		t.Errorf("bench press: spring %d, after the injury %d, autumn %d, plateau %d, November %d", spring, july, autumn, october, november)
	}
	for _, lift := range []string{"squat", "deadlift", "overhead_press", "barbell_row"} {
		if a, b := y.best(lift, firstDay, "2026-01-31"), y.best(lift, "2026-10-01", lastDay); b < a*107/100 || b > a*135/100 {
			t.Errorf("%s goes from %d to %d in the year", lift, a, b)
		}
	}
	var light, heavy, deloads int64
	for _, w := range y.workouts {
		for _, s := range w.sets {
			if s.exercise == "squat" && s.kind == "work" && w.deload {
				light, deloads = max(light, s.grams), deloads+1
			} else if s.exercise == "squat" && s.kind == "work" {
				heavy = max(heavy, s.grams)
			}
		}
	}
	if deloads < 20 || light > heavy*75/100 {
		t.Errorf("%d deload sets of at most %d g; the heaviest set is %d g", deloads, light, heavy)
	}
}

func TestBodyDrifts(t *testing.T) {
	y := makeYear(Seed)
	at := func(kind, from, to string) (mean float64, n int) {
		for _, m := range y.measured {
			if m.kind == kind && from <= m.day && m.day <= to {
				mean += float64(m.value)
				n++
			}
		}
		return mean / float64(n), n
	}
	december, n := at("body_weight", firstDay, "2025-12-31")
	april, _ := at("body_weight", "2026-04-01", "2026-04-30")
	august, _ := at("body_weight", "2026-08-01", "2026-08-31")
	november, _ := at("body_weight", "2026-11-01", lastDay)
	if n < 6 || !(december < april && august < april-1500 && august < november && november < april) {
		t.Errorf("%d values; means %v, %v, %v, %v", n, december, april, august, november)
	}
	var before int64
	for _, m := range y.measured {
		if m.kind == "body_weight" {
			if before != 0 && math.Abs(float64(m.value-before)) > 1200 {
				t.Errorf("%s: from %d to %d", m.day, before, m.value)
			}
			before = m.value
		}
	}
	if _, n := at("waist", firstDay, lastDay); n != 12 {
		t.Errorf("waist was measured %d times, want once a month", n)
	}
}

// The goals of before the coach agree with what was trained and measured.
func TestGoalsBeforeAreTrue(t *testing.T) {
	y := makeYear(Seed)
	for _, g := range goalsBefore {
		reached := false
		if g.kind == "one_rep_max" {
			reached = y.best(g.exercise, g.setOn, min(g.by, lastDay)) >= g.grams
		} else {
			reached = slices.ContainsFunc(y.measured, func(m measuredData) bool {
				return m.kind == "body_weight" && g.setOn <= m.day && m.day <= g.by && m.value <= g.grams
			})
		}
		want := map[string]bool{"reached": true, "missed": false, "open": false}[g.status]
		if reached != want || g.status == "open" && g.by <= lastDay || g.status == "missed" && g.by >= lastDay {
			t.Errorf("%+v: reached is %v", g, reached)
		}
	}
}

// Records in the database are the rising maxima of the estimates.
func TestRecordsAreMaxima(t *testing.T) {
	db := open(t)
	for _, e := range exercises {
		best, err := db.bestSet(t.Context(), Epley, e.ID, Period{firstDay, lastDay})
		if err != nil {
			t.Fatal(err)
		}
		r, err := db.record(t.Context(), e.ID)
		switch {
		case err != nil:
			t.Fatal(err)
		case (best == nil) != (r == nil):
			t.Errorf("%s: best %v, record %v", e.ID, best, r)
		case best != nil && kilos(best.estimate) != r.Max:
			t.Errorf("%s: best %+v, record %+v", e.ID, best, r)
		}
	}
	if n := count(t, db, `SELECT count(*) FROM records a JOIN records b ON a.exercise = b.exercise AND a.day < b.day AND a.estimate_g >= b.estimate_g`); n != 0 {
		t.Errorf("%d records are not higher than an earlier one", n)
	}
}

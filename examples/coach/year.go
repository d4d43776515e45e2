package coach

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The year of a new database is made by this program, not written down. It is the same on every machine: all arithmetic is in
// whole numbers, and each day draws from a generator of its own, so that a change of one week moves no other.
//
// What it makes, from Monday 2025-12-01 to Monday 2026-11-30:
//
//   - Four sessions planned each week: Monday upper body with bench press, Wednesday squat, Friday overhead press, Saturday
//     deadlift. Loads come from the athlete's strength of the week (plan.go: lifts), a curve through points with a slow rise, a
//     plateau of the bench press from September to October, and a breakthrough in November.
//   - Blocks of five weeks: sets of 8, 6, 5 and 3 at rising loads, then a deload week with fewer sets at light loads. The last
//     set of the main lift goes on for as many good repetitions as there are; estimates of the maximum rest on it.
//   - Missed sessions: flu in February, Christmas, two weeks of holiday in August, and now and then a day (Saturdays more often).
//   - A shoulder injury from 2026-05-11 to 2026-06-21: no pressing for three weeks, then light and back up.
//   - Body weight on Mondays and Thursdays with daily noise around a slow drift (up in winter, down in summer), waist and body
//     fat on the first Monday of a month.

// Seed of the example's data.
const Seed = 20261130

// First and last day of the data.
const (
	firstDay = "2025-12-01" // a Monday
	lastDay  = "2026-11-30"
	weeks    = 52
)

// year is the content of a new database.
type year struct {
	workouts []workoutData
	missed   []missedData
	measured []measuredData
}

type workoutData struct {
	day, title, note string
	minutes          int64
	deload           bool
	sets             []setData
}

type setData struct {
	exercise, kind string
	grams, reps    int64
	rpe10          int64
}

type missedData struct{ day, title, reason string }

type measuredData struct {
	day, kind string
	value     int64
}

// dice of one day: PCG (O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random Number
// Generation", 2014) as math/rand/v2 fixes it, reduced here, because how rand.Rand reduces is not promised.
type dice struct{ pcg *rand.PCG }

func diceOf(seed, n uint64) dice { return dice{rand.NewPCG(seed, n)} }

// below is a number from 0 to n-1.
func (d dice) below(n int64) int64 { return int64(d.pcg.Uint64() >> 1 % uint64(n)) }

// around is a number from -n to n; small ones are more likely.
func (d dice) around(n int64) int64 { return (d.below(2*n+1) + d.below(2*n+1) - 2*n) / 2 }

func pick[T any](d dice, list []T) T { return list[d.below(int64(len(list)))] }

// makeYear makes the data of a seed.
func makeYear(seed uint64) *year {
	y := &year{}
	for week := range int64(weeks) {
		for slot, s := range weekPlan {
			n := week*7 + s.weekday
			y.session(diceOf(seed, uint64(n)), week, addDays(firstDay, int(n)), slot)
		}
	}
	for n := int64(0); n <= weeks*7; n++ {
		y.measure(diceOf(seed, uint64(1000+n)), n, addDays(firstDay, int(n)))
	}
	return y
}

// session is one planned session: done, or missed.
func (y *year) session(d dice, week int64, day string, slot int) {
	plan := weekPlan[slot]
	for _, s := range spells {
		if s.away && s.first <= day && day <= s.last {
			y.missed = append(y.missed, missedData{day, plan.title, s.reason})
			return
		}
	}
	if d.below(100) < plan.missed {
		y.missed = append(y.missed, missedData{day, plan.title, pick(d, missReasons)})
		return
	}
	w := workoutData{day: day, title: plan.title, minutes: 62 + d.around(12), deload: week%5 == 4}
	injured := spells[injury].first <= day && day <= spells[injury].last
	switch {
	case w.deload:
		w.minutes -= 18
		w.note = "Deload."
	case injured && plan.presses:
		w.note = "Left shoulder: no pressing overhead, nothing that hurts."
	case d.below(9) == 0:
		w.note = pick(d, sessionNotes)
	}
	for _, name := range plan.main {
		w.sets = append(w.sets, mainSets(d, lifts[name], name, week, w.deload)...)
	}
	for _, name := range plan.extra {
		w.sets = append(w.sets, extraSets(d, extras[name], name, week, w.deload, injured)...)
	}
	if len(w.sets) > 0 {
		y.workouts = append(y.workouts, w)
	}
}

// mainSets of a lift whose strength follows a curve: two to warm up, then the scheme of the week.
func mainSets(d dice, curve []point, name string, week int64, deload bool) []setData {
	strength := at(curve, week)
	if strength == 0 {
		return nil
	}
	s := schemes[week%5]
	load := roundTo(strength*s.percent/100, 2500)
	sets := []setData{
		{name, "warmup", roundTo(load*50/100, 2500), 8, 0},
		{name, "warmup", roundTo(load*75/100, 2500), 4, 0},
	}
	for range s.sets - 1 {
		sets = append(sets, setData{name, "work", load, s.reps, s.rpe10 + 5*d.around(1)})
	}
	last := setData{name, "work", load, s.reps, s.rpe10 + 5}
	if !deload { // as many as there are: Epley's formula the other way round, now and then one left in reserve
		last.reps = max(s.reps, min(30*(strength-load)/load-d.below(3)/2, MaxReps))
		last.rpe10 = 90 + 5*d.below(2)
	}
	return append(sets, last)
}

// extraSets of an exercise that goes from one load to another over the year.
func extraSets(d dice, e extra, name string, week int64, deload, injured bool) []setData {
	if injured && e.presses {
		return nil
	}
	load := e.from + (e.to-e.from)*week/(weeks-1)
	sets, unit := int64(3), int64(2000)
	if deload {
		load, sets = load*70/100, 2
	}
	if load >= 40_000 {
		unit = 2500
	}
	var list []setData
	for n := range sets {
		list = append(list, setData{name, "work", roundTo(load, unit), max(e.reps+d.around(1)-n/2, 1), 75 + 5*d.below(3)})
	}
	return list
}

// measure is what is measured on the n-th day.
func (y *year) measure(d dice, n int64, day string) {
	week := n / 7
	switch n % 7 {
	case 0, 3:
		if d.below(12) > 0 || day == lastDay {
			y.measured = append(y.measured, measuredData{day, "body_weight", roundTo(at(bodyWeight, week)+100*d.around(5), 100)})
		}
	}
	if n%7 == 0 && strings.Compare(day[8:], "07") <= 0 {
		y.measured = append(y.measured,
			measuredData{day, "waist", roundTo(at(waist, week)+100*d.around(4), 500)},
			measuredData{day, "body_fat", roundTo(at(bodyFat, week)+100*d.around(3), 100)})
	}
}

// point of a curve: a value that holds in a week. Between points the curve is straight; 0 is a gap.
type point struct{ week, value int64 }

// at reads a curve. A week before a gap's end has no value.
func at(curve []point, week int64) int64 {
	before := curve[0]
	for _, p := range curve {
		if p.week > week {
			if before.value == 0 || p.value == 0 && before.week != week {
				return 0
			}
			return before.value + (p.value-before.value)*(week-before.week)/(p.week-before.week)
		}
		before = p
	}
	return before.value
}

func (w workoutData) String() string {
	return fmt.Sprintf("%s %s: %d sets", w.day, w.title, len(w.sets))
}

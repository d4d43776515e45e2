package coach

import "math"

// Formula estimates a one-repetition maximum from a set of several repetitions.
type Formula struct {
	Name       string `json:"formula"`
	Expression string `json:"expression"`
	Source     string `json:"source"`

	estimate func(grams, reps int64) int64
}

// MaxReps is the longest set that an estimate is made from. Both formulas were meant for sets of at most ten repetitions, and
// Brzycki's article says so; beyond that endurance decides more than strength.
const MaxReps = 10

// Epley is the formula of Boyd Epley, "Poundage Chart", in: Boyd Epley Workout, Body Enterprises, Lincoln, Nebraska, 1985,
// p. 86: weight × (1 + reps / 30).
//
// A single repetition is the maximum of that day itself, not 1/30 more than it: that is how the formula is used in practice, and
// it keeps the estimate of a single from being higher than what was lifted.
var Epley = Formula{
	Name:       "Epley",
	Expression: "one-repetition maximum = weight × (1 + reps / 30); a single repetition counts as itself",
	Source:     "Boyd Epley, Poundage Chart, in: Boyd Epley Workout, Body Enterprises, Lincoln, Nebraska, 1985, p. 86",
	estimate:   func(grams, reps int64) int64 { return grams * (30 + reps) / 30 },
}

// Brzycki is the formula of Matt Brzycki, "Strength Testing: Predicting a One-Rep Max from Reps-to-Fatigue", Journal of Physical
// Education, Recreation & Dance 64(1), 1993, pp. 88–90: weight × 36 / (37 − reps), published as weight / (1.0278 − 0.0278 × reps).
var Brzycki = Formula{
	Name:       "Brzycki",
	Expression: "one-repetition maximum = weight × 36 / (37 − reps)",
	Source: "Matt Brzycki, Strength Testing: Predicting a One-Rep Max from Reps-to-Fatigue, Journal of Physical Education," +
		" Recreation & Dance 64(1), 1993, pp. 88-90",
	estimate: func(grams, reps int64) int64 { return grams * 36 / (37 - reps) },
}

// Estimate is the estimated one-repetition maximum in grams, rounded to 100 g. ok is false for sets that the formulas do not
// cover: no weight, no repetitions, or more than MaxReps.
func (f Formula) Estimate(grams, reps int64) (estimate int64, ok bool) {
	switch {
	case grams <= 0 || grams > maxLoad || reps < 1 || reps > MaxReps:
		return 0, false
	case reps == 1:
		return roundTo(grams, 100), true
	}
	return roundTo(f.estimate(grams, reps), 100), true
}

// formulaOf finds a formula by its name; "" is Epley's.
func formulaOf(name string) (Formula, error) {
	switch name {
	case "", Epley.Name, "epley":
		return Epley, nil
	case Brzycki.Name, "brzycki":
		return Brzycki, nil
	}
	return Formula{}, invalid("formula: %q is unknown. Use epley or brzycki", name)
}

// roundTo rounds to the nearest multiple of unit, halves away from zero.
func roundTo(n, unit int64) int64 {
	if n < 0 {
		return -roundTo(-n, unit)
	}
	return (n + unit/2) / unit * unit
}

// kilos is a weight in kilograms, for people and models.
func kilos(grams int64) float64 { return float64(grams) / 1000 }

// maxLoad is the heaviest weight that the database accepts, in grams.
const maxLoad = 500_000

// gramsOf reads a weight in kilograms, to the gram. ok is false for what is no weight.
func gramsOf(kg float64) (grams int64, ok bool) {
	if !(kg >= 0 && kg*1000 <= maxLoad) {
		return 0, false
	}
	return int64(math.Round(kg * 1000)), true
}

// percent of a change against what was before, with one decimal; nil where there was nothing.
func percent(before, after int64) *float64 {
	if before <= 0 {
		return nil
	}
	tenths := roundTo((after-before)*100_000/before, 100) / 100
	p := float64(tenths) / 10
	return &p
}

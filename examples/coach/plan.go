package coach

// weekPlan are the sessions of a week.
var weekPlan = []struct {
	title       string
	weekday     int64 // from Monday
	missed      int64 // percent
	presses     bool
	main, extra []string
}{
	{"Torso A: press de banca y remo", 0, 4, true, []string{"bench_press", "barbell_row"}, []string{"dip", "face_pull", "lateral_raise"}},
	{"Pierna A: sentadilla", 2, 6, false, []string{"squat"}, []string{"romanian_deadlift", "leg_press", "calf_raise", "plank"}},
	{"Torso B: press militar y dominadas", 4, 7, true, []string{"overhead_press"}, []string{"pull_up", "incline_dumbbell_press", "biceps_curl", "triceps_pushdown"}},
	{"Pierna B: peso muerto", 5, 15, true, []string{"deadlift"}, []string{"close_grip_bench_press", "hip_thrust", "leg_curl", "lat_pulldown"}},
}

// schemes are the weeks of a block, in percent of the strength of the week. The fifth is the deload.
var schemes = [5]struct{ sets, reps, percent, rpe10 int64 }{
	{4, 8, 74, 75}, {4, 6, 79, 80}, {5, 5, 82, 80}, {4, 3, 88, 85}, {3, 5, 62, 55},
}

// lifts are the athlete's strength in the main lifts over the weeks: what could be lifted once, in grams.
var lifts = map[string][]point{
	"bench_press": {
		{0, 86_000}, {9, 90_500}, {11, 89_500}, {22, 96_500}, {23, 0}, {26, 70_000}, {30, 84_000}, {35, 94_500}, {38, 93_000}, {40, 97_000}, // injury, then holiday
		{47, 97_500},                // plateau
		{48, 98_500}, {51, 101_500}, // breakthrough
	},
	"squat":          {{0, 118_000}, {9, 124_000}, {11, 122_000}, {22, 132_000}, {35, 139_000}, {38, 136_000}, {46, 144_000}, {51, 147_500}},
	"deadlift":       {{0, 145_000}, {9, 151_000}, {11, 149_000}, {22, 161_000}, {35, 168_000}, {38, 165_000}, {51, 177_000}},
	"overhead_press": {{0, 52_000}, {22, 58_500}, {23, 0}, {27, 42_000}, {35, 56_500}, {38, 55_500}, {51, 61_000}},
	"barbell_row":    {{0, 78_000}, {22, 85_000}, {35, 88_000}, {38, 86_500}, {51, 93_000}},
}

type extra struct {
	from, to, reps int64
	presses        bool
}

// extras are the loads of the other exercises at the beginning and at the end, in grams; 0 is the body's own weight.
var extras = map[string]extra{
	"dip":                    {0, 12_000, 8, true},
	"face_pull":              {18_000, 26_000, 15, false},
	"lateral_raise":          {8_000, 12_000, 12, true},
	"romanian_deadlift":      {80_000, 110_000, 8, false},
	"leg_press":              {140_000, 190_000, 10, false},
	"calf_raise":             {60_000, 85_000, 12, false},
	"plank":                  {0, 0, 1, false},
	"pull_up":                {0, 8_000, 7, false},
	"incline_dumbbell_press": {24_000, 30_000, 9, true},
	"biceps_curl":            {12_000, 16_000, 11, false},
	"triceps_pushdown":       {22_000, 32_000, 12, true},
	"close_grip_bench_press": {60_000, 75_000, 8, true},
	"hip_thrust":             {90_000, 125_000, 9, false},
	"leg_curl":               {35_000, 46_000, 11, false},
	"lat_pulldown":           {55_000, 70_000, 10, false},
}

// The body, in thousandths of kg, cm and percent.
var (
	bodyWeight = []point{{0, 79_400}, {10, 81_300}, {18, 82_700}, {24, 82_300}, {36, 79_900}, {44, 80_700}, {52, 81_600}}
	waist      = []point{{0, 84_500}, {18, 87_500}, {36, 83_000}, {52, 84_500}}
	bodyFat    = []point{{0, 17_000}, {18, 18_700}, {36, 15_400}, {52, 16_200}}
)

// spells are the longer times in which training was different.
var spells = []struct {
	first, last, kind string
	away              bool // nothing was trained
	reason, note      string
}{
	{"2025-12-24", "2025-12-28", "holiday", true, "Christmas", "Christmas with the family"},
	{"2026-02-09", "2026-02-15", "illness", true, "flu", "Gripe con fiebre; una semana en casa"},
	{"2026-05-11", "2026-06-21", "injury", false, "", "Left shoulder (rotator cuff, pain when pressing): no pressing for three weeks, then light and slowly back up"},
	{"2026-08-10", "2026-08-23", "holiday", true, "vacaciones", "Dos semanas de vacaciones sin gimnasio"},
}

const injury = 2 // in spells

var (
	missReasons  = []string{"trabajo", "work trip", "slept badly", "viaje", "gimnasio cerrado", "family dinner"}
	sessionNotes = []string{"Poco sueño, pero bien.", "Felt strong.", "Gym was full, shorter rests.", "Buena técnica hoy.", "Rodilla derecha algo cargada.", "Coffee helped."}
)

// goalsBefore are the goals that were set before the coach came.
var goalsBefore = []struct {
	setOn, kind, exercise string
	grams                 int64
	by, note, status      string
}{
	{"2025-12-29", "one_rep_max", "squat", 140_000, "2026-06-30", "Propósito de año nuevo", "missed"},
	{"2026-01-05", "one_rep_max", "bench_press", 95_000, "2026-05-31", "", "reached"},
	{"2026-03-30", "body_weight", "", 80_000, "2026-08-31", "Lean out for the summer", "reached"},
	{"2026-09-07", "one_rep_max", "bench_press", 102_500, "2026-12-31", "After the injury: past the old best", "open"},
	{"2026-09-07", "one_rep_max", "deadlift", 180_000, "2026-12-31", "", "open"},
}

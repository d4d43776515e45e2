package coach

import (
	"context"
	"slices"
	"strings"
	"unicode"
)

// Exercise is something that can be trained.
type Exercise struct {
	ID        string `json:"exercise"`
	English   string `json:"name_en"`
	Spanish   string `json:"name_es"`
	Muscle    string `json:"muscle"`
	Equipment string `json:"equipment"`
}

// exercises of a new database, with the other names that people use.
var exercises = []struct {
	Exercise
	words string // separated by commas
}{
	{Exercise{"bench_press", "Bench press", "Press de banca", "chest", "barbell"}, "bench,banca,press banca,pecho plano,flat bench"},
	{Exercise{"close_grip_bench_press", "Close-grip bench press", "Press de banca con agarre cerrado", "triceps", "barbell"}, "close grip,agarre cerrado"},
	{Exercise{"incline_dumbbell_press", "Incline dumbbell press", "Press inclinado con mancuernas", "chest", "dumbbells"}, "incline press,press inclinado"},
	{Exercise{"dip", "Dip", "Fondos en paralelas", "chest", "bodyweight"}, "dips,fondos"},
	{Exercise{"overhead_press", "Overhead press", "Press militar", "shoulders", "barbell"}, "ohp,military press,press de hombros,shoulder press"},
	{Exercise{"lateral_raise", "Lateral raise", "Elevaciones laterales", "shoulders", "dumbbells"}, "side raise,laterales"},
	{Exercise{"face_pull", "Face pull", "Tirón a la cara", "rear delts", "cable"}, "face pulls"},
	{Exercise{"squat", "Back squat", "Sentadilla", "quadriceps", "barbell"}, "squat,squats,sentadillas,sentadilla trasera"},
	{Exercise{"front_squat", "Front squat", "Sentadilla frontal", "quadriceps", "barbell"}, "sentadilla delantera"},
	{Exercise{"leg_press", "Leg press", "Prensa de piernas", "quadriceps", "machine"}, "prensa"},
	{Exercise{"deadlift", "Deadlift", "Peso muerto", "posterior chain", "barbell"}, "deadlifts,conventional deadlift"},
	{Exercise{"romanian_deadlift", "Romanian deadlift", "Peso muerto rumano", "hamstrings", "barbell"}, "rdl,rumano"},
	{Exercise{"leg_curl", "Leg curl", "Curl femoral", "hamstrings", "machine"}, "femoral"},
	{Exercise{"hip_thrust", "Hip thrust", "Empuje de cadera", "glutes", "barbell"}, "puente de glúteos"},
	{Exercise{"calf_raise", "Calf raise", "Elevación de talones", "calves", "machine"}, "gemelos,calves"},
	{Exercise{"barbell_row", "Barbell row", "Remo con barra", "back", "barbell"}, "row,rows,remo,bent-over row"},
	{Exercise{"pull_up", "Pull-up", "Dominadas", "back", "bodyweight"}, "pull up,pullups,chin-up,dominada"},
	{Exercise{"lat_pulldown", "Lat pulldown", "Jalón al pecho", "back", "cable"}, "pulldown,jalón"},
	{Exercise{"biceps_curl", "Biceps curl", "Curl de bíceps", "biceps", "dumbbells"}, "curl,curls"},
	{Exercise{"triceps_pushdown", "Triceps pushdown", "Extensión de tríceps en polea", "triceps", "cable"}, "pushdown,polea tríceps"},
	{Exercise{"plank", "Plank", "Plancha", "core", "bodyweight"}, "planchas"},
}

// muscles in Spanish, so that a search for them finds the same.
var muscles = map[string]string{
	"chest": "pecho pectoral", "triceps": "triceps", "shoulders": "hombros hombro", "rear delts": "deltoides posterior", "back": "espalda",
	"quadriceps": "cuadriceps piernas pierna legs leg", "posterior chain": "cadena posterior", "hamstrings": "isquiotibiales isquios piernas pierna legs leg",
	"glutes": "gluteos gluteo", "calves": "gemelos piernas pierna legs leg", "biceps": "biceps brazos arms", "core": "abdomen abdominales",
}

// ExerciseQuery asks for exercises.
type ExerciseQuery struct {
	Query string `json:"query" jsonschema:"name, part of a name, muscle or equipment, in English or Spanish"`
}

// ExerciseResult lists what was found, the best match first. Where nothing was, Note says so and All names what exists.
type ExerciseResult struct {
	Exercises []Exercise `json:"exercises"`
	Note      string     `json:"note,omitempty"`
	All       []string   `json:"all,omitempty"`
}

const maxExercises = 8

// SearchExercises finds exercises by name, muscle or equipment, in either language.
func (db *DB) SearchExercises(ctx context.Context, in ExerciseQuery) (*ExerciseResult, error) {
	asked := words(in.Query)
	if len(asked) == 0 {
		return nil, invalid("query: it is empty. Say a name or a muscle, such as bench press or espalda")
	}
	known, err := db.known(ctx, db.sql)
	if err != nil {
		return nil, failed("search the exercises", err)
	}
	type hit struct {
		Exercise
		score int
	}
	var hits []hit
	for _, k := range known {
		if s := k.score(asked); s > 0 {
			hits = append(hits, hit{k.Exercise, s})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.score - a.score })
	res := &ExerciseResult{Exercises: []Exercise{}}
	for _, h := range hits[:min(len(hits), maxExercises)] {
		res.Exercises = append(res.Exercises, h.Exercise)
	}
	if len(hits) == 0 {
		res.Note = "No exercise is called that. all lists the ids of those that exist."
		for _, k := range known {
			res.All = append(res.All, k.ID)
		}
	}
	return res, nil
}

// knownExercise is an exercise with what it can be called, folded.
type knownExercise struct {
	Exercise
	names []string
	about string
}

// score is how well an exercise fits: a whole name first, then all words in one name, then all words in what is known of it.
func (k knownExercise) score(asked []string) int {
	phrase := strings.Join(asked, " ")
	best := 0
	for _, n := range k.names {
		switch {
		case n == phrase:
			return 3
		case hasWords(n, asked):
			best = 2
		}
	}
	if best == 0 && hasWords(strings.Join(k.names, " ")+" "+k.about, asked) {
		best = 1
	}
	return best
}

// hasWords reports whether each of the words begins a word of the text.
func hasWords(text string, asked []string) bool {
	in := strings.Fields(text)
	for _, w := range asked {
		if !slices.ContainsFunc(in, func(f string) bool { return strings.HasPrefix(f, w) }) {
			return false
		}
	}
	return true
}

func (db *DB) known(ctx context.Context, q query) ([]knownExercise, error) {
	type pair struct{ exercise, word string }
	pairs, err := rows(ctx, q, func(scan func(...any) error, p *pair) error { return scan(&p.exercise, &p.word) },
		`SELECT exercise, word FROM exercise_words ORDER BY exercise, word`)
	if err != nil {
		return nil, err
	}
	return rows(ctx, q, func(scan func(...any) error, k *knownExercise) error {
		if err := scan(&k.ID, &k.English, &k.Spanish, &k.Muscle, &k.Equipment); err != nil {
			return err
		}
		for _, n := range []string{k.ID, k.English, k.Spanish} {
			k.names = append(k.names, strings.Join(words(n), " "))
		}
		for _, p := range pairs {
			if p.exercise == k.ID {
				k.names = append(k.names, p.word)
			}
		}
		k.about = fold(k.Muscle + " " + muscles[k.Muscle] + " " + k.Equipment)
		return nil
	}, `SELECT id, name_en, name_es, muscle, equipment FROM exercises ORDER BY rowid`)
}

// exercise finds the one exercise that an argument means: its id, or one of its names in either language.
func (db *DB) exercise(ctx context.Context, q query, arg, value string) (Exercise, error) {
	known, err := db.known(ctx, q)
	if err != nil {
		return Exercise{}, err
	}
	asked := strings.Join(words(value), " ")
	for _, k := range known {
		if asked != "" && slices.Contains(k.names, asked) {
			return k.Exercise, nil
		}
	}
	return Exercise{}, invalid("%s: there is no exercise %q. search_exercises finds the right id", arg, value)
}

// words of a text, folded: lower case without accents.
func words(text string) []string {
	return strings.FieldsFunc(fold(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

var accents = strings.NewReplacer("á", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ü", "u", "ñ", "n")

// fold makes words comparable that differ in case or in Spanish accents only.
func fold(s string) string { return accents.Replace(strings.ToLower(strings.TrimSpace(s))) }

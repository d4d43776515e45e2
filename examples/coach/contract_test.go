package coach

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
)

func TestClaims(t *testing.T) {
	for text, want := range map[string]string{
		"Fine. I've saved the goal. Good luck!":                        "I've saved the goal",
		"The goal has been saved: 100 kg.":                             "The goal has been saved",
		"Your goal is now saved":                                       "Your goal is now saved",
		"I have just logged it.":                                       "I have just logged it",
		"He guardado tu objetivo.":                                     "He guardado tu objetivo",
		"El objetivo ha quedado guardado: 100 kg.":                     "El objetivo ha quedado guardado",
		"Listo, tu peso está anotado.":                                 "Listo, tu peso está anotado",
		"La sesión queda registrada.":                                  "La sesión queda registrada",
		"I have not saved the goal.":                                   "",
		"I haven’t saved it, and nothing is recorded.":                 "",
		"Once you approve, the goal is saved.":                         "",
		"No he guardado nada.":                                         "",
		"No se ha guardado ningún objetivo.":                           "",
		"Si lo apruebas, el objetivo queda guardado.":                  "",
		"Your best set was 80 kg × 8.":                                 "",
		"The saving was refused.":                                      "",
		"You logged two sessions last week; shall I log today's, too?": "",
		"": "",
	} {
		if got := Claims(text); got != want {
			t.Errorf("%q: claims %q, want %q", text, got, want)
		}
	}
}

func TestCheckAnswer(t *testing.T) {
	db := open(t)
	g, err := db.SaveGoal(t.Context(), Origin{"r1", "k1"}, benchGoal())
	if err != nil {
		t.Fatal(err)
	}
	l, err := db.LogWorkout(t.Context(), Origin{"r1", "k2"}, todaysWorkout())
	if err != nil {
		t.Fatal(err)
	}
	m, err := db.WriteMeasurement(t.Context(), Origin{"r1", "k3"}, MeasurementInput{Kind: "waist", Value: 84})
	if err != nil {
		t.Fatal(err)
	}
	fact := func(v any) loop.Fact {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return loop.Fact{Value: b}
	}
	all := map[string]loop.Fact{"goal": fact(g), "workout": fact(l), "measurement": fact(m)}
	if _, err := db.SaveGoal(t.Context(), Origin{"r2", "k4"}, benchGoal()); err != nil { // replaces the goal, and changes no fact
		t.Fatal(err)
	}
	higher, stranger := *g, *l
	higher.Target, stranger.ID = 110, "W-161" // came with the database: no call logged it
	const claim = `the write that "I have saved it" claims (nothing was saved in answer to this message: say that it was not)`
	for name, c := range map[string]struct {
		answer string
		facts  map[string]loop.Fact
		want   []string
	}{
		"nothing written, nothing claimed": {"Rest three minutes.", nil, nil},
		"written and claimed":              {"I have saved it.", all, nil},
		"written and not claimed":          {"Done.", all, nil},
		"claimed without a write":          {"I have saved it.", nil, []string{claim}},
		"claimed by an id that exists":     {"I have saved it as G-6.", nil, nil},
		"an id that does not exist": {"I have saved it as G-99.", nil, []string{
			"G-99 in the database: nothing was saved under that id, so do not name it",
			`the write that "I have saved it as G-99" claims (nothing was saved in answer to this message: say that it was not)`}},
		"an id of a workout that was read": {"See W-161 and M-3.", nil, nil},
		"a fact that is not so":            {"Done.", map[string]loop.Fact{"goal": fact(higher)}, []string{"the goal in the database as the fact says it"}},
		"a fact of another row":            {"Done.", map[string]loop.Fact{"workout": fact(stranger)}, []string{"the workout in the database as the fact says it"}},
		"a fact that cannot be read":       {"Done.", map[string]loop.Fact{"measurement": {Value: []byte(`[]`)}}, []string{"the measurement in the database as the fact says it"}},
		"a fact without an id":             {"Done.", map[string]loop.Fact{"goal": {Value: []byte(`{}`)}}, []string{"the goal in the database as the fact says it"}},
		"a fact with a strange id":         {"Done.", map[string]loop.Fact{"workout": {Value: []byte(`{"workout_id":"x"}`)}}, []string{"the workout in the database as the fact says it"}},
	} {
		got, err := db.CheckAnswer(t.Context(), c.answer, c.facts)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %s, %v", name, diff, err)
		}
	}
	db.Close()
	if _, err := db.CheckAnswer(t.Context(), "I have saved it as G-6.", all); err == nil {
		t.Error("a closed database confirms an answer")
	}
}

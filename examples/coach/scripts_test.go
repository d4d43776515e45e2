package coach

import (
	"strings"
	"testing"
)

func TestScript(t *testing.T) {
	for input, want := range map[string]string{
		"How much have I progressed in bench press this month?":  "coach-progress-en",
		"¿Cuánto he progresado en press de banca este mes?":      "coach-progress-es",
		"cuanto he progresado en PRESS DE BANCA":                 "coach-progress-es",
		"Yes, go on.":                                            "coach-limit-en",
		"yes go on":                                              "coach-limit-en",
		"sí, sigue":                                              "coach-limit-es",
		"SI, CONTINÚA":                                           "coach-limit-es",
		"Save a goal: bench press 105 kg by 31 March.":           "coach-goal-en",
		"Log today's workout: squats":                            "coach-limit-en",
		"Guarda un objetivo: peso muerto 250 kg para Navidad":    "coach-refuse-es",
		"Registra mi entrenamiento de hoy: press de banca 3x5":   "coach-log-es",
		"Please log today's workout: bench press 3 x 5 at 80 kg": "coach-log-en",
		"Write down my weight: 81.6 kg":                          "coach-weigh-en",
		"Anota mi peso: 81.6":                                    "coach-weigh-es",
		"¿Cuánto descanso entre series?":                         "coach-advice-es",
		"What is the capital of France?":                         "",
		"":                                                       "",
	} {
		s, name, err := Script(input)
		if name != want || (err == nil) != (want != "") || (s == nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", input, name, err, want)
		}
	}
	_, _, err := Script("Hello")
	for _, want := range []string{"How much have I progressed", "¿Cuánto he progresado", "Yes, go on.", "real model"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

// Each message of a script's conversation picks the script, and there is one for each topic and language.
func TestScriptsAreAbout(t *testing.T) {
	list := Scripts()
	if len(list) != 14 {
		t.Errorf("%d scripts", len(list))
	}
	for _, info := range list {
		if len(info.About) < 20 || len(info.Say) == 0 {
			t.Errorf("%+v", info)
		}
		for _, say := range info.Say {
			if _, name, err := Script(say); name != info.Name {
				t.Errorf("%q picks %q (%v), want %q", say, name, err, info.Name)
			}
		}
	}
}

// The limit's scripts ask for one round more than the agent may use, and never twice for the same.
func TestLimitScriptsOutrunTheRounds(t *testing.T) {
	for _, input := range []string{"Yes, go on.", "Sí, sigue."} {
		s, _, err := Script(input)
		if err != nil {
			t.Fatal(err)
		}
		calls := map[string]bool{}
		for _, item := range s.Items {
			if item.When != nil {
				break
			}
			calls[item.Calls[0].Name+item.Calls[0].Args] = true
		}
		if want := Agent(nil, &DB{}).Limits.Rounds + 1; len(calls) != want {
			t.Errorf("%q: %d different calls, want %d", input, len(calls), want)
		}
	}
}

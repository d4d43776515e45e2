package loop

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample fills every field of a value with something that is not zero.
func sample(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		v.SetString("<word> & “ñ”\n")
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(7 + depth))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		if depth < 6 {
			v.Set(reflect.New(t.Elem()))
			v.Elem().Set(sample(t.Elem(), depth+1))
		}
	case reflect.Slice:
		switch {
		case t == reflect.TypeFor[json.RawMessage]():
			v.SetBytes([]byte(`{"a":[1,2.50,"<"]}`))
		case t.Elem().Kind() == reflect.Uint8:
			v.SetBytes([]byte{1, 2, 255})
		case depth < 4:
			v.Set(reflect.Append(v, sample(t.Elem(), depth+1), sample(t.Elem(), depth+1)))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(sample(t.Key(), depth+1), sample(t.Elem(), depth+1))
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				v.Field(i).Set(sample(t.Field(i).Type, depth+1))
			}
		}
	}
	return v
}

// TestCodecKnowsEveryEvent: each type of event.go has a line in the codec, and comes back as it was, empty and full.
func TestCodecKnowsEveryEvent(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Kind" && f.Recv != nil {
			if id, ok := f.Recv.List[0].Type.(*ast.Ident); ok && id.Name != "Event" && id.Name != "Unknown" {
				declared = append(declared, id.Name)
			}
		}
	}
	known := make([]string, 0, len(bodies))
	for k := range bodies {
		known = append(known, k)
	}
	slices.Sort(declared)
	slices.Sort(known)
	if diff := cmp.Diff(declared, known); diff != "" {
		t.Fatalf("- events of event.go, + events of the codec:\n%s", diff)
	}
	for _, kind := range known {
		empty, err := bodies[kind]([]byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		full := sample(reflect.TypeOf(empty), 0).Interface().(Body)
		for _, body := range []Body{empty, full} {
			ev := Event{Seq: 3, Time: 5, Body: body}
			raw, err := Encode(ev)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			back, err := Decode(raw)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if diff := cmp.Diff(body, back.Body); diff != "" || back.Seq != 3 || back.Time != 5 || back.Kind() != kind {
				t.Errorf("%s does not come back:\n%s", kind, diff)
			}
			again, err := Encode(Event{Seq: back.Seq, Time: back.Time, Body: back.Body})
			if err != nil || !bytes.Equal(again, raw) {
				t.Errorf("%s is encoded in two ways:\n%s\n%s (%v)", kind, raw, again, err)
			}
		}
	}
}

func TestCodecKeepsWhatItDoesNotKnow(t *testing.T) {
	for _, line := range []string{
		`{"s":2,"t":5,"k":"Novelty","o":true,"b":{"x":[1, 2.500],"y":"<"}}`,
		`{"s":2,"t":5,"k":"Novelty","b":{"x":1}}`,
		`{"s":2,"t":5,"k":"ToolReturned","b":{"call":"c1.1","later":{"n": 1.0},"text":"ok"}}`,
		`{ "s":2, "t":5, "k":"RunStopped", "b":{"stop":"completed"}, "x":"new" }`,
	} {
		ev, err := Decode([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := Encode(ev)
		if err != nil || string(raw) != line {
			t.Errorf("got  %s\nwant %s (%v)", raw, line, err)
		}
	}
	raw, err := Encode(Event{Seq: 2, Time: 5, Body: Unknown{Name: "Novelty", Optional: true, Raw: Value(`{"x":1}`)}})
	if want := `{"s":2,"t":5,"k":"Novelty","o":true,"b":{"x":1}}`; err != nil || string(raw) != want {
		t.Errorf("got %s (%v), want %s", raw, err, want)
	}
}

func TestCodecErrors(t *testing.T) {
	for in, want := range map[string]string{
		`{`:                                "loop: decode event: unexpected end of JSON input",
		`[]`:                               "loop: decode event: json: cannot unmarshal array into Go value of type loop.wireEvent",
		`{"s":1,"t":0}`:                    `loop: decode event: "{\"s\":1,\"t\":0}" has no kind or no sequence number`,
		`{"s":0,"k":"RunStopped","b":{}}`:  `loop: decode event: "{\"s\":0,\"k\":\"RunStopped\",\"b\":{}}" has no kind or no sequence number`,
		`{"s":1,"k":"RunStopped","b":[1]}`: "loop: decode event 1, RunStopped: json: cannot unmarshal array into Go value of type loop.RunStopped",
		`{"s":4,"k":"ToolStarted","b":{"call":7}}`: "loop: decode event 4, ToolStarted: json: cannot unmarshal number into Go struct field ToolStarted.call of type string",
	} {
		if _, err := Decode([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", in, err, want)
		}
	}
	if _, err := Encode(Event{Seq: 1}); err == nil {
		t.Error("an event without a body was encoded")
	}
	if _, err := Encode(Event{Seq: 1, Body: ToolReturned{More: []Block{{Raw: json.RawMessage("{")}}}}); err == nil {
		t.Error("broken JSON was encoded")
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	start := RunStarted{Run: "r", Config: &Config{Agent: "a"}, Format: Format + 1}
	st, err := Next(State{}, Event{Seq: 1, Body: start})
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "format 2") || st.Phase != PhaseNew {
		t.Errorf("got %v", err)
	}
	start.Format = Format
	st, err = Next(State{}, Event{Seq: 1, Body: start})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Next(st, Event{Seq: 2, Body: Unknown{Name: "Novelty"}}); !errors.Is(err, ErrNewer) {
		t.Errorf("an unknown event that must be known: got %v", err)
	}
	if next, err := Next(st, Event{Seq: 2, Body: Unknown{Name: "Novelty", Optional: true}}); err != nil || next.Seq != 2 {
		t.Errorf("an unknown event that may be skipped: got %v", err)
	}
}

// TestJournalsOfFormat1 folds journals that earlier versions wrote. A difference means that a run which was begun before would go on
// in another way: change behaviour behind a flag in the journal instead. The files are never rewritten; new ones may join.
func TestJournalsOfFormat1(t *testing.T) {
	files, err := filepath.Glob("testdata/format1/*.journal")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d journals: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".journal"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			st, talk := State{}, NewTranscript(nil)
			for line := range bytes.Lines(raw) {
				ev, err := Decode(bytes.TrimRight(line, "\n"))
				if err != nil {
					t.Fatal(err)
				}
				next, err := Next(st, ev)
				if err != nil {
					t.Fatal(err)
				}
				st = next
				talk.Apply(ev, st)
			}
			got := mustJSON(st) + "\n"
			for _, m := range talk.Messages() {
				got += mustJSON(m) + "\n"
			}
			golden := strings.TrimSuffix(file, ".journal") + ".state"
			want, err := os.ReadFile(golden)
			if os.IsNotExist(err) && *rewrite {
				err, want = os.WriteFile(golden, []byte(got), 0o644), []byte(got)
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("- then, + now:\n%s", diff)
			}
		})
	}
}

// TestBadJournals: each is refused with a message that says what is wrong and where the run stood.
func TestBadJournals(t *testing.T) {
	start := Event{Seq: 1, Time: 10, Body: RunStarted{Run: "r", Config: &Config{Agent: "a"}}}
	call := Event{Seq: 2, Time: 20, Body: ModelCallStarted{Call: 1}}
	for _, c := range []struct {
		name   string
		events []Event
		want   string
	}{
		{"does not begin with the start", []Event{{Seq: 1, Body: RunStopped{}}},
			"loop: illegal event RunStopped (1): a journal begins with RunStarted and has only one; state: run  seq 0 phase  model call 0.0"},
		{"begins twice", []Event{start, {Seq: 2, Time: 10, Body: start.Body}},
			"loop: illegal event RunStarted (2): a journal begins with RunStarted and has only one; state: run r seq 1 phase prompt model call 0.0"},
		{"no config", []Event{{Seq: 1, Body: RunStarted{Run: "r"}}},
			"loop: illegal event RunStarted (1): RunStarted needs a run and a config; state: run  seq 0 phase  model call 0.0"},
		{"a gap", []Event{start, {Seq: 3, Time: 20, Body: CancelRequested{}}},
			"loop: illegal event CancelRequested (3): want sequence 2; state: run r seq 1 phase prompt model call 0.0"},
		{"time goes back", []Event{start, {Seq: 2, Time: 9, Body: CancelRequested{}}},
			"loop: illegal event CancelRequested (2): its time lies before that of the last event; state: run r seq 1 phase prompt model call 0.0"},
		{"an event without a body", []Event{start, {Seq: 2, Time: 20}},
			"loop: illegal event  (2): no such event; state: run r seq 1 phase prompt model call 0.0"},
		{"stops too early", []Event{start, call, {Seq: 3, Time: 20, Body: RunStopped{Stop: StopCompleted}}},
			"loop: illegal event RunStopped (3): the run does not end yet; state: run r seq 2 phase model model call 1.1"},
		{"stops otherwise", []Event{start, call, {Seq: 3, Time: 20, Body: ModelReplied{Call: 1, Finish: FinishStop, Blocks: []Block{{Kind: BlockText, Text: "So."}}}},
			{Seq: 4, Time: 20, Body: RunStopped{Stop: StopBlocked, Answer: 3}}},
			"loop: illegal event RunStopped (4): owed is the stop completed; state: run r seq 3 phase ending model call 1.1 end completed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := State{}
			for i, ev := range c.events {
				next, err := Next(st, ev)
				if i < len(c.events)-1 {
					if err != nil {
						t.Fatal(err)
					}
					st = next
					continue
				}
				if err == nil || err.Error() != c.want {
					t.Errorf("got  %v\nwant %s", err, c.want)
				}
			}
		})
	}
}

// FuzzDecode: what decodes is written back byte for byte, and nothing panics.
func FuzzDecode(f *testing.F) {
	for kind := range bodies {
		f.Add([]byte(`{"s":1,"t":2,"k":"` + kind + `","b":{"call":"c1.1","more":[{"k":"text"}]}}`))
	}
	f.Add([]byte(`{"s":1,"t":0,"k":"x","o":true,"b":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := slices.Clone(b)
		ev, err := Decode(in)
		if err != nil {
			return
		}
		out, err := Encode(ev)
		if err != nil || !bytes.Equal(out, b) {
			t.Fatalf("%q became %q (%v)", b, out, err)
		}
		if _, unknown := ev.Body.(Unknown); unknown {
			return
		}
		fresh, err := Encode(Event{Seq: ev.Seq, Time: ev.Time, Body: ev.Body})
		if err != nil {
			t.Fatalf("%q decodes and does not encode: %v", b, err)
		}
		again, err := Decode(fresh)
		if err != nil {
			t.Fatalf("%q: %v", fresh, err)
		}
		if once, twice := mustJSON(ev.Body), mustJSON(again.Body); once != twice {
			t.Fatalf("%s\n%s", once, twice)
		}
	})
}

// FuzzNext folds whatever lines hold: journals are read from files of others. Nothing panics.
func FuzzNext(f *testing.F) {
	files, _ := filepath.Glob("testdata/format1/*.journal")
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil {
			f.Add(raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		st, talk := State{}, NewTranscript(nil)
		for line := range bytes.Lines(raw) {
			ev, err := Decode(bytes.TrimRight(line, "\n"))
			if err != nil {
				continue
			}
			next, err := Next(st, ev)
			if err != nil {
				continue
			}
			st = next
			talk.Apply(ev, st)
			Ready(st, st.Time+Second)
			_, _ = st.Status()
			_ = AnswerText(ev)
		}
	})
}

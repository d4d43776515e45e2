package recording_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ronda-go/ronda/recording"
)

// TestSchema validates every line of every kind of run, and refuses lines that are wrong.
func TestSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(recording.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("recording.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("recording.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(line []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
	kinds := map[string]bool{}
	for name, rec := range all(t) {
		for line := range bytes.Lines(lines(t, rec)) {
			if err := valid(line); err != nil {
				t.Errorf("%s: %s: %v", name, line, err)
			}
			var k struct{ K string }
			if err := json.Unmarshal(line, &k); err != nil {
				t.Fatal(err)
			}
			kinds[k.K] = true
		}
	}
	for _, k := range []string{"ronda", "clock", "run", "artifact", "delta", "end", "RunStarted"} {
		if !kinds[k] {
			t.Errorf("no line of kind %s was validated", k)
		}
	}
	for _, bad := range []string{`{}`, `{"s":1,"t":0,"k":"delta"}`, `{"s":1,"t":0,"k":"RunStarted","b":{}}`, `{"s":-1,"t":0,"k":"x"}`} {
		if valid([]byte(bad)) == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

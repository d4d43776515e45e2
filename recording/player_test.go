package recording_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

var rewriteVectors = flag.Bool("rewrite", false, "write what the player shows into the vectors")

// vector is a recording and keys in, what is shown when out.
type vector struct {
	About     string                  `json:"about"`
	Recording string                  `json:"recording"` // beside testdata
	Options   recording.PlayerOptions `json:"options"`
	Steps     []vectorStep            `json:"steps"`
}

type vectorStep struct {
	At   loop.Micros `json:"at"` // microseconds of the viewer's clock
	Keys []string    `json:"keys,omitempty"`
	Want seen        `json:"want"`
}

// seen is a view with its last blocks only.
type seen struct {
	recording.View
	Blocks int               `json:"blocks"`
	Last   []recording.Block `json:"last"`
}

func see(v recording.View) seen {
	return seen{v, len(v.Blocks), v.Blocks[max(len(v.Blocks)-3, 0):]}
}

func TestPlayerVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/player/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("want the vectors, found %d, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var v vector
			if err := json.Unmarshal(data, &v); err != nil {
				t.Fatal(err)
			}
			rec, err := recording.Open(filepath.Join("testdata", v.Recording))
			if err != nil {
				t.Fatal(err)
			}
			p := recording.NewPlayer(recording.Timeline(rec), v.Options, 0)
			for i := range v.Steps {
				s := &v.Steps[i]
				p.Tick(s.At)
				for _, k := range s.Keys {
					p.Key(s.At, k)
				}
				got := see(p.View())
				if *rewriteVectors {
					s.Want = got
					continue
				}
				if diff := cmp.Diff(jsonText(t, s.Want), jsonText(t, got)); diff != "" {
					t.Errorf("step %d at %d, keys %v (-want +got):\n%s", i, s.At, s.Keys, diff)
				}
			}
			if *rewriteVectors {
				out, err := json.MarshalIndent(v, "", " ")
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, append(out, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPlayerShowsEverythingInOrder plays recordings at their pace, in one jump and back and forth: what is shown at a place is the same.
func TestPlayerShowsEverythingInOrder(t *testing.T) {
	for name, rec := range all(t) {
		items := recording.Timeline(rec)
		p := recording.NewPlayer(items, recording.PlayerOptions{}, 0)
		now := loop.Micros(0)
		for {
			next, ok := p.Next(now)
			if !ok {
				break
			}
			if next < now {
				t.Fatalf("%s: the next item is due at %d, before %d", name, next, now)
			}
			now = next + 1
			p.Tick(now)
		}
		v := p.View()
		if v.Shown != len(items) || v.Playing {
			t.Errorf("%s: %d of %d items shown, playing %t", name, v.Shown, len(items), v.Playing)
		}
		if now > p.Total()+loop.Micros(len(items))*2 {
			t.Errorf("%s: it took %d to play %d", name, now, p.Total())
		}
		jumped := recording.NewPlayer(items, recording.PlayerOptions{Step: true}, 0)
		for _, k := range []string{"9", "0", "]", "]", "[", "5", "right", "left"} {
			jumped.Key(0, k)
		}
		for range items {
			jumped.Key(0, "right")
		}
		if diff := cmp.Diff(jsonText(t, v.Blocks), jsonText(t, jumped.View().Blocks)); diff != "" {
			t.Errorf("%s: played and stepped through differ:\n%s", name, diff)
		}
	}
}

package ronda_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/ronda-go/ronda"

// layer is a part of the project with its level. A package imports only lower levels, and packages of its own family.
type layer struct {
	path  string // below the module; a family is the path and everything below it
	level int
	why   string
}

// layers are looked through in order: the first whose path fits holds.
var layers = []layer{
	{"loop", 1, "the machine is pure: it knows nobody, so that it folds a journal alike on a server, in a browser and in a replay"},
	{"model", 2, "adapters of providers translate between the loop's messages and a wire; tools, stores and policies are none of their business"},
	{"tool", 2, "tools are made and run without any model or store, so a tool can be tested alone"},
	{"policy", 2, "rules are pure data over a call; whoever asks them brings everything along"},
	{"journal", 2, "stores keep bytes and rows; they must not depend on who writes or what the bytes mean beyond the loop's codec"},
	{"recording", 2, "recordings are read where nothing can run: no drivers, no stores"},
	{"drive", 3, "the one interpreter: it declares the ports it calls and puts families of level 2 together; nothing below may call up into it"},
	{"agentfile", 4, "a file becomes an agent of the driver, for people who write no Go"},
	{"rondatest", 4, "users' tests run scenarios against the driver as their programs do"},
	{"server", 5, "HTTP is one way to reach a host; the library must not drag it in"},
	{"console", 5, "the console is served beside the API and runs the loop itself; nothing needs it to run an agent"},
	{"cli", 6, "the command puts everything together"},
	{"cmd", 6, "the binary is the command with the examples built in"},
	{"examples", 6, "examples are users of all of it; nobody may depend on them but the binary"},
	{"", 4, "what a Go user imports: thin, over the driver and the embedded stores"},
}

// allowed are imports within one level, each with its reason.
var allowed = map[[2]string]string{
	{"rondatest", "agentfile"}: "the agent of a scenario has the same schema as an agent file",
	{"cmd", "cli"}:             "the binary is the command",
	{"cmd", "examples"}:        "the binary has the examples built in",
	{"examples", "cli"}:        "built-in examples are offered to the command by name",
}

func layerOf(path string) (layer, bool) {
	rel, ok := strings.CutPrefix(path, module)
	if !ok {
		return layer{}, false
	}
	rel = strings.TrimPrefix(rel, "/")
	for _, l := range layers {
		if rel == l.path || l.path != "" && strings.HasPrefix(rel, l.path+"/") {
			return l, true
		}
	}
	return layer{}, true
}

// TestLayers: the architecture is a test (docs: the design, section 2).
func TestLayers(t *testing.T) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", "./...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seen++
		from, _ := layerOf(p.ImportPath)
		if from.level == 0 {
			t.Errorf("%s has no layer: give it a line in the table, with its reason", p.ImportPath)
			continue
		}
		for _, im := range p.Imports {
			to, ours := layerOf(im)
			switch {
			case !ours, to.level > 0 && to.level < from.level, to.path == from.path, allowed[[2]string{from.path, to.path}] != "":
			default:
				t.Errorf("%s (level %d) imports %s (level %d).\n%s is on its level because %s;\n%s because %s", p.ImportPath, from.level, im, to.level,
					from.path, from.why, to.path, to.why)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d packages were looked at", seen)
	}
}

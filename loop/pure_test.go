package loop

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// pure lists what the loop may import, each with what it needs it for. None of these reads a clock, a file, the network or the
// machine; maps, where used, are never walked.
var pure = map[string]string{
	"bytes":           "the codec",
	"crypto/sha256":   "fingerprints",
	"encoding/binary": "fingerprints: lengths of parts",
	"encoding/hex":    "fingerprints",
	"encoding/json":   "the codec",
	"errors":          "errors",
	"fmt":             "errors and the description of a state",
	"hash/fnv":        "the spread of back-offs, by the run's key instead of chance",
	"slices":          "order of keys",
	"strconv":         "numbers",
	"strings":         "texts",
	"unicode/utf16":   "canonical JSON: order of keys, escapes",
	"unicode/utf8":    "texts",
}

func sources(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, f := range all {
		if !strings.HasSuffix(f, "_test.go") {
			files = append(files, f)
		}
	}
	return files
}

func TestLoopIsPure(t *testing.T) {
	for _, name := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, im := range file.Imports {
			path, _ := strconv.Unquote(im.Path.Value)
			if pure[path] == "" {
				t.Errorf("%s imports %s. The loop has no clock, no chance, no I/O and no log: drivers have, and tell it by events. "+
					"If the package is as pure as those of the list, add it there with a reason", name, path)
			}
		}
	}
}

// TestLoopBuildsForTheBrowser: the console runs this very loop.
func TestLoopBuildsForTheBrowser(t *testing.T) {
	for _, system := range []string{"wasip1", "js"} {
		cmd := exec.Command("go", "build", "-o", os.DevNull, ".")
		cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=wasm", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", system, err, out)
		}
	}
}

// TestOneFile: a newcomer reads Next, Ready and the way of a round in one file.
func TestOneFile(t *testing.T) {
	raw, err := os.ReadFile("loop.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(raw, []byte("\n")); n >= 400 {
		t.Errorf("loop.go has %d lines, it is to have fewer than 400: move a machine into a file of its own", n)
	}
	for _, f := range []string{"func Next(", "func Ready(", "func (s State) modelReplied("} {
		if !bytes.Contains(raw, []byte(f)) {
			t.Errorf("%s is not in loop.go", f)
		}
	}
}

package support

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the files of the policies anew")

func TestPolicyFiles(t *testing.T) {
	want, err := PolicyFiles()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("mcp", "policies")
	if *rewrite {
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(b)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("go test -run PolicyFiles -rewrite writes them anew (-want +got):\n%s", diff)
	}
}

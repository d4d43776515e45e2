// Package mcp_test runs the variant of the support assistant on MCP servers.
package mcp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/agentfile"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal/memory"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// servers opens the servers of agent.yaml with programs that the test has: the cases' built from here, the file server's as
// scripts/mcp-servers.sh installs it.
func servers(t *testing.T) func(agentfile.ServerSpec) ([]tool.Tool, error) {
	t.Helper()
	dir := os.Getenv("RONDA_MCP_SERVERS")
	if dir == "" {
		dir = "../../../.tools/mcp-servers"
	}
	files, err := filepath.Abs(filepath.Join(dir, "node_modules", ".bin", "mcp-server-filesystem"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(files); err != nil {
		t.Skip("the file server is not installed: run scripts/mcp-servers.sh, or set RONDA_MCP_SERVERS")
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "./cases").CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	s := &agentfile.Servers{Context: t.Context()}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(spec agentfile.ServerSpec) ([]tool.Tool, error) {
		switch {
		case spec.Command[0] == "npx":
			spec.Command = []string{files, "./policies"}
		default:
			spec.Command = []string{filepath.Join(bin, "cases"), filepath.Join(bin, "support.db")}
		}
		return s.MCP(spec)
	}
}

func TestCase4812(t *testing.T) {
	agent, _, err := agentfile.Load("agent.yaml", agentfile.Options{Scripted: true, MCP: servers(t)})
	if err != nil {
		t.Fatal(err)
	}
	host, err := drive.Open(drive.Options{Store: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	host.Register(agent)
	run, err := host.Start(t.Context(), drive.Start{Agent: agent, Input: drive.Text("Answer case 4812"), ID: "run_1"})
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Pending) != 1 || run.Pending[0].Tool != "send_reply" || !strings.HasSuffix(run.Pending[0].Dest, " (alameda-cases 1)") {
		t.Fatalf("pending %+v, status %s", run.Pending, run.Status)
	}
	if err := host.Decide(t.Context(), "run_1", run.Pending[0].Call, drive.Decision{Decision: "approve", By: "luis"}); err != nil {
		t.Fatal(err)
	}
	if run, err = host.Resume(t.Context(), "run_1"); err != nil {
		t.Fatal(err)
	}
	var facts []string
	for _, name := range []string{"request", "policy", "draft", "receipt"} {
		if _, ok := run.Facts[name]; ok {
			facts = append(facts, name)
		}
	}
	if diff := cmp.Diff([]string{"request", "policy", "draft", "receipt"}, facts); run.Stop != loop.StopCompleted || diff != "" {
		t.Errorf("stop %s (-want +got):\n%s", run.Stop, diff)
	}
}

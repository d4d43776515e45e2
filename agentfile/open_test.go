package agentfile

import (
	"context"
	"encoding/json"
	"errors"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ronda-go/ronda/tool"
	"github.com/ronda-go/ronda/tool/mcp"
)

// mcpServer serves two tools over HTTP and counts its sessions.
func mcpServer(t *testing.T) (url string, sessions *atomic.Int32) {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "files", Version: "1"}, nil)
	says := func(text string) sdk.ToolHandler {
		return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
		}
	}
	s.AddTool(&sdk.Tool{Name: "read_file", InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","pattern":"^(?!/)"}}}`),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, says("the text"))
	s.AddTool(&sdk.Tool{Name: "write_file", InputSchema: json.RawMessage(`{"type":"object"}`)}, says("written"))
	sessions = &atomic.Int32{}
	srv := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(r *nethttp.Request) *sdk.Server {
		if r.Header.Get("Mcp-Session-Id") == "" {
			sessions.Add(1)
		}
		return s
	}, nil))
	t.Cleanup(srv.Close)
	return srv.URL, sessions
}

type declared struct{ Name, Effect, Approval, Destination string }

func declare(tools []tool.Tool) (out []declared) {
	for _, tl := range tools {
		d := tl.Def()
		out = append(out, declared{d.Name, string(d.Effect), string(d.Approval), d.Destination})
	}
	return out
}

func TestMCPServers(t *testing.T) {
	url, sessions := mcpServer(t)
	var notes []string
	servers := &Servers{Context: t.Context(), Note: func(n string) { notes = append(notes, n) }}
	o := makesAll()
	o.MCP = servers.MCP
	in := []byte("name: a\nmodel: x/y\ntools:\n  - mcp: {url: \"" + url + "\"}\n    prefix: fs_\n    tools: {write_file: {effect: idempotent, approval: deny}}\n")
	a, _, err := Parse(in, ".", o)
	if err != nil {
		t.Fatal(err)
	}
	where := url + " (files 1)"
	want := []declared{{"fs_read_file", "read", "allow", where}, {"fs_write_file", "idempotent", "deny", where}}
	if diff := cmp.Diff(want, declare(a.Tools)); diff != "" {
		t.Error(diff)
	}
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "MCP server "+url+": tool read_file: properties/path: the pattern ^(?!/) is not checked") {
		t.Errorf("notes %q", notes)
	}
	before := sessions.Load()
	again, _, err := Parse(in, ".", o)
	if err != nil || sessions.Load() != before {
		t.Fatalf("%v; %d requests for a second connection", err, sessions.Load()-before)
	}
	res, err := again.Tools[0].Run(t.Context(), tool.Call{})
	if err != nil || res.Text != "the text" {
		t.Errorf("%+v, %v", res, err)
	}
	_, _, err = Parse(append(in, "  - {name: fs_read_file, command: [./x]}\n"...), ".", o)
	if err == nil || !strings.Contains(err.Error(), `"fs_read_file" is there twice; the first is on line 4`) {
		t.Errorf("a name twice: %v", err)
	}
	_, _, err = Parse([]byte(strings.Replace(string(in), "write_file", "writefile", 1)), ".", o)
	if err == nil || !strings.Contains(err.Error(), `agent.yaml:4:10: tools[0].mcp: `+url+`: tools: there is no tool "writefile"; there are read_file, write_file`) {
		t.Errorf("an override of nothing: %v", err)
	}
	for range 2 {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := again.Tools[0].Run(t.Context(), tool.Call{}); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, _, err := Parse(in, ".", o); err == nil || !strings.Contains(err.Error(), mcp.ErrClosed.Error()) {
		t.Errorf("after Close: %v", err)
	}
}

func TestOpenAPIDocuments(t *testing.T) {
	dir := t.TempDir()
	doc := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"servers":[{"url":"https://a.example/v1"}],"paths":{"/pets/{id}":{` +
		`"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string","pattern":"(?!x)"}}],` +
		`"get":{"operationId":"getPet","responses":{}},"delete":{"operationId":"removePet","responses":{}}}}}`
	if err := os.WriteFile(filepath.Join(dir, "pets.json"), []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	o := makesAll()
	o.OpenAPI = nil
	var notes []string
	o.Note = func(n string) { notes = append(notes, n) }
	a, _, err := Parse([]byte("name: a\nmodel: x/y\ntools:\n  - openapi: ./pets.json\n    only: [getPet]\n"), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]declared{{"getPet", "read", "allow", "GET https://a.example/v1/pets/{id}"}}, declare(a.Tools)); diff != "" {
		t.Error(diff)
	}
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "./pets.json: operation getPet: properties/id: the pattern (?!x) is not checked") {
		t.Errorf("notes %q", notes)
	}
	_, _, err = Parse([]byte("name: a\nmodel: x/y\ntools:\n  - openapi: ./none.json\n"), dir, o)
	if err == nil || !strings.Contains(err.Error(), "agent.yaml:4:14: tools[0].openapi: ./none.json: document: ") {
		t.Errorf("%v", err)
	}
}

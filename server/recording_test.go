package server_test

import (
	"encoding/json"
	"testing"

	"github.com/ronda-go/ronda/server"
)

// TestOpenAPI makes the document, which registers every operation: two types of one name would panic.
func TestOpenAPI(t *testing.T) {
	doc, err := server.OpenAPI("test")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/v1/runs", "/v1/runs/{id}", "/v1/runs/{id}/events", "/v1/runs/{id}/explain", "/v1/runs/{id}/recording", "/v1/runs/{id}/diff/{other}", "/v1/approvals", "/v1/agents", "/v1/me"} {
		if d.Paths[p]["get"] == nil {
			t.Errorf("the document does not describe GET %s", p)
		}
	}
}

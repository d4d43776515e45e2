package openai_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/openai"
)

// Within a run that stores, only what is new is sent, with the instructions and tools, which do not carry over; once the response
// is gone the whole conversation goes out again.
func TestPrevious(t *testing.T) {
	s := serve(t, whole(function))
	m := s.model(openai.Store())
	req := &model.Request{System: "Be brief.", Messages: []*loop.Message{user("x")}, Cache: &model.Cache{}}
	ask := func() {
		t.Helper()
		if _, err := m.Generate(context.Background(), req, nil); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	call := blocks[4]
	call.Call = "r1.0"
	req.Messages = append(req.Messages, &loop.Message{Role: loop.Assistant, Blocks: []loop.Block{call}})
	req.Previous, req.PreviousLen = "resp_1", 2
	req.Messages = append(req.Messages, &loop.Message{Role: loop.Tool, Blocks: []loop.Block{{Kind: loop.BlockResult, Call: "r1.0", ID: "call_1", Text: "found"}}})
	ask()
	if want := `{"model":"m","instructions":"Be brief.","previous_response_id":"resp_1","store":true,"input":[{"type":"function_call_output","call_id":"call_1","output":"found"}]}`; s.last() != want {
		t.Errorf("got  %s\nwant %s", s.last(), want)
	}
	req.Previous, req.PreviousLen = "", 0
	ask()
	if want := `{"model":"m","instructions":"Be brief.","store":true,"input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"call_1","name":"look","arguments":"{\"q\":1}","id":"fc_1","status":"completed"},{"type":"function_call_output","call_id":"call_1","output":"found"}]}`; s.last() != want {
		t.Errorf("got  %s\nwant %s", s.last(), want)
	}
	req.Previous, req.PreviousLen = "resp_1", 2
	m = s.model() // nothing is stored: the id is of no use
	ask()
	if strings.Contains(s.last(), "previous_response_id") || !strings.Contains(s.last(), `"content":"x"`) {
		t.Errorf("not stored: %s", s.last())
	}
}

// Request n+1 begins with the items of request n, byte for byte; a run that starts anew from the same transcript has the same.
func TestPrefixStays(t *testing.T) {
	s := serve(t, whole(""))
	m := s.model()
	req := &model.Request{System: "Be brief.", Messages: []*loop.Message{user("start")}, Cache: &model.Cache{}}
	input := func() []byte {
		_, after, _ := bytes.Cut(s.bodies[len(s.bodies)-1], []byte(`"input":[`))
		return bytes.TrimSuffix(after, []byte("]}"))
	}
	var before []byte
	for round := range 20 {
		req.Extra = fmt.Sprintf("round %d", round)
		if _, err := m.Generate(context.Background(), req, nil); err != nil {
			t.Fatal(err)
		}
		if now := input(); !bytes.HasPrefix(now, before) {
			t.Fatalf("round %d: the request does not begin with the one before it:\n%s", round, cmp.Diff(string(before), string(now)))
		} else {
			before = now
		}
		turn := append([]loop.Block(nil), blocks...)
		turn[4].Call = fmt.Sprintf("r%d.0", round) // the wire's id is the same in each round
		req.Messages = append(req.Messages, &loop.Message{Role: loop.Assistant, Blocks: turn},
			&loop.Message{Role: loop.Tool, Blocks: []loop.Block{{Kind: loop.BlockResult, Call: turn[4].Call, ID: "call_1", Text: "é <b>"}}})
	}
	req.Cache = &model.Cache{}
	if _, err := m.Generate(context.Background(), req, nil); err != nil {
		t.Fatal(err)
	}
	if now := input(); !bytes.HasPrefix(now, before) {
		t.Errorf("encoded anew:\n%s", cmp.Diff(string(before), string(now)))
	}
}

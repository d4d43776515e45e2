package fake_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/rondatest/fake"
)

// post sends a body as a client of the wire does and returns status, headers and as much of the body as comes.
func post(ctx context.Context, t *testing.T, wire string, s *fake.Server, stream bool, body string) (int, http.Header, string, error) {
	t.Helper()
	url := s.URL
	switch wire {
	case fake.Anthropic:
		url += "/v1/messages"
	case fake.OpenAI:
		url += "/responses"
	case fake.OpenAIChat:
		url += "/chat/completions"
	case fake.Gemini:
		url += "/v1beta/models/gemini-3:generateContent"
		if stream {
			url = s.URL + "/v1beta/models/gemini-3:streamGenerateContent?alt=sse"
		}
	}
	if stream && wire != fake.Gemini {
		body = `{"stream":true,` + body[1:]
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("anthropic-version", "2023-06-01")
	r.Header.Set("x-api-key", "k")
	r.Header.Set("x-goog-api-key", "k")
	r.Header.Set("Authorization", "Bearer k")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b), err
}

// ask is a request without history, by wire; %s is a place for more turns.
var ask = map[string]string{
	fake.Anthropic:  `{"model":"m","max_tokens":2000,"tools":[{"name":"look","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Hello."}%s]}`,
	fake.OpenAI:     `{"model":"m","include":["reasoning.encrypted_content"],"tools":[{"type":"function","name":"look","parameters":{"type":"object","properties":{}},"strict":false}],"input":[{"role":"user","content":"Hello."}%s]}`,
	fake.OpenAIChat: `{"model":"m","tools":[{"type":"function","function":{"name":"look"}}],"messages":[{"role":"user","content":"Hello."}%s]}`,
	fake.Gemini:     `{"tools":[{"functionDeclarations":[{"name":"look"}]}],"contents":[{"role":"user","parts":[{"text":"Hello."}]}%s]}`,
}

// turn takes the model's turn out of a whole response and adds the result of its call, as a faithful client does.
func turn(wire, response string) string {
	switch wire {
	case fake.Anthropic:
		content := gjson.Get(response, "content").Raw
		id := gjson.Get(response, `content.#(type=="tool_use").id`).Str
		return fmt.Sprintf(`,{"role":"assistant","content":%s},{"role":"user","content":[{"type":"tool_result","tool_use_id":"%s","content":"seen"}]}`, content, id)
	case fake.OpenAI:
		out := gjson.Get(response, "output").Raw
		id := gjson.Get(response, `output.#(type=="function_call").call_id`).Str
		return fmt.Sprintf(`,%s,{"type":"function_call_output","call_id":"%s","output":"seen"}`, strings.ReplaceAll(out[1:len(out)-1], `,"annotations":[],"logprobs":[]`, ""), id)
	case fake.OpenAIChat:
		msg := gjson.Get(response, "choices.0.message").Raw
		id := gjson.Get(response, "choices.0.message.tool_calls.0.id").Str
		return fmt.Sprintf(`,%s,{"role":"tool","tool_call_id":"%s","content":"seen"}`, msg, id)
	}
	content := gjson.Get(response, "candidates.0.content").Raw
	return fmt.Sprintf(`,%s,{"role":"user","parts":[{"functionResponse":{"id":"%s","name":"look","response":{"output":"seen"}}}]}`, content,
		gjson.Get(response, "candidates.0.content.parts.#(functionCall).functionCall.id").Str)
}

func play(t *testing.T, wire string, opts fake.Options, items ...scripted.Item) *fake.Server {
	s := fake.New(wire, opts)
	t.Cleanup(s.Close)
	s.Play(&scripted.Script{Items: items})
	return s
}

// TestHistoryMustBeWhatWasServed sends the model's turn back as it was, and with one thing changed.
func TestHistoryMustBeWhatWasServed(t *testing.T) {
	item := scripted.Item{Thinking: "The history.", Text: "I look.", Calls: []scripted.Call{{Name: "look", Args: `{"q": "a"}`}}}
	for wire, cases := range map[string][]struct{ rule, old, new string }{
		fake.Anthropic: {
			{"", "", ""},
			{"call_changed", `"q": "a"`, `"q": "b"`},
			{"call_changed", `"name":"look","input":{"q"`, `"name":"pay","input":{"q"`},
			{"call_unserved", `toolu_01`, `toolu_99`},
			{"thinking_changed", `"The history."`, `"the history."`},
			{"thinking_changed", `"signature":"`, `"signature":"A`},
		},
		fake.OpenAI: {
			{"", "", ""},
			{"call_changed", `\"q\": \"a\"`, `\"q\": \"b\"`},
			{"call_changed", `\"q\": \"a\"`, `\"q\":\"a\"`},
			{"call_unserved", `"call_id":"call_`, `"call_id":"kall_`},
			{"thinking_changed", `"The history."`, `"the history."`},
			{"thinking_changed", `"encrypted_content":"`, `"encrypted_content":"AAAA`},
			{"thinking_changed", `"id":"rs_`, `"id":"rs_0`},
		},
		fake.OpenAIChat: {
			{"", "", ""},
			{"call_changed", `\"q\": \"a\"`, `\"q\":\"a\"`},
			{"call_changed", `"name":"look","arguments"`, `"name":"pay","arguments"`},
			{"call_unserved", `"call_`, `"kall_`},
			{"thinking_changed", `"The history."`, `"the history."`},
		},
		fake.Gemini: {
			{"", "", ""},
			{"call_changed", `"q": "a"`, `"q": "b"`},
			{"thinking_changed", `"thoughtSignature":"`, `"thoughtSignature":"AAAA`},
			{"thinking_dropped", `"thoughtSignature":"`, `"thought_signature":null,"videoMetadata":"`},
			{"result_without_call", `"functionResponse":{"id":"`, `"functionResponse":{"id":"x`},
		},
	} {
		for i, c := range cases {
			t.Run(fmt.Sprintf("%s/%d %s", wire, i, c.rule), func(t *testing.T) {
				s := play(t, wire, fake.Options{Seed: uint64(i)}, item, scripted.Item{Text: "Done."})
				status, _, body, err := post(t.Context(), t, wire, s, false, fmt.Sprintf(ask[wire], ""))
				if err != nil || status != 200 {
					t.Fatal(status, body, err)
				}
				hist := turn(wire, body)
				if !strings.Contains(hist, c.old) {
					t.Fatalf("the history does not hold %s: %s", c.old, hist)
				}
				if c.old != "" {
					hist = strings.ReplaceAll(hist, c.old, c.new)
				}
				status, _, body, err = post(t.Context(), t, wire, s, false, fmt.Sprintf(ask[wire], hist))
				if err != nil {
					t.Fatal(err)
				}
				if c.rule == "" {
					if status != 200 || len(s.Errors()) != 0 {
						t.Fatalf("a faithful client is refused: %d %s", status, body)
					}
					last := s.Requests()[1]
					want := []loop.Block{{Kind: loop.BlockResult, Name: "look", Wire: wire, Text: last.Results()[0].Text, ID: last.Results()[0].ID}}
					if d := cmp.Diff(want, last.Results()); d != "" || !strings.Contains(want[0].Text, "seen") || last.UserLast() != "Hello." {
						t.Error(d, last.UserLast())
					}
					if err := fake.PrefixStable(s.Requests()[0], last); err != nil {
						t.Error(err)
					}
					return
				}
				if status != 400 || len(s.Errors()) != 1 || !strings.Contains(s.Errors()[0], "("+c.rule+")") {
					t.Errorf("want a refusal by %s, got %d %s %q", c.rule, status, body, s.Errors())
				}
			})
		}
	}
}

func TestDroppedThinkingIsRefused(t *testing.T) {
	item := scripted.Item{Thinking: "The history.", Calls: []scripted.Call{{Name: "look", Args: `{}`}}}
	cut := map[string][2]string{
		fake.Anthropic:  {`{"type":"thinking"`, `{"type":"tool_use"`},
		fake.OpenAI:     {`{"id":"rs_`, `{"id":"fc_`},
		fake.OpenAIChat: {`"reasoning_content":`, `"tool_calls":`},
	}
	for wire, c := range cut {
		s := play(t, wire, fake.Options{ReasoningBack: true}, item)
		_, _, body, err := post(t.Context(), t, wire, s, false, fmt.Sprintf(ask[wire], ""))
		if err != nil {
			t.Fatal(err)
		}
		hist := turn(wire, body)
		i, j := strings.Index(hist, c[0]), strings.Index(hist, c[1])
		status, _, body, err := post(t.Context(), t, wire, s, false, fmt.Sprintf(ask[wire], hist[:i]+hist[j:]))
		if err != nil || status != 400 || !strings.Contains(strings.Join(s.Errors(), ""), "(thinking_") {
			t.Errorf("%s: %d %s %v %q", wire, status, body, err, s.Errors())
		}
	}
}

func TestRedactedThinking(t *testing.T) {
	item := scripted.Item{Thinking: "The history.", Calls: []scripted.Call{{Name: "look", Args: `{}`}}}
	for old, says := range map[string]string{"": "", `"data":"`: "Invalid `data`", `{"type":"redacted_thinking"`: "cannot be modified"} {
		s := play(t, fake.Anthropic, fake.Options{Redact: true}, item, scripted.Item{Text: "Done."})
		_, _, body, err := post(t.Context(), t, fake.Anthropic, s, false, fmt.Sprintf(ask[fake.Anthropic], ""))
		if err != nil || !strings.Contains(body, `"type":"redacted_thinking"`) {
			t.Fatal(err, body)
		}
		hist := turn(fake.Anthropic, body)
		switch old {
		case `"data":"`:
			at := strings.Index(hist, old) + len(old)
			hist = hist[:at] + "AAAA" + hist[at+4:]
		case "":
		default:
			hist = hist[:strings.Index(hist, old)] + hist[strings.Index(hist, `{"type":"tool_use"`):]
		}
		status, _, body, err := post(t.Context(), t, fake.Anthropic, s, false, fmt.Sprintf(ask[fake.Anthropic], hist))
		if err != nil || (status == 200) != (says == "") || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s %v", old, status, body, err)
		}
	}
}

func TestPreviousResponse(t *testing.T) {
	items := []scripted.Item{
		{Thinking: "Hm.", Text: "I look.", Calls: []scripted.Call{{Name: "look", Args: `{}`, ID: "a"}}}, {Text: "Done."}, {Text: "More."},
	}
	s := play(t, fake.OpenAI, fake.Options{}, items...)
	const tools = `"tools":[{"type":"function","name":"look","parameters":{"type":"object","properties":{}},"strict":false}]`
	send := func(body string) (int, string) {
		t.Helper()
		status, _, resp, err := post(t.Context(), t, fake.OpenAI, s, false, body)
		if err != nil {
			t.Fatal(err)
		}
		return status, resp
	}
	_, first := send(`{"model":"m","instructions":"Be brief.",` + tools + `,"input":"Hello."}`)
	id := gjson.Get(first, "id").Str
	if status, body := send(`{"model":"m","previous_response_id":"` + id + `","input":"And?"}`); status != 400 || !strings.Contains(body, "No tool output found for function call a.") {
		t.Error(status, body)
	}
	if status, body := send(`{"model":"m","previous_response_id":"` + id + `","input":[{"type":"function_call_output","call_id":"b","output":"x"}]}`); status != 400 || !strings.Contains(body, "call_id b") {
		t.Error(status, body)
	}
	status, second := send(`{"model":"m","previous_response_id":"` + id + `","store":false,` + tools + `,"input":[{"type":"function_call_output","call_id":"a","output":"seen"}]}`)
	if status != 200 {
		t.Fatal(second)
	}
	seen := s.Requests()[3]
	want := []loop.Message{
		{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: "Hello."}}},
		{Role: loop.Assistant, Blocks: []loop.Block{{Kind: loop.BlockThought, Text: "Hm.", Wire: "openai"}, {Kind: loop.BlockText, Text: "I look.", Wire: "openai"},
			{Kind: loop.BlockCall, ID: "a", Name: "look", Args: "{}", Wire: "openai"}}},
		{Role: loop.Tool, Blocks: []loop.Block{{Kind: loop.BlockResult, ID: "a", Name: "look", Text: "seen", Wire: "openai"}}},
	}
	if d := cmp.Diff(want, seen.Messages); d != "" || seen.System != "" || seen.Previous != id || seen.Stored != 2 {
		t.Errorf("%s%q %q %d: instructions must not carry over, the conversation must", d, seen.System, seen.Previous, seen.Stored)
	}
	// The second response was not stored.
	status, body := send(`{"model":"m","previous_response_id":"` + gjson.Get(second, "id").Str + `","input":"Go on."}`)
	if e := gjson.Get(body, "error"); status != 400 || e.Get("code").Str != "previous_response_not_found" || e.Get("param").Str != "previous_response_id" {
		t.Error(status, body)
	}
	s.Forget()
	if status, body := send(`{"model":"m","previous_response_id":"` + id + `","input":"Go on."}`); status != 400 || !strings.Contains(body, "previous_response_not_found") {
		t.Error(status, body)
	}
}

// TestFailuresByStatus checks the error bodies and waits of each wire.
func TestFailuresByStatus(t *testing.T) {
	for wire, want := range map[string]map[int][2]string{ // status: path of the error's name in the body, the name
		fake.Anthropic:  {429: {"error.type", "rate_limit_error"}, 500: {"error.type", "api_error"}, 529: {"error.type", "overloaded_error"}, 400: {"error.type", "invalid_request_error"}},
		fake.OpenAI:     {429: {"error.code", "rate_limit_exceeded"}, 500: {"error.type", "server_error"}, 503: {"error.code", "server_is_overloaded"}},
		fake.OpenAIChat: {429: {"error.code", "rate_limit_exceeded"}, 500: {"error.type", "server_error"}},
		fake.Gemini:     {429: {"error.status", "RESOURCE_EXHAUSTED"}, 503: {"error.status", "UNAVAILABLE"}, 500: {"error.status", "INTERNAL"}},
	} {
		for status, w := range want {
			s := play(t, wire, fake.Options{}, scripted.Item{Fail: &scripted.Fail{Status: status, RetryAfter: 1500 * time.Millisecond, Message: "busy"}})
			got, h, body, err := post(t.Context(), t, wire, s, false, fmt.Sprintf(ask[wire], ""))
			if err != nil || got != status || gjson.Get(body, w[0]).Str != w[1] || gjson.Get(body, "error.message").Str != "busy" {
				t.Errorf("%s %d: %d %s %v", wire, status, got, body, err)
			}
			wait := h.Get("retry-after")
			if wire == fake.Gemini {
				wait = strings.TrimSuffix(gjson.Get(body, "error.details.0.retryDelay").Str, ".5s") + "+"
			}
			if wait != "2" && wait != "1+" || len(s.Errors()) != 0 {
				t.Errorf("%s %d: wait %q, errors %q", wire, status, wait, s.Errors())
			}
		}
	}
}

// TestBrokenStreams: after n deltas the connection is cut; a stream without an end is whole HTTP but has no end marker; an error
// event comes behind the content.
func TestBrokenStreams(t *testing.T) {
	three := 3
	marks := map[string]struct{ delta, end, err string }{
		fake.Anthropic:  {`"text_delta"`, "message_stop", `event: error`},
		fake.OpenAI:     {`"response.output_text.delta",`, "response.completed", `event: error`},
		fake.OpenAIChat: {`"delta":{"content":"`, "[DONE]", `data: {"error"`},
		fake.Gemini:     {`{"text":"`, "finishReason", `data: {"error"`},
	}
	for wire, m := range marks {
		for _, opts := range []fake.Options{{}, {Cut: true}} {
			s := play(t, wire, opts, scripted.Item{Fail: &scripted.Fail{CutAfter: &three}}, scripted.Item{Fail: &scripted.Fail{NoEnd: true}},
				scripted.Item{Fail: &scripted.Fail{ErrorEvent: "overloaded"}}, scripted.Item{Text: "Done, ¡olé!"})
			for i, check := range []func(body string, err error) bool{
				func(body string, err error) bool {
					n := strings.Count(body, m.delta)
					if wire == fake.OpenAIChat {
						n-- // the opening has an empty content
					}
					return err != nil && n == three && !strings.Contains(body, m.end)
				},
				func(body string, err error) bool {
					return err == nil && strings.Contains(body, m.delta) && !strings.Contains(body, m.end)
				},
				func(body string, err error) bool {
					return err == nil && strings.Contains(body, m.err) && !strings.Contains(body, m.end)
				},
				func(body string, err error) bool {
					return err == nil && strings.Contains(body, m.end) && strings.Contains(body, "¡")
				},
			} {
				_, _, body, err := post(t.Context(), t, wire, s, true, fmt.Sprintf(ask[wire], ""))
				if wire == fake.OpenAIChat {
					body = strings.Replace(body, `"delta":{"role":"assistant",`, `"delta":{`, 1)
				}
				if !check(body, err) {
					t.Errorf("%s, response %d: %v %s", wire, i+1, err, body)
				}
			}
		}
	}
}

// TestBrokenWholes: the same failures of responses that are not streamed.
func TestBrokenWholes(t *testing.T) {
	three := 3
	for wire := range ask {
		s := play(t, wire, fake.Options{}, scripted.Item{Text: "Hello", Fail: &scripted.Fail{CutAfter: &three}}, scripted.Item{Fail: &scripted.Fail{NoEnd: true}},
			scripted.Item{Fail: &scripted.Fail{ErrorEvent: "overloaded"}})
		if _, _, body, err := post(t.Context(), t, wire, s, false, fmt.Sprintf(ask[wire], "")); err == nil || gjson.Valid(body) {
			t.Errorf("%s: cut: %v %s", wire, err, body)
		}
		if status, _, body, err := post(t.Context(), t, wire, s, false, fmt.Sprintf(ask[wire], "")); err != nil || status != 200 || gjson.Valid(body) {
			t.Errorf("%s: no end: %v %s", wire, err, body)
		}
		if status, _, body, err := post(t.Context(), t, wire, s, false, fmt.Sprintf(ask[wire], "")); err != nil || status < 500 {
			t.Errorf("%s: error: %d %v %s", wire, status, err, body)
		}
	}
}

// TestSilence: nothing comes until the client gives up, or the server's patience is over, or it closes.
func TestSilence(t *testing.T) {
	item := scripted.Item{Fail: &scripted.Fail{Timeout: true}}
	for wire := range ask {
		for _, stream := range []bool{false, true} {
			s := play(t, wire, fake.Options{Hang: time.Millisecond}, item, item, item)
			for range 3 {
				if _, _, body, err := post(t.Context(), t, wire, s, stream, fmt.Sprintf(ask[wire], "")); err == nil {
					t.Errorf("%s: an answer: %s", wire, body)
				}
			}
			s = play(t, wire, fake.Options{}, item)
			ctx, cancel := context.WithCancel(t.Context())
			s.Serve(func(*fake.Seen) (scripted.Item, error) { cancel(); return item, nil })
			if _, _, _, err := post(ctx, t, wire, s, stream, fmt.Sprintf(ask[wire], "")); err == nil {
				t.Errorf("%s: an answer", wire)
			}
		}
	}
}

func TestMalformedCalls(t *testing.T) {
	for wire, want := range map[string][2]string{ // whole, streamed
		fake.Anthropic:  {`"input":"{\""`, `"partial_json":"{\""`},
		fake.OpenAI:     {`"arguments":"{\""`, `"arguments":"{\""`},
		fake.OpenAIChat: {`"code":"tool_use_failed"`, "event: error\ndata: {\"error\":{"},
		fake.Gemini:     {`"finishReason":"MALFORMED_FUNCTION_CALL"`, `"finishReason":"MALFORMED_FUNCTION_CALL"`},
	} {
		for i, stream := range []bool{false, true} {
			s := play(t, wire, fake.Options{}, scripted.Item{Malformed: true})
			_, _, body, err := post(t.Context(), t, wire, s, stream, fmt.Sprintf(ask[wire], ""))
			if err != nil || !strings.Contains(body, want[i]) {
				t.Errorf("%s stream=%v: %v %s", wire, stream, err, body)
			}
		}
	}
	s := play(t, fake.Gemini, fake.Options{}, scripted.Item{Calls: []scripted.Call{{Name: "look", Args: `{"q`, Raw: true}}})
	if status, _, body, _ := post(t.Context(), t, fake.Gemini, s, false, fmt.Sprintf(ask[fake.Gemini], "")); status != 400 || len(s.Errors()) != 1 {
		t.Error("raw arguments on Gemini are an error of the script:", status, body)
	}
}

// TestMadeUpIDs: calls that came without an id, or with one twice, may come back with ids that the client made up.
func TestMadeUpIDs(t *testing.T) {
	for _, item := range []scripted.Item{
		{Calls: []scripted.Call{{Name: "look", Args: `{}`}}},
		{Calls: []scripted.Call{{Name: "look", Args: `{}`, ID: "same"}, {Name: "look", Args: `{}`, ID: "same"}}},
	} {
		s := play(t, fake.OpenAIChat, fake.Options{NoCallIDs: true}, item, scripted.Item{Text: "Done."})
		if _, _, _, err := post(t.Context(), t, fake.OpenAIChat, s, false, fmt.Sprintf(ask[fake.OpenAIChat], "")); err != nil {
			t.Fatal(err)
		}
		hist := `,{"role":"assistant","tool_calls":[{"id":"mine","type":"function","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"mine","content":"x"}`
		if status, _, body, err := post(t.Context(), t, fake.OpenAIChat, s, false, fmt.Sprintf(ask[fake.OpenAIChat], hist)); err != nil || status != 200 {
			t.Error(status, body, err)
		}
	}
}

func TestHTTPRules(t *testing.T) {
	s := play(t, fake.Anthropic, fake.Options{Key: "secret"}, scripted.Item{Text: "x"})
	if status, _, body, err := post(t.Context(), t, fake.Anthropic, s, false, fmt.Sprintf(ask[fake.Anthropic], "")); err != nil || status != 401 ||
		gjson.Get(body, "error.type").Str != "authentication_error" {
		t.Error(status, body, err)
	}
	if got := s.Requests(); len(got) != 1 || got[0].Refused == "" {
		t.Errorf("%+v", got)
	}
}

func TestPrefixStable(t *testing.T) {
	req := func(msgs string) fake.Seen {
		seen, err := fake.Read(fake.OpenAIChat, []byte(`{"model":"m","messages":[`+msgs+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		return seen
	}
	a := req(`{"role":"system","content":"one"}, {"role":"user","content":"Hi"}`)
	for msgs, ok := range map[string]bool{
		`{"role":"system","content":"two"},{"role":"user","content":"Hi"},{"role":"user","content":"x"}`: true,
		`{"role":"user","content":"Hi"}`:                                    true,
		`{"role":"user","content": "Hi"},{"role":"user","content":"x"}`:     false,
		`{"role":"user","content":"Hi!"}`:                                   false,
		`{"role":"user","content":"H"}`:                                     false,
		`{"role":"assistant","content":"x"},{"role":"user","content":"Hi"}`: false,
	} {
		if err := fake.PrefixStable(a, req(msgs)); (err == nil) != ok {
			t.Errorf("%s: %v", msgs, err)
		}
	}
	b := req(`{"role":"user","content":"other"}`)
	b.Previous = "resp_1"
	if err := fake.PrefixStable(a, b); err != nil {
		t.Error(err)
	}
}

// TestCutsInsideCharacters: the pieces of a cut stream end inside of characters and lines, differently for each seed.
func TestCutsInsideCharacters(t *testing.T) {
	inside := 0
	for seed := range uint64(5) {
		s := play(t, fake.OpenAIChat, fake.Options{Cut: true, Seed: seed}, scripted.Item{Text: strings.Repeat("日本🦜", 30)})
		r, err := http.NewRequest(http.MethodPost, s.URL+"/chat/completions", strings.NewReader(`{"stream":true,`+fmt.Sprintf(ask[fake.OpenAIChat], "")[1:]))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer k")
		var rec pieces
		s.ServeHTTP(&rec, r)
		for _, p := range rec.pieces {
			if len(p) > 0 && p[len(p)-1] >= 0x80 && !bytes.HasSuffix(p, []byte("本")) && !bytes.HasSuffix(p, []byte("日")) && !bytes.HasSuffix(p, []byte("🦜")) {
				inside++
			}
		}
	}
	if inside < 5 {
		t.Errorf("%d cuts inside of a character in five streams", inside)
	}
}

// pieces records what is written, piece by piece.
type pieces struct {
	h      http.Header
	pieces [][]byte
}

func (p *pieces) Header() http.Header {
	if p.h == nil {
		p.h = http.Header{}
	}
	return p.h
}
func (p *pieces) WriteHeader(int) {}
func (p *pieces) Write(b []byte) (int, error) {
	p.pieces = append(p.pieces, bytes.Clone(b))
	return len(b), nil
}

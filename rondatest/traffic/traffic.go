// Package traffic reads recorded conversations between clients and providers (format traffic/1) for tests of adapters: it finds
// and selects files, serves their responses cut at chosen places, and prints what was tried, passed and left out.
//
// The recordings are no part of this project. RONDA_TRAFFIC says where they are; by default ../shared/traffic beside the
// project. A test whose recordings are missing is skipped with a message that says so.
package traffic

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// File is one recorded conversation.
type File struct {
	Name      string     `json:"-"` // wire/name without .json
	Format    string     `json:"format"`
	Provider  string     `json:"provider"`
	Endpoint  string     `json:"endpoint"`
	Vendor    string     `json:"vendor"`
	Models    []string   `json:"models"`
	Recording Recording  `json:"recording"`
	Stream    bool       `json:"stream"`
	Features  []string   `json:"features"`
	Exchanges []Exchange `json:"exchanges"`
}

// Recording says how a file came to be.
type Recording struct {
	Kind            string   `json:"kind"` // http, response-fixture
	RequestRecorded bool     `json:"request_recorded"`
	Notes           []string `json:"notes"`
}

// Exchange is a request with its response.
type Exchange struct {
	Request   Request    `json:"request"`
	Response  Response   `json:"response"`
	Stream    bool       `json:"stream"`
	Features  []string   `json:"features"`
	Derived   Derived    `json:"derived"`
	Continues *Continues `json:"continues"`
	Repeats   *int       `json:"repeats"` // index of the exchange that this one is a copy of
}

// Request is what a client sent. Body is nil (or null) where it was not recorded.
type Request struct {
	Method  string            `json:"method"`
	Host    string            `json:"host"`
	Path    string            `json:"path"` // with the query
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// Recorded reports whether the request's body is there.
func (r *Request) Recorded() bool { return len(r.Body) > 0 && string(r.Body) != "null" }

// Response is what the provider sent.
type Response struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"` // JSON, or a JSON string that holds the text of an event stream
}

// Bytes is the body as it was on the wire.
func (r *Response) Bytes() []byte {
	var s string
	if len(r.Body) > 0 && r.Body[0] == '"' && json.Unmarshal(r.Body, &s) == nil {
		return []byte(s)
	}
	return r.Body
}

// IsText reports whether the body is text, as a rule an event stream, not JSON.
func (r *Response) IsText() bool { return len(r.Body) > 0 && r.Body[0] == '"' }

// ContentType is the recorded type of the body, else what its form says.
func (r *Response) ContentType() string {
	for k, v := range r.Headers {
		if strings.EqualFold(k, "content-type") {
			return v
		}
	}
	if r.IsText() {
		return "text/event-stream"
	}
	return "application/json"
}

// Derived is what an independent reader made of the response.
type Derived struct {
	Text          string          `json:"text"`
	TextChars     int             `json:"text_chars"`  // where the text is too long to repeat
	TextSHA256    string          `json:"text_sha256"` // the same
	ToolCalls     []Call          `json:"tool_calls"`
	Finish        json.RawMessage `json:"finish"` // string or integer
	FinishMessage string          `json:"finish_message"`
	Usage         json.RawMessage `json:"usage"`
	Items         []string        `json:"items"`
	ThinkingChars int             `json:"thinking_chars"`
	Refusal       string          `json:"refusal"`
	Error         json.RawMessage `json:"error"`
	ID            string          `json:"id"`
	MoreChoices   bool            `json:"more_choices"`
}

// Call is one tool call. Arguments is null, a JSON string that holds the raw arguments, or a JSON value.
type Call struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Custom    bool            `json:"custom"`
}

// Continues says that the request goes on from an earlier exchange of the file.
type Continues struct {
	Exchange             int    `json:"exchange"`
	Via                  string `json:"via"` // tool_result, previous_response_id, history
	CallsReplayedExactly *bool  `json:"calls_replayed_exactly"`
}

// Has reports whether the file has all the features.
func (f *File) Has(features ...string) bool { return has(f.Features, features) }

// Has reports whether the exchange has all the features.
func (e *Exchange) Has(features ...string) bool { return has(e.Features, features) }

func has(all, want []string) bool {
	for _, w := range want {
		if !slices.Contains(all, w) {
			return false
		}
	}
	return true
}

// Dir is the folder of the recordings, "" where it is missing.
func Dir() string {
	if d := os.Getenv("RONDA_TRAFFIC"); d != "" {
		return existing(d)
	}
	wd, err := os.Getwd()
	if err != nil {
		return ""
	}
	for d := wd; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return existing(filepath.Join(filepath.Dir(d), "shared", "traffic"))
		}
		if d == filepath.Dir(d) {
			return ""
		}
	}
}

func existing(d string) string {
	if _, err := os.Stat(filepath.Join(d, "index.jsonl")); err != nil {
		return ""
	}
	return d
}

// Load reads all files of a folder (anthropic, gemini, openai-chat, openai-responses), sorted by name. It skips the test where
// the recordings are missing and fails it where one cannot be read.
func Load(t testing.TB, wire string) []File {
	t.Helper()
	dir := Dir()
	if dir == "" {
		t.Skip("recorded traffic is missing: set RONDA_TRAFFIC to its folder (default: ../shared/traffic beside the project)")
	}
	names, err := filepath.Glob(filepath.Join(dir, wire, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no recordings of %s in %s (%v)", wire, dir, err)
	}
	files := make([]File, len(names))
	for i, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(b))
		if err := d.Decode(&files[i]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if files[i].Format != "traffic/1" {
			t.Fatalf("%s: format %q, want traffic/1", name, files[i].Format)
		}
		files[i].Name = wire + "/" + strings.TrimSuffix(filepath.Base(name), ".json")
	}
	return files
}

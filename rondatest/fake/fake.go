// Package fake serves scripts over real HTTP on loopback in the exact form of four wire protocols, and is as strict as the
// providers are: it refuses, with their own status and error body, what they refuse. It also misbehaves on command.
//
// Where a rule is stricter than a provider (the provider tolerates it, ronda never sends it), its comment says so. The sources
// named in comments are the providers' public documentation pages and recorded traffic (names of files under shared/traffic).
package fake

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ronda-go/ronda/model/scripted"
)

// Wires that exist, named as in model.Info.Wire.
const (
	Anthropic  = "anthropic"  // Messages
	OpenAI     = "openai"     // Responses
	OpenAIChat = "openaichat" // Chat Completions
	Gemini     = "gemini"     // generateContent, streamGenerateContent with alt=sse; paths of the Developer API and of Vertex
)

// Options of a server. The zero value is useful.
type Options struct {
	// Seed picks ids, the sizes of deltas and the places at which bodies are cut. Equal seeds and requests give equal bytes.
	Seed uint64
	// Cut sends each streamed body in pieces of changing size, also cut inside a character or a line of the stream. Without it
	// each event is one piece.
	Cut bool
	// Interleave mixes the deltas of parallel calls on the wires that have an index for it (openai, openaichat).
	Interleave bool
	// Repeat is a quirk of compatible servers: id and name of a call come with each of its deltas (openaichat).
	Repeat bool
	// Redact serves thinking as redacted_thinking (anthropic).
	Redact bool
	// ReasoningBack refuses an assistant message with calls whose reasoning_content did not come back while results follow it,
	// as DeepSeek's thinking mode does (openaichat). A changed one is always refused.
	ReasoningBack bool
	// NoCallIDs serves calls without ids, as Gemini 2.x does (gemini) and some compatible servers do (openaichat: ""). Ids that
	// the script gives are served all the same.
	NoCallIDs bool
	// Foreign accepts calls in the history that this server did not serve, for transcripts from elsewhere. Those that it did
	// serve are compared all the same.
	Foreign bool
	// Key is the only API key that is accepted; "" accepts each that is not empty.
	Key string
	// Hang is how long a silent response lasts before the server cuts the connection; 0: until the client gives up or Close.
	Hang time.Duration
}

// Server is a provider on loopback. It is safe for concurrent use.
type Server struct {
	// URL is what goes where the SDK of the wire takes its base URL: with /v1 for the OpenAI wires, bare for the others.
	URL string

	wire string
	opts Options
	http *httptest.Server
	done chan struct{}
	led  *ledger

	mu     sync.Mutex
	pick   func(*Seen) (scripted.Item, error)
	seen   []Seen
	errors []string
}

// New starts a server for a wire; it panics for a wire that does not exist. Until Serve or Play was called each request is an
// error. Close ends it.
func New(wire string, opts Options) *Server {
	if !slices.Contains([]string{Anthropic, OpenAI, OpenAIChat, Gemini}, wire) {
		panic(fmt.Sprintf("fake: no wire %q; there are anthropic, openai, openaichat, gemini", wire))
	}
	s := &Server{wire: wire, opts: opts, done: make(chan struct{}), led: newLedger(opts)}
	s.http = httptest.NewServer(s)
	s.URL = s.http.URL
	if wire == OpenAI || wire == OpenAIChat {
		s.URL += "/v1"
	}
	return s
}

// Close cuts silent responses, waits for the requests that are being answered, and ends the server. It may be called twice.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.done:
		s.mu.Unlock()
		return
	default:
		close(s.done)
	}
	s.mu.Unlock()
	s.http.CloseClientConnections()
	s.http.Close()
}

// Serve sets the function that picks the item which answers a request that was accepted. It is called in the order of the
// requests, one at a time; it must not call methods of the server. Its error is kept in Errors and answered with status 400.
func (s *Server) Serve(pick func(*Seen) (scripted.Item, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pick = pick
}

// Play serves a script in its own order (scripted.Script.Select): each request takes one item. It does not know runs and
// attempts; a runner that needs them uses Serve.
func (s *Server) Play(script *scripted.Script) {
	cursor := 0
	s.Serve(func(seen *Seen) (scripted.Item, error) {
		i, err := script.Select(cursor, seen.Match())
		if err != nil {
			return scripted.Item{}, err
		}
		cursor = script.After(i)
		return script.Items[i], nil
	})
}

// Requests are all model calls that arrived, in order, the refused ones included.
func (s *Server) Requests() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Errors holds a line for each request that was refused or that nothing could be served for. A scenario with any has failed.
func (s *Server) Errors() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.errors)
}

// Forget drops all stored responses: a later previous_response_id is not found (openai).
func (s *Server) Forget() { s.led.forget() }

const maxBody = 64 << 20

// ServeHTTP is the provider as a handler, for those who have a listener of their own.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return // the client went away
	}
	seen, item, ref := s.accept(r, body)
	if ref != nil {
		writeRefusal(w, s.wire, ref)
		return
	}
	s.answer(r.Context(), w, seen, &item)
}

// accept checks and records a request and picks what answers it. The lock makes both one: picks come in the order of Requests.
func (s *Server) accept(r *http.Request, body []byte) (*Seen, scripted.Item, *Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := &Seen{N: len(s.seen) + 1, Wire: s.wire, Path: r.URL.Path, Header: withoutKeys(r.Header), Body: body}
	var item scripted.Item
	ref := s.check(r, seen)
	if ref == nil {
		item, ref = s.next(seen)
	}
	if ref != nil {
		seen.Refused = ref.Message
		s.errors = append(s.errors, fmt.Sprintf("request %d: %s", seen.N, ref.Error()))
	}
	s.seen = append(s.seen, *seen)
	return seen, item, ref
}

// withoutKeys copies headers, save those that hold a secret.
func withoutKeys(h http.Header) http.Header {
	h = h.Clone()
	for _, k := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
		h.Del(k)
	}
	return h
}

func (s *Server) next(seen *Seen) (item scripted.Item, ref *Refusal) {
	if s.pick == nil {
		return item, scriptError("nothing to serve: call Serve or Play before the first request")
	}
	item, err := s.pick(seen)
	if err != nil {
		return item, scriptError(err.Error())
	}
	if s.wire == Gemini {
		for _, c := range item.Calls {
			if !jsonObject(c.Args) {
				return item, scriptError(fmt.Sprintf("the item on line %d has raw arguments, which Gemini cannot send", item.Line))
			}
		}
	}
	return item, nil
}

func scriptError(message string) *Refusal {
	return &Refusal{Rule: "script", Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "script: " + message}
}

func (s *Server) check(r *http.Request, seen *Seen) *Refusal {
	if ref := checkHTTP(s.wire, s.opts.Key, r, seen); ref != nil {
		return ref
	}
	if len(seen.Body) > maxBody {
		return &Refusal{Rule: "too_large", Status: http.StatusRequestEntityTooLarge, Type: "request_too_large",
			Message: "Request exceeds the maximum size"}
	}
	return checkBody(seen, s.led)
}

// Check says whether a provider would accept the body of a request, as far as that can be seen from the body alone: what was
// served before is not known, so signatures and previous responses are not looked at. A refusal is a *Refusal.
func Check(wire string, body []byte) error {
	seen := &Seen{Wire: wire, Body: body}
	if ref := checkBody(seen, nil); ref != nil {
		return ref
	}
	return nil
}

// Read decodes the body of a request that Check accepts into wire-neutral form.
func Read(wire string, body []byte) (Seen, error) {
	seen := Seen{N: 1, Wire: wire, Body: body}
	if ref := checkBody(&seen, nil); ref != nil {
		return seen, ref
	}
	return seen, nil
}

func checkBody(seen *Seen, led *ledger) *Refusal {
	body, ok := parse(seen.Body)
	if !ok {
		return notJSON(seen.Wire)
	}
	switch seen.Wire {
	case Anthropic:
		return checkAnthropic(body, seen, led)
	case OpenAI:
		return checkResponses(body, seen, led)
	case OpenAIChat:
		return checkChat(body, seen, led)
	case Gemini:
		return checkGemini(body, seen, led)
	}
	return &Refusal{Rule: "wire", Status: http.StatusNotFound, Message: "no wire " + strconv.Quote(seen.Wire)}
}

// silence lasts until the client gives up, the server is closed, or Options.Hang is over.
func (s *Server) silence(ctx context.Context) {
	var over <-chan time.Time
	if s.opts.Hang > 0 {
		t := time.NewTimer(s.opts.Hang)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-ctx.Done():
	case <-s.done:
	case <-over:
	}
}

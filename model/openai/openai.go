// Package openai is the adapter for OpenAI's Responses API, through OpenAI's SDK.
//
// By default nothing is stored at the provider: each request carries the whole conversation and asks for encrypted reasoning, so
// that thoughts go back without being kept there. With the option store (Store, or store: true in the agent file) a call within
// a run sends previous_response_id and what is new only; a new message sends the whole conversation, as does the first call
// after the provider has lost the response (Error.Gone).
package openai

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/internal/openaisdk"
	"github.com/ronda-go/ronda/model/internal/openaiwire"
	"github.com/ronda-go/ronda/model/openai/internal/codec"
	"github.com/ronda-go/ronda/model/wire"
)

// Wire is the name of the protocol, as references to models and blocks carry it.
const Wire = codec.Wire

type config struct{ openaisdk.Config }

// Option changes a model.
type Option func(*config)

// BaseURL is the address of the API up to and without responses. Without it OPENAI_BASE_URL is used, else OpenAI's own.
func BaseURL(u string) Option { return func(c *config) { c.BaseURL = u } }

// APIKey is the key. Without it the key is read at the first call from OPENAI_API_KEY, or for a vendor that the catalogue knows
// by its address from that vendor's variable.
func APIKey(key string) Option { return func(c *config) { c.Key = key } }

// HTTPClient replaces the HTTP client, which adapters share.
func HTTPClient(h *http.Client) Option { return func(c *config) { c.HTTP = h } }

// Header adds a header to each request.
func Header(name, value string) Option {
	return func(c *config) {
		if c.Config.Header == nil {
			c.Config.Header = http.Header{}
		}
		c.Config.Header.Add(name, value)
	}
}

// Query adds a parameter to the address, such as Azure's api-version.
func Query(name, value string) Option {
	return func(c *config) {
		if c.Config.Query == nil {
			c.Config.Query = url.Values{}
		}
		c.Config.Query.Set(name, value)
	}
}

// Price overrides the catalogue's.
func Price(p loop.Price) Option { return func(c *config) { c.Price = &p } }

// Window overrides the context window of the catalogue, in tokens.
func Window(tokens int64) Option { return func(c *config) { c.Window = tokens } }

// OutputCap overrides the catalogue's cap on one response, in tokens.
func OutputCap(tokens int64) Option { return func(c *config) { c.Cap = tokens } }

// Defaults are options of the wire (reasoning, text, service_tier, store …) for requests that do not set them.
func Defaults(options map[string]any) Option {
	return func(c *config) { c.Options = maps.Clone(options) }
}

// Store has the provider keep responses, as the option store does.
func Store() Option { return func(c *config) { c.Options = with(c.Options, "store", true) } }

func with(m map[string]any, k string, v any) map[string]any {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]any{}
	}
	m[k] = v
	return m
}

type responses struct {
	client *openaisdk.Client
	info   model.Info
	// plain is set once it is known that the model takes no request for encrypted reasoning.
	plain atomic.Bool
	// strictItems says that the provider looks items up by their ids, so that a thought it neither stored nor gave encrypted
	// must not go back.
	strictItems bool
}

// Model is a model behind the Responses API. Nothing is sent or checked before the first call.
func Model(name string, opts ...Option) model.Model {
	var c config
	for _, o := range opts {
		o(&c)
	}
	m := &responses{client: openaisdk.NewClient(Wire, name, c.Config, c.BaseURL == "")}
	m.info = m.client.Info()
	m.strictItems = m.client.Official()
	if e, ok := m.client.Entry(); ok && !e.Reasons {
		m.plain.Store(true)
	}
	return m
}

// Info implements model.Model.
func (m *responses) Info() model.Info { return m.info }

// Generate implements model.Model.
func (m *responses) Generate(ctx context.Context, req *model.Request, sink func(model.Delta)) (*model.Response, error) {
	cache := req.Cache
	if cache == nil {
		cache = &model.Cache{}
	}
	options := m.client.Options(req.Options)
	stored, _ := options["store"].(bool)
	e := codec.Encode(cache, req.Messages, codec.Rules{Stored: stored, Strict: m.strictItems})
	head, more, err := m.head(req, e, options, stored)
	if err != nil {
		return nil, &model.Error{Class: loop.ClassFatal, Code: "bad_request", Message: err.Error(), Err: err}
	}
	input := cache.Bytes
	if from := req.PreviousLen; stored && req.Previous != "" && from > 0 && from < len(req.Messages) {
		input = cache.Bytes[e.Ends[from-1]:]
		if len(input) > 0 && input[0] == ',' {
			input = input[1:]
		}
	}
	a := wire.Begin(ctx, req.Timeouts)
	defer a.End()
	res, failed := m.client.Post(a.Context(), a, "responses", wire.Splice(head, input, []byte("]}")), req.Stream)
	if failed != nil {
		return m.failed(failed)
	}
	if !req.Stream {
		sink = nil
	}
	answer := &codec.Answer{Sink: sink}
	doing := "reading the answer of " + m.client.Name()
	stream, err := openaiwire.Read(a, res, answer.Event)
	if err != nil {
		return nil, a.Failed(doing, err)
	}
	r, failed := answer.Response(stream, doing)
	if failed != nil {
		return m.failed(failed)
	}
	r.Notes = append(e.Notes, more...)
	return r, nil
}

// failed turns what is the provider's word on one generation into a response, and learns from a refusal of encrypted reasoning.
func (m *responses) failed(e *model.Error) (*model.Response, error) {
	if r, ok := openaiwire.Refused(e); ok {
		return r, nil
	}
	if !m.plain.Load() && e.Status == http.StatusBadRequest && strings.Contains(e.Message, "Encrypted content is not supported") {
		m.plain.Store(true) // the next attempt does not ask for it
		e.Class = loop.ClassTransient
	}
	return nil, e
}

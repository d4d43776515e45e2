// Package openaichat is the adapter for OpenAI's Chat Completions protocol and the many servers that are compatible with it,
// through OpenAI's SDK. Differences between servers are taken from what they send, not from a list of vendors; where a request
// must differ before anything was received, Quirks say how, with defaults by the host of the base URL.
package openaichat

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/internal/openaisdk"
	"github.com/ronda-go/ronda/model/internal/openaiwire"
	"github.com/ronda-go/ronda/model/openaichat/internal/codec"
	"github.com/ronda-go/ronda/model/wire"
)

// Wire is the name of the protocol, as references to models and blocks carry it.
const Wire = codec.Wire

type config struct {
	openaisdk.Config
	quirks Quirks
}

// Option changes a model.
type Option func(*config)

// BaseURL is the address of the server up to and without chat/completions, such as http://localhost:11434/v1. Without it
// OPENAI_BASE_URL is used, else OpenAI's own.
func BaseURL(u string) Option { return func(c *config) { c.BaseURL = u } }

// APIKey is the key. Without it the key is read at the first call: from OPENAI_API_KEY, or for a vendor that the catalogue knows
// by its address from that vendor's variable. Servers other than OpenAI's are called without a key where there is none.
func APIKey(key string) Option { return func(c *config) { c.Key = key } }

// HTTPClient replaces the HTTP client, which adapters share.
func HTTPClient(h *http.Client) Option { return func(c *config) { c.HTTP = h } }

// Header adds a header to each request; an empty value takes one away that the SDK sets.
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

// Defaults are options of the wire (reasoning_effort, service_tier, temperature …) for requests that do not set them.
func Defaults(options map[string]any) Option {
	return func(c *config) { c.Options = maps.Clone(options) }
}

// Quirks say how a server differs from OpenAI's in what it takes. The zero value means: decide by the host.
type Quirks struct {
	// MaxTokens is the member that caps the response. By default max_completion_tokens for OpenAI and Azure, whose reasoning
	// models take nothing else, and max_tokens for all others.
	MaxTokens string
	// NoStreamOptions leaves stream_options out, so that a stream may end without usage.
	NoStreamOptions bool
	// NoThoughts never sends thoughts back. By default they go back in the member in which they came, since DeepSeek, OpenRouter
	// and others refuse or spoil tool loops without them.
	NoThoughts bool
	// ShortIDs makes ids of nine letters and digits for calls that come from elsewhere, as Mistral demands.
	ShortIDs bool
	// SystemRole is the role of the instructions; by default system.
	SystemRole string
}

// Vary sets quirks.
func Vary(q Quirks) Option { return func(c *config) { c.quirks = q } }

type chat struct {
	client *openaisdk.Client
	info   model.Info
	quirks Quirks
}

// Model is a model behind the Chat Completions protocol. Nothing is sent or checked before the first call.
func Model(name string, opts ...Option) model.Model {
	var c config
	for _, o := range opts {
		o(&c)
	}
	m := &chat{client: openaisdk.NewClient(Wire, name, c.Config, false), quirks: c.quirks}
	m.info = m.client.Info()
	if m.quirks.MaxTokens == "" {
		m.quirks.MaxTokens = "max_tokens"
		if m.client.Official() {
			m.quirks.MaxTokens = "max_completion_tokens"
		}
	}
	if m.quirks.SystemRole == "" {
		m.quirks.SystemRole = "system"
	}
	if strings.HasSuffix(m.client.Host(), "mistral.ai") {
		m.quirks.ShortIDs = true
	}
	return m
}

// Info implements model.Model.
func (m *chat) Info() model.Info { return m.info }

// Generate implements model.Model.
func (m *chat) Generate(ctx context.Context, req *model.Request, sink func(model.Delta)) (*model.Response, error) {
	cache := req.Cache
	if cache == nil {
		cache = &model.Cache{}
	}
	e := codec.Encode(cache, req.Messages, codec.Rules{NoThoughts: m.quirks.NoThoughts, ShortIDs: m.quirks.ShortIDs})
	head, more, err := m.head(req, e)
	if err != nil {
		return nil, &model.Error{Class: loop.ClassFatal, Code: "bad_request", Message: err.Error(), Err: err}
	}
	a := wire.Begin(ctx, req.Timeouts)
	defer a.End()
	res, failed := m.client.Post(a.Context(), a, "chat/completions", wire.Splice(head, cache.Bytes, []byte("]}")), req.Stream)
	if failed != nil {
		if r, ok := openaiwire.Refused(failed); ok {
			r.Notes = append(e.Notes, more...)
			return r, nil
		}
		return nil, failed
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
		return nil, failed
	}
	r.Notes = append(e.Notes, more...)
	return r, nil
}

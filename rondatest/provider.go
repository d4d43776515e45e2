package rondatest

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/anthropic"
	"github.com/ronda-go/ronda/model/gemini"
	"github.com/ronda-go/ronda/model/openai"
	"github.com/ronda-go/ronda/model/openaichat"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/rondatest/fake"
)

// adapters make the real adapter of a wire for a provider on loopback.
var adapters = map[string]func(url string, c *http.Client) model.Model{
	fake.Anthropic: func(url string, c *http.Client) model.Model {
		return anthropic.Model("script", anthropic.BaseURL(url), anthropic.APIKey("test"), anthropic.HTTPClient(c))
	},
	fake.OpenAI: func(url string, c *http.Client) model.Model {
		return openai.Model("script", openai.BaseURL(url), openai.APIKey("test"), openai.HTTPClient(c))
	},
	fake.OpenAIChat: func(url string, c *http.Client) model.Model {
		return openaichat.Model("script", openaichat.BaseURL(url), openaichat.APIKey("test"), openaichat.HTTPClient(c))
	},
	fake.Gemini: func(url string, c *http.Client) model.Model {
		return gemini.Model("script", gemini.BaseURL(url), gemini.APIKey("test"), gemini.HTTPClient(c))
	},
}

// provider is the fake provider of one agent: it serves what the deck dealt to the attempt that asks.
type provider struct {
	server *fake.Server
	client *http.Client
	clock  *Clock

	mu   sync.Mutex
	n    int
	open map[string]*dealtItem // by tag
}

type dealtItem struct {
	ctx  context.Context
	item *scripted.Item
	sent *sent
}

// tagHeader names the attempt that a request belongs to, for the fake provider alone.
const tagHeader = "X-Rondatest-Attempt"

type tagKey struct{}

// tagger adds the header.
type tagger struct{ base *http.Transport }

func (t tagger) RoundTrip(r *http.Request) (*http.Response, error) {
	if tag, ok := r.Context().Value(tagKey{}).(string); ok {
		r = r.Clone(r.Context())
		r.Header.Set(tagHeader, tag)
	}
	return t.base.RoundTrip(r)
}

func newProvider(wire string, clock *Clock) *provider {
	p := &provider{server: fake.New(wire, fake.Options{Cut: true, Seed: 1}), clock: clock, open: map[string]*dealtItem{},
		client: &http.Client{Transport: tagger{&http.Transport{}}}}
	p.server.Serve(p.pick)
	return p
}

func (p *provider) close() {
	p.client.Transport.(tagger).base.CloseIdleConnections()
	p.server.Close()
}

// pick finds what answers a request that arrived.
func (p *provider) pick(seen *fake.Seen) (scripted.Item, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.open[seen.Header.Get(tagHeader)]
	if d == nil {
		return scripted.Item{}, fmt.Errorf("request %d belongs to no attempt: the adapter sent it by itself", seen.N)
	}
	if d.sent.seen.Load() != 0 {
		return scripted.Item{}, fmt.Errorf("request %d is a second one of the same attempt: the adapter repeated it by itself", seen.N)
	}
	d.sent.seen.Store(int64(seen.N))
	if d.item.Fail != nil && d.item.Fail.Timeout {
		go func() { _ = p.clock.Hang(d.ctx) }()
	}
	return *d.item, nil
}

// generate sends an attempt through the adapter. The clocks of the attempt are virtual: the driver's clock of the whole call stands for
// them all. A request may arrive after its attempt was given up, so what was dealt stays.
func (p *provider) generate(ctx context.Context, m model.Model, item *scripted.Item, s *sent, req *model.Request, sink func(model.Delta)) (*model.Response, error) {
	p.mu.Lock()
	p.n++
	tag := strconv.Itoa(p.n)
	p.open[tag] = &dealtItem{ctx, item, s}
	p.mu.Unlock()
	r := *req
	r.Timeouts = model.Timeouts{}
	return m.Generate(context.WithValue(ctx, tagKey{}, tag), &r, sink)
}

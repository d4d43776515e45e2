// Package openaisdk sends the requests of the two adapters for OpenAI's protocols through the vendor's SDK: addresses,
// authentication, headers; its retries are off.
package openaisdk

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/catalogue"
	"github.com/ronda-go/ronda/model/internal/openaiwire"
	"github.com/ronda-go/ronda/model/wire"
)

// Config is what the options of an adapter set.
type Config struct {
	BaseURL string // "": OPENAI_BASE_URL, else OpenAI's own
	Key     string // "": from the environment at the first call
	HTTP    *http.Client
	Header  http.Header
	Query   url.Values
	Price   *loop.Price
	Window  int64
	Cap     int64
	Options map[string]any // defaults under those of the request
}

// Client sends requests through the SDK. It is safe for concurrent use.
type Client struct {
	cfg      Config
	wire     string
	name     string
	keyNeeds bool // without a key nothing is sent

	once   sync.Once
	client sdk.Client
	http   *http.Client
	err    *model.Error
	// What the SDK made of the first whole and the first streamed request.
	templates [2]atomic.Pointer[template]
}

// template is what a request has beside its body: address, authentication and headers, as the SDK set them. They are the same
// for each request of a client, and making them anew takes the SDK about a seventh of the CPU time of a short round (some 25
// header operations and four copies of the header; see docs/benchmarks.md), so it makes them once.
type template struct {
	url    *url.URL
	header http.Header
}

// NewClient makes a client; nothing is read from the environment before the first call, save OPENAI_BASE_URL. Where needKey
// is set a key is needed for every address, else for OpenAI's own alone.
func NewClient(wireName, name string, cfg Config, needKey bool) *Client {
	if cfg.BaseURL == "" {
		cfg.BaseURL = os.Getenv("OPENAI_BASE_URL")
	}
	c := &Client{cfg: cfg, wire: wireName, name: name}
	c.keyNeeds = needKey || c.Official()
	return c
}

// Official reports whether the address is OpenAI's own or Azure's, whose rules are the same.
func (c *Client) Official() bool {
	if c.cfg.BaseURL == "" {
		return true
	}
	host := c.host()
	return host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com") || c.Azure()
}

// Azure reports whether the address is one of Azure's resources.
func (c *Client) Azure() bool {
	host := c.host()
	return strings.HasSuffix(host, ".openai.azure.com") || strings.HasSuffix(host, ".azure.com")
}

// Host is the host of the base URL, without a port.
func (c *Client) host() string {
	u, err := url.Parse(c.cfg.BaseURL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Host is the host that requests go to.
func (c *Client) Host() string {
	if c.cfg.BaseURL == "" {
		return "api.openai.com"
	}
	return c.host()
}

// Info fills what the catalogue knows under what the options say.
func (c *Client) Info() model.Info {
	info := model.Info{Wire: c.wire, Name: c.name, Price: c.cfg.Price, ContextWindow: c.cfg.Window, OutputCap: c.cfg.Cap}
	e, ok := c.Entry()
	if !ok {
		return info
	}
	if info.Price == nil {
		info.Price = e.Price
	}
	if info.ContextWindow == 0 {
		info.ContextWindow = e.Window
	}
	if info.OutputCap == 0 {
		info.OutputCap = e.Cap
	}
	if e.Media {
		info.Media = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}
	}
	return info
}

// Entry is the catalogue's: of the provider that has the address, else of OpenAI by the model's name.
func (c *Client) Entry() (catalogue.Entry, bool) {
	if c.cfg.BaseURL != "" {
		if e, ok := catalogue.LookupAt(c.cfg.BaseURL, c.name); ok {
			return e, true
		}
	}
	return catalogue.Lookup(c.wire, c.name)
}

// key finds the key and the variable that it was looked for in. A vendor that the catalogue knows has a variable of its own:
// another vendor's key is never sent to it.
func (c *Client) key() (key, variable string) {
	variable = "OPENAI_API_KEY"
	if c.cfg.BaseURL != "" && !c.Official() {
		if v, ok := catalogue.At(c.cfg.BaseURL); ok && v.Key != "" {
			variable = v.Key
		}
	}
	if c.Azure() {
		variable = "AZURE_OPENAI_API_KEY"
	}
	if c.cfg.Key != "" {
		return c.cfg.Key, variable
	}
	if key = os.Getenv(variable); key == "" && c.Azure() {
		key = os.Getenv("OPENAI_API_KEY")
	}
	return key, variable
}

func (c *Client) start() {
	key, variable := c.key()
	if key == "" && c.keyNeeds {
		c.err = &model.Error{
			Class: loop.ClassFatal, Code: "no_api_key",
			Message: "no key for " + c.wire + "/" + c.name + ": set " + variable + ", or run with --scripted",
			Err:     errors.New(variable + " is not set"),
		}
		return
	}
	if c.http = c.cfg.HTTP; c.http == nil {
		c.http = wire.Client()
	}
	// The SDK's own defaults come from OPENAI_* variables, among them an organisation and headers that are not for other
	// vendors; so the options are given in full.
	opts := []option.RequestOption{option.WithEnvironmentProduction(), option.WithHTTPClient(c.http), option.WithMaxRetries(0)}
	if c.cfg.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(c.cfg.BaseURL))
	}
	switch {
	case key != "" && c.Azure():
		opts = append(opts, option.WithHeader("Api-Key", key))
	case key != "":
		opts = append(opts, option.WithAPIKey(key))
	}
	if c.Official() && !c.Azure() {
		if v := os.Getenv("OPENAI_ORG_ID"); v != "" {
			opts = append(opts, option.WithOrganization(v))
		}
		if v := os.Getenv("OPENAI_PROJECT_ID"); v != "" {
			opts = append(opts, option.WithProject(v))
		}
	}
	for name, values := range c.cfg.Header {
		opts = append(opts, option.WithHeader(name, strings.Join(values, ", ")))
	}
	for name, values := range c.cfg.Query {
		opts = append(opts, option.WithQuery(name, values[0]))
	}
	c.client = sdk.Client{Options: opts}
}

// Post sends a body and returns the response once its head is there. The error is always an *model.Error; a status of 400 and
// above is one. The caller closes the body of the response.
func (c *Client) Post(ctx context.Context, a *wire.Attempt, path string, body *wire.Body, stream bool) (*http.Response, *model.Error) {
	if c.once.Do(c.start); c.err != nil {
		return nil, c.err
	}
	kept := &c.templates[0]
	if stream {
		kept = &c.templates[1]
	}
	var res *http.Response
	var err error
	t := kept.Load()
	if t != nil {
		if res, err = c.again(ctx, t, body); err == nil && res.StatusCode/100 == 3 {
			res.Body.Close() // the SDK has rules for redirects
			t, body = nil, body.Again()
		}
	}
	if t == nil {
		res, err = c.first(ctx, kept, path, body, stream)
	}
	if res == nil || err != nil && res.StatusCode < 400 {
		return nil, a.Failed("calling "+c.Name(), err)
	}
	a.Answered()
	if res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	b, rerr := wire.ReadAll(a.Body(res.Body), res.ContentLength)
	if rerr != nil {
		return nil, a.Failed("reading the error of "+c.Name(), rerr)
	}
	e := openaiwire.Failure(res.StatusCode, res.Header, b)
	if res.StatusCode == http.StatusUnauthorized {
		if key, variable := c.key(); key == "" {
			e.Message += " (no key was sent: set " + variable + ")"
		} else if c.cfg.Key == "" {
			e.Message += " (the key is that of the environment: " + variable + ")"
		}
	}
	return nil, e
}

// first sends a request through the SDK and keeps what it made of it.
func (c *Client) first(ctx context.Context, keep *atomic.Pointer[template], path string, body *wire.Body, stream bool) (*http.Response, error) {
	opts := []option.RequestOption{option.WithRequestBody("application/json", io.Reader(body)), option.WithMiddleware(
		func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			keep.Store(&template{url: r.URL, header: r.Header.Clone()})
			r.ContentLength = body.Len() // else the SDK sends a reader in pieces, without a length
			r.GetBody = func() (io.ReadCloser, error) { return body.Again(), nil }
			return next(r)
		})}
	if stream {
		opts = append(opts, option.WithHeader("Accept", "text/event-stream"))
	}
	var res *http.Response
	// The SDK has read and put back the body of an error by the time it reports one; with the response it says all.
	err := c.client.Post(ctx, path, nil, &res, opts...)
	return res, err
}

// again sends a request as the SDK made the first. It follows no redirect.
func (c *Client) again(ctx context.Context, t *template, body *wire.Body) (*http.Response, error) {
	r := (&http.Request{
		Method: http.MethodPost, URL: t.url, Host: t.url.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: t.header, Body: body, ContentLength: body.Len(),
		GetBody: func() (io.ReadCloser, error) { return body.Again(), nil },
	}).WithContext(ctx)
	if c.cfg.HTTP == nil {
		// A round trip without what http.Client does around it for cookies, redirects and its own clock, none of which are wanted.
		return c.http.Transport.RoundTrip(r)
	}
	r.Header = t.header.Clone()
	return c.http.Do(r)
}

// Name is wire/name.
func (c *Client) Name() string { return c.wire + "/" + c.name }

// Options merges the adapter's defaults under those of a request.
func (c *Client) Options(req map[string]any) map[string]any {
	if len(c.cfg.Options) == 0 {
		return req
	}
	all := make(map[string]any, len(req)+len(c.cfg.Options))
	for k, v := range c.cfg.Options {
		all[k] = v
	}
	for k, v := range req {
		all[k] = v
	}
	return all
}

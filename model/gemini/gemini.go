// Package gemini is the adapter of Google's Gemini models (generateContent of the Developer API and of Vertex AI) on the
// vendor's SDK (google.golang.org/genai).
//
// The SDK resolves the key or the credentials, the endpoint and the API version, and its HTTP client sends. It takes no ready
// body: it turns every request into maps and encodes the whole history at each call, so the request is posted here, with the
// spliced body, through the client and the settings of genai.Client.ClientConfig. Responses are read by narrow scanning, because
// signatures and unknown parts must keep their bytes.
//
// Options of a request (model.Request.Options) go into generationConfig by name, with these exceptions: safetySettings,
// cachedContent, labels, serviceTier and modelArmorConfig are members of the request; "thinking_budget" (tokens, -1: the model
// chooses) is short for thinkingConfig; "server_tools" is a list that follows the declared tools ({"googleSearch": {}}).
package gemini

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"

	"cloud.google.com/go/auth"
	"google.golang.org/genai"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/catalogue"
	"github.com/ronda-go/ronda/model/wire"
)

// wireName is what blocks of this wire carry.
const wireName = "gemini"

// Environment variables of the API key, in the order in which they are looked at.
const (
	KeyVariable      = "GEMINI_API_KEY"
	OtherKeyVariable = "GOOGLE_API_KEY"
)

// Option changes what Model makes.
type Option func(*adapter)

// BaseURL replaces the vendor's address, without the API version.
func BaseURL(url string) Option { return func(a *adapter) { a.config.HTTPOptions.BaseURL = url } }

// APIKey is the key. Without it the environment is read at the first call: GEMINI_API_KEY, then GOOGLE_API_KEY.
func APIKey(key string) Option { return func(a *adapter) { a.config.APIKey = key } }

// HTTPClient sends the requests. It must not have a timeout of its own; requests have clocks. On Vertex AI it must bring the
// credentials, unless Credentials are given.
func HTTPClient(c *http.Client) Option { return func(a *adapter) { a.config.HTTPClient = c } }

// Vertex uses Vertex AI in a project and location ("" for both: GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or a key in
// express mode), with the application default credentials unless others are given.
func Vertex(project, location string) Option {
	return func(a *adapter) {
		a.config.Backend = genai.BackendVertexAI
		a.config.Project, a.config.Location = project, location
	}
}

// Credentials are Google credentials for Vertex AI.
func Credentials(c *auth.Credentials) Option { return func(a *adapter) { a.config.Credentials = c } }

// Header adds a header to each request.
func Header(name, value string) Option {
	return func(a *adapter) {
		if a.config.HTTPOptions.Headers == nil {
			a.config.HTTPOptions.Headers = http.Header{}
		}
		a.config.HTTPOptions.Headers.Set(name, value)
	}
}

// Price overrides the catalogue's.
func Price(p loop.Price) Option { return func(a *adapter) { a.info.Price = &p } }

// Window overrides the catalogue's context window, in tokens.
func Window(tokens int64) Option { return func(a *adapter) { a.info.ContextWindow = tokens } }

// OutputCap overrides the catalogue's cap of a response, in tokens.
func OutputCap(tokens int64) Option { return func(a *adapter) { a.info.OutputCap = tokens } }

// Model is a Gemini model. It does no I/O before the first call.
func Model(name string, opts ...Option) model.Model {
	a := &adapter{info: model.Info{Wire: wireName, Name: name}}
	a.config.Backend = genai.BackendGeminiAPI
	for _, o := range opts {
		o(a)
	}
	e, _ := catalogue.Lookup(wireName, name)
	if a.info.Price == nil {
		a.info.Price = e.Price
	}
	if a.info.ContextWindow == 0 {
		a.info.ContextWindow = e.Window
	}
	if a.info.OutputCap == 0 {
		a.info.OutputCap = e.Cap
	}
	a.info.Media = []string{"image/*", "audio/*", "video/*", "application/pdf", "text/*"}
	return a
}

type adapter struct {
	info   model.Info
	config genai.ClientConfig

	mu   sync.Mutex
	line *line
}

// line is what the SDK resolved: where to post, as whom, with which client.
type line struct {
	client *http.Client
	whole  string // URL
	stream string // URL
	header http.Header
}

// Info implements model.Model.
func (a *adapter) Info() model.Info { return a.info }

// connect resolves key, endpoint and credentials at the first call. A failure is not remembered.
func (a *adapter) connect(ctx context.Context) (*line, *model.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.line != nil {
		return a.line, nil
	}
	cfg := a.config
	vertex := cfg.Backend == genai.BackendVertexAI
	if cfg.APIKey == "" && !vertex {
		if cfg.APIKey = os.Getenv(KeyVariable); cfg.APIKey == "" {
			cfg.APIKey = os.Getenv(OtherKeyVariable)
		}
		if cfg.APIKey == "" {
			return nil, unusable("no_api_key", "no key for Gemini: set "+KeyVariable+" (or "+OtherKeyVariable+"), or run with --scripted", nil)
		}
	}
	if cfg.HTTPClient == nil && !vertex {
		cfg.HTTPClient = wire.Client()
	}
	if cfg.HTTPClient != nil && vertex && cfg.Credentials != nil {
		return nil, unusable("configuration", "gemini: give HTTPClient or Credentials, not both", nil)
	}
	c, err := genai.NewClient(ctx, &cfg)
	if err != nil {
		return nil, unusable("configuration", "gemini: "+redact(err.Error()), nil)
	}
	l, err := resolve(c.ClientConfig(), a.info.Name)
	if err != nil {
		return nil, unusable("configuration", "gemini: "+err.Error(), err)
	}
	a.line = l
	return l, nil
}

// redact cuts what the SDK prints of its configuration, which may hold the key.
func redact(s string) string {
	s, _, _ = strings.Cut(s, "ClientConfig:")
	return strings.TrimSpace(s)
}

func unusable(code, message string, err error) *model.Error {
	return &model.Error{Class: loop.ClassFatal, Code: code, Message: message, Err: err}
}

// resolve puts the addresses and headers together in the way of the SDK.
func resolve(cfg genai.ClientConfig, name string) (*line, error) {
	if name == "" || strings.ContainsAny(name, "?&#") || strings.Contains(name, "..") {
		return nil, fmt.Errorf("model %q: not a name of a model", name)
	}
	path := name
	if cfg.Backend == genai.BackendVertexAI {
		owner, rest, ok := strings.Cut(name, "/")
		switch {
		case !ok:
			path = "publishers/google/models/" + name
		case owner != "projects" && owner != "models" && owner != "publishers":
			path = "publishers/" + owner + "/models/" + rest
		}
		if cfg.Project != "" && cfg.Location != "" && owner != "projects" {
			path = "projects/" + cfg.Project + "/locations/" + cfg.Location + "/" + path
		}
	} else if !strings.HasPrefix(name, "models/") && !strings.HasPrefix(name, "tunedModels/") {
		path = "models/" + name
	}
	url := strings.TrimRight(cfg.HTTPOptions.BaseURL, "/") + "/" + cfg.HTTPOptions.APIVersion + "/" + path
	h := http.Header{}
	for k, v := range cfg.HTTPOptions.Headers {
		h[http.CanonicalHeaderKey(k)] = v
	}
	h.Set("Content-Type", "application/json")
	h.Add("X-Goog-Api-Client", "ronda gl-go/"+strings.TrimPrefix(runtime.Version(), "go"))
	if cfg.APIKey != "" {
		h.Set("X-Goog-Api-Key", cfg.APIKey)
	}
	return &line{
		client: cfg.HTTPClient, whole: url + ":generateContent", stream: url + ":streamGenerateContent?alt=sse", header: h,
	}, nil
}

// Package anthropic is the adapter of the Anthropic Messages API on the vendor's SDK (github.com/anthropics/anthropic-sdk-go).
//
// The SDK resolves endpoint, credentials and headers and sends; its retries are off. The body is ours: messages are
// encoded once and spliced, since the SDK would encode the whole history again at every call. Responses are read by narrow
// scanning, because the loop needs the raw bytes of signed and unknown blocks.
//
// Options of a request (model.Request.Options) go into the body by name, with these exceptions: "thinking_budget" (tokens) is
// short for "thinking"; "cache_control" replaces the marker of the prompt cache (false: no caching); "server_tools" is a list
// that follows the declared tools; "betas" is a list that becomes the anthropic-beta header; "disable_parallel_tool_use" goes
// into the tool choice.
package anthropic

import (
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/catalogue"
	"github.com/ronda-go/ronda/model/wire"
)

// wireName is what blocks of this wire carry.
const wireName = "anthropic"

// KeyVariable is the environment variable of the API key.
const KeyVariable = "ANTHROPIC_API_KEY"

// defaultCap is the max_tokens of a model of which no cap is known. The API requires the field.
const defaultCap = 32_000

// Option changes what Model makes.
type Option func(*adapter)

// BaseURL replaces the vendor's address (and ANTHROPIC_BASE_URL), without the /v1.
func BaseURL(url string) Option { return func(a *adapter) { a.baseURL = url } }

// APIKey is the key. Without it the environment is read at the first call: ANTHROPIC_API_KEY, else what the SDK knows
// (ANTHROPIC_AUTH_TOKEN, profiles, federation).
func APIKey(key string) Option { return func(a *adapter) { a.key = key } }

// HTTPClient sends the requests. It must not have a timeout of its own; requests have clocks.
func HTTPClient(c *http.Client) Option { return func(a *adapter) { a.http = c } }

// Price overrides the catalogue's.
func Price(p loop.Price) Option { return func(a *adapter) { a.info.Price = &p } }

// Window overrides the catalogue's context window, in tokens.
func Window(tokens int64) Option { return func(a *adapter) { a.info.ContextWindow = tokens } }

// OutputCap overrides the catalogue's cap of a response, in tokens.
func OutputCap(tokens int64) Option { return func(a *adapter) { a.info.OutputCap = tokens } }

// SDK adds options of the vendor's SDK: other credentials, Bedrock or Vertex AI, headers, middleware. With it no key is asked
// for, since the options may bring the credentials.
func SDK(opts ...option.RequestOption) Option {
	return func(a *adapter) { a.sdk = append(a.sdk, opts...) }
}

// Model is a model of the Messages API. It does no I/O before the first call.
func Model(name string, opts ...Option) model.Model {
	a := &adapter{info: model.Info{Wire: wireName, Name: name}}
	for _, o := range opts {
		o(a)
	}
	e, ok := catalogue.Entry{}, false
	if a.baseURL != "" {
		e, ok = catalogue.LookupAt(a.baseURL, name)
	}
	if !ok {
		e, _ = catalogue.Lookup(wireName, name)
	}
	if a.info.Price == nil {
		a.info.Price = e.Price
	}
	if a.info.ContextWindow == 0 {
		a.info.ContextWindow = e.Window
	}
	if a.info.OutputCap == 0 {
		a.info.OutputCap = e.Cap
	}
	a.info.Media = []string{"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf", "text/plain"}
	return a
}

type adapter struct {
	info    model.Info
	baseURL string
	key     string
	http    *http.Client
	sdk     []option.RequestOption

	mu     sync.Mutex
	client *sdk.Client
	static bool // what the SDK resolves is the same for every call
	line   atomic.Pointer[line]
}

// Info implements model.Model.
func (a *adapter) Info() model.Info { return a.info }

// connect makes the SDK's client at the first call. A missing key is not remembered: the next call looks again.
func (a *adapter) connect() (*sdk.Client, *model.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		return a.client, nil
	}
	if a.key == "" && len(a.sdk) == 0 && !credentials() {
		return nil, &model.Error{
			Class: loop.ClassFatal, Code: "no_api_key",
			Message: "no key for Anthropic: set " + KeyVariable + ", or run with --scripted",
		}
	}
	opts := []option.RequestOption{option.WithMiddleware(deliver), option.WithMaxRetries(0)}
	if a.http == nil {
		a.http = wire.Client()
	}
	opts = append(opts, option.WithHTTPClient(a.http))
	a.static = len(a.sdk) == 0 && (a.key != "" || os.Getenv(KeyVariable) != "")
	if a.baseURL != "" {
		opts = append(opts, option.WithBaseURL(a.baseURL))
	}
	if a.key != "" {
		opts = append(opts, option.WithoutEnvironmentDefaults(), option.WithAPIKey(a.key))
		if url := os.Getenv("ANTHROPIC_BASE_URL"); url != "" && a.baseURL == "" {
			opts = append(opts, option.WithBaseURL(url))
		}
	}
	c := sdk.NewClient(append(opts, a.sdk...)...)
	a.client = &c
	return a.client, nil
}

// credentials reports whether the environment holds any that the SDK knows of.
func credentials() bool {
	for _, name := range []string{KeyVariable, "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_FEDERATION_RULE_ID"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

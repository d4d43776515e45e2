// Package http makes tools from HTTP requests: arguments as the JSON body or the query, the result in the body of the answer,
// the class of an error in the status.
package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	nethttp "net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// DefaultMaxBody bounds the part of an answer that is kept.
const DefaultMaxBody = 10 << 20

// Spec describes an HTTP tool. Zero values are useful but for the name and the URL.
type Spec struct {
	// Def is what the tool declares. An empty Destination becomes the method and the URL as it is written, so that an
	// approval binds them.
	tool.Def
	Method string // "": POST
	// URL is absolute, http or https. {name} in its path or query stands for the argument of that name, escaped; such an
	// argument is not sent again. Scheme and host are fixed: a model never chooses where a request goes.
	URL string
	// Headers are sent with each request. Values may refer to environment variables as ${NAME}: resolved at each call, never
	// recorded, and hidden again in what the server says.
	Headers map[string]string
	MaxBody int // bytes of an answer that are kept; 0: 10 MiB
	// Arrange, where it is set, says where the arguments of a call go, in place of New's rule; it gets those that the URL does not
	// take, and what it leaves in no part is not sent. An error says what the model can mend. Called concurrently.
	Arrange func(args map[string]json.RawMessage) (Parts, error)
	// Transport replaces the package's own; nil is right but for tests and proxies. It must not repeat requests by itself
	// (net/http's does on connections it keeps alive): attempts are ronda's, on record.
	Transport nethttp.RoundTripper
}

// Parts are the parts of a request that arguments go into, beside the URL.
type Parts struct {
	Query   string            // encoded, without the question mark
	Headers map[string]string // never one that Spec.Headers or New sets
	Body    []byte            // nil: none
	Type    string            // media type of the body; "": application/json
}

// New makes the tool; the error names the field that is wrong.
//
// Arguments go into the query for GET, HEAD and DELETE (a text as it is, other values in JSON, a list as a repeated member,
// null left out), into a JSON body else. The call's key is sent as Idempotency-Key.
//
// Statuses: 2xx is a result, {"result", "facts"} objects are split. 400 and 422 are invalid; 401 and 403 denied; 425, 429 and
// 503 transient, with the wait of Retry-After; 408, 502 and 504 unknown, since a server or one behind it may have begun; all
// others are ordinary errors, 500 too: there the server itself says that it failed, as a command does with its exit code.
// Redirects are followed to the same scheme and host only, at most five, and never so that a method changes.
//
// A request that did not reach a server (name not found, connection refused, no answer to the handshake) is transient and
// did not run; a certificate that does not fit is an ordinary error and did not run. A connection that is cut, or time that
// is up, after a connection stood, is unknown.
func New(s Spec) (tool.Tool, error) {
	wrap := func(err error) (tool.Tool, error) { return nil, fmt.Errorf("tool %q: %w", s.Name, err) }
	r := &request{method: strings.ToUpper(s.Method), headers: maps.Clone(s.Headers), maxBody: s.MaxBody, timeout: s.Timeout, reads: s.Effect == loop.Read, arrange: s.Arrange}
	if r.method == "" {
		r.method = nethttp.MethodPost
	}
	if !slices.Contains([]string{"GET", "HEAD", "DELETE", "POST", "PUT", "PATCH"}, r.method) {
		return wrap(fmt.Errorf("method: %q is none; use GET, HEAD, DELETE, POST, PUT or PATCH", s.Method))
	}
	if s.MaxBody < 0 {
		return wrap(errors.New("max_body must not be negative"))
	}
	if r.maxBody == 0 {
		r.maxBody = DefaultMaxBody
	}
	var err error
	if r.url, err = parseTemplate(s.URL); err != nil {
		return wrap(fmt.Errorf("url: %w", err))
	}
	if err := r.url.verify(s.Input); err != nil {
		return wrap(fmt.Errorf("url: %w", err))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if err := checkHeader(name, s.Headers[name]); err != nil {
			return wrap(fmt.Errorf("headers: %s: %w", name, err))
		}
	}
	if s.Check {
		return wrap(errors.New("check: an HTTP tool cannot check an effect; use the key"))
	}
	r.client = client(s)
	if s.Destination == "" {
		s.Destination = r.method + " " + s.URL
	}
	t := tool.New(s.Def, r.run)
	if _, err := tool.Verify(t); err != nil {
		return nil, err
	}
	return t, nil
}

// Connections are kept alive only for tools that read: net/http repeats a request by itself when a kept connection turns out
// to be dead, and takes an Idempotency-Key for leave to do so with any method.
var (
	reading = transport(true)
	writing = transport(false)
)

func transport(keep bool) nethttp.RoundTripper {
	return &nethttp.Transport{
		Proxy:               nethttp.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		DisableKeepAlives:   !keep,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     90 * time.Second,
	}
}

func client(s Spec) *nethttp.Client {
	c := &nethttp.Client{Transport: s.Transport, CheckRedirect: sameHost}
	if c.Transport == nil {
		c.Transport = writing
		if s.Effect == loop.Read {
			c.Transport = reading
		}
	}
	return c
}

// sameHost stops at a redirect that leads elsewhere or would change the method; the answer is then the redirect itself.
func sameHost(next *nethttp.Request, via []*nethttp.Request) error {
	first := via[0]
	if len(via) > 5 || next.Method != first.Method || next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host {
		return nethttp.ErrUseLastResponse
	}
	return nil
}

func checkHeader(name, value string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return errors.New("this is no name of a header")
	}
	switch nethttp.CanonicalHeaderKey(name) {
	case "Idempotency-Key", "Content-Length", "Transfer-Encoding", "Connection":
		return errors.New("this header is not yours to set")
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return errors.New("the value holds characters that a header cannot")
	}
	return tool.CheckReferences(value)
}

// template is a URL with places for arguments.
type template struct {
	raw   string
	host  string
	names []string
}

var place = regexp.MustCompile(`\{([^{}]*)\}`)
var placeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

func parseTemplate(raw string) (template, error) {
	t := template{raw: raw}
	if strings.Contains(raw, "${") {
		return t, errors.New("references to the environment are for headers only")
	}
	for _, m := range place.FindAllStringSubmatch(raw, -1) {
		if !placeName.MatchString(m[1]) {
			return t, fmt.Errorf("{%s} names no argument", m[1])
		}
		t.names = append(t.names, m[1])
	}
	u, err := url.Parse(place.ReplaceAllString(raw, "x"))
	if err != nil {
		return t, fmt.Errorf("%q cannot be read", raw) // without the cause: it repeats the placeholder's stand-in
	}
	_, head, _ := strings.Cut(raw, "://")
	head, _, _ = strings.Cut(head, "/")
	head, _, _ = strings.Cut(head, "?")
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return t, fmt.Errorf("%q is not absolute; begin with http:// or https://", raw)
	case u.User != nil:
		return t, errors.New("credentials do not belong here; send a header with ${NAME}")
	case place.MatchString(strings.SplitN(raw, "://", 2)[0]):
		return t, errors.New("an argument must not choose the scheme")
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return t, errors.New("a fragment (#…) is never sent")
	case strings.ContainsAny(head, "{}"):
		return t, errors.New("an argument must not choose the host")
	case strings.ContainsAny(place.ReplaceAllString(raw, ""), "{}"):
		return t, errors.New("a brace has no partner")
	}
	t.host = u.Host
	return t, nil
}

// verify checks that the arguments of the template exist, where the schema names its members.
func (t template) verify(input json.RawMessage) error {
	var schema struct {
		Properties map[string]json.RawMessage
	}
	if json.Unmarshal(input, &schema) != nil || schema.Properties == nil {
		return nil // what is wrong with a schema is said elsewhere
	}
	for _, n := range t.names {
		if _, ok := schema.Properties[n]; !ok {
			return fmt.Errorf("the input has no argument %q", n)
		}
	}
	return nil
}

// expand puts arguments into the template and takes them out of args.
func (t template) expand(args map[string]json.RawMessage) (*url.URL, error) {
	path, query, hasQuery := strings.Cut(t.raw, "?")
	values := map[string]string{}
	for _, n := range t.names {
		v, err := scalar(args[n])
		if err != nil {
			return nil, fmt.Errorf("%s: %w; it is a part of the address", n, err)
		}
		values[n] = v
	}
	fill := func(s string, escape func(string) string) string {
		return place.ReplaceAllStringFunc(s, func(m string) string { return escape(values[m[1:len(m)-1]]) })
	}
	full := fill(path, url.PathEscape)
	for i, segment := range strings.Split(full, "/") {
		// A template's own dots are its author's; those that an argument makes would climb out of the folder.
		if u, err := url.PathUnescape(segment); i > 2 && err == nil && (u == "." || u == "..") && strings.Contains(strings.Split(path, "/")[i], "{") {
			return nil, fmt.Errorf("%q is no name in an address", u)
		}
	}
	if hasQuery {
		full += "?" + fill(query, url.QueryEscape)
	}
	for _, n := range t.names {
		delete(args, n)
	}
	u, err := url.Parse(full)
	if err == nil && u.Host != t.host {
		err = errors.New("the arguments change the host of the address")
	}
	return u, err
}

// scalar spells a value for a place in the address.
func scalar(raw json.RawMessage) (string, error) {
	var s string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", errors.New("missing")
	case raw[0] == '{' || raw[0] == '[':
		return "", errors.New("must be a text, a number, true or false")
	case raw[0] == '"':
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", err
		}
	default:
		s = string(raw)
	}
	if s == "" {
		return "", errors.New("must not be empty")
	}
	return s, nil
}

// request is what New keeps of a Spec. It is not changed afterwards.
type request struct {
	method  string
	url     template
	headers map[string]string
	maxBody int
	timeout time.Duration
	reads   bool
	client  *nethttp.Client
	arrange func(map[string]json.RawMessage) (Parts, error)
}

// build makes the request of one call; the error says what is wrong with the arguments.
func (r *request) build(ctx context.Context, call tool.Call) (*nethttp.Request, error) {
	args := map[string]json.RawMessage{}
	body := call.Args
	if len(body) > 0 {
		if err := json.Unmarshal(body, &args); err != nil {
			return nil, fmt.Errorf("the arguments are no JSON object: %w", err)
		}
	}
	u, err := r.url.expand(args)
	if err != nil {
		return nil, err
	}
	if r.arrange != nil {
		return r.arranged(ctx, u, args)
	}
	if r.method == nethttp.MethodGet || r.method == nethttp.MethodHead || r.method == nethttp.MethodDelete {
		if err := addQuery(u, args); err != nil {
			return nil, err
		}
		return nethttp.NewRequestWithContext(ctx, r.method, u.String(), nil)
	}
	if len(body) == 0 || len(r.url.names) > 0 {
		if body, err = marshal(args); err != nil {
			return nil, err
		}
	}
	req, err := nethttp.NewRequestWithContext(ctx, r.method, u.String(), strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	if !r.reads {
		req.GetBody = nil // so that nobody below sends it a second time
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

func addQuery(u *url.URL, args map[string]json.RawMessage) error {
	q := url.Values{}
	for name, raw := range args {
		list := []json.RawMessage{raw}
		if raw[0] == '[' {
			if err := json.Unmarshal(raw, &list); err != nil {
				return err
			}
		}
		for _, v := range list {
			if string(v) == "null" {
				continue
			}
			s := string(v)
			if v[0] == '"' {
				if err := json.Unmarshal(v, &s); err != nil {
					return err
				}
			}
			q.Add(name, s)
		}
	}
	if enc := q.Encode(); enc != "" && u.RawQuery != "" {
		u.RawQuery += "&" + enc
	} else if enc != "" {
		u.RawQuery = enc
	}
	return nil
}

// lookup is where references are resolved.
var lookup = os.LookupEnv

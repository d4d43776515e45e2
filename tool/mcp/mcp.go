// Package mcp makes tools of what MCP servers offer, through the official SDK: over the standard streams of a program that is
// started for it, or over streamable HTTP.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	nethttp "net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/http/httpguts"

	"github.com/ronda-go/ronda/tool"
)

// Defaults of a Spec.
const (
	DefaultConnectTime = time.Minute
	DefaultIdle        = time.Minute
	DefaultMaxTime     = 10 * time.Minute
	DefaultMaxResult   = 10 << 20
	DefaultGrace       = 2 * time.Second
)

// KeyMeta is the member of a call's _meta that holds the idempotency key: the same in each attempt of a call.
const KeyMeta = "io.github.ronda-go/idempotency-key"

// Spec says how to reach a server and what to offer of it. Exactly one of Command and URL is set; the other zero values are
// useful.
type Spec struct {
	// Command is a program and its arguments, which speaks MCP on its standard input and output. A program with a slash begins
	// at Dir. It gets PATH, HOME and a few more variables that hold no secrets by their purpose, and Env; nothing else.
	Command []string
	Dir     string            // where the program runs; "": here
	Env     map[string]string // values may refer to variables of this process as ${NAME}

	// URL is the address of a server that speaks streamable HTTP. Redirects are followed to the same host only.
	URL     string
	Headers map[string]string // sent with each request; values may refer to environment variables as ${NAME}

	tool.Offer // names are the server's own

	ConnectTime time.Duration // for starting or reaching the server and its first answers; 0: 1 minute
	// Idle is the longest time of a call without an answer and without a notification of progress; 0: 1 minute. Progress keeps
	// a call alive for MaxTime at most (0: 10 minutes). A timeout that an override sets bounds both.
	Idle, MaxTime time.Duration
	MaxResult     int           // bytes of text and media of a result that are kept; 0: 10 MiB
	Grace         time.Duration // what a program gets to end after its input was closed, and again after SIGTERM; 0: 2 s

	// OnChange is told when a server changes what it offers, in its order, from one goroutine at a time. nil: nobody is.
	OnChange func(Change)

	// Transport makes the transport of each connection in place of Command and URL, for tests and servers in the same process;
	// Name then names the server in destinations.
	Transport func(ctx context.Context) (sdk.Transport, error)
	Name      string
}

// Change is a difference between what a server offered before and what it offers now. Tools that an agent has got stay as they
// are: their calls go on where only words changed or the tool only reads, and are refused without being sent where the tool is
// gone or another one now.
type Change struct {
	Tool string // the server's own name
	Kind string // added, removed, changed (arguments, effect or server), reworded (descriptions, results)
	Was  string // digest of the definition; "" for added
	Is   string // "" for removed
}

// lookup is where references are resolved.
var lookup = os.LookupEnv

func (s *Spec) withDefaults() {
	for _, d := range []struct {
		value *time.Duration
		zero  time.Duration
	}{{&s.ConnectTime, DefaultConnectTime}, {&s.Idle, DefaultIdle}, {&s.MaxTime, DefaultMaxTime}, {&s.Grace, DefaultGrace}} {
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if s.MaxResult == 0 {
		s.MaxResult = DefaultMaxResult
	}
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (s *Spec) validate() error {
	ways := 0
	for _, set := range []bool{len(s.Command) > 0, s.URL != "", s.Transport != nil} {
		if set {
			ways++
		}
	}
	switch {
	case ways != 1:
		return errors.New("want exactly one of command and url")
	case s.ConnectTime < 0 || s.Idle < 0 || s.MaxTime < 0 || s.Grace < 0 || s.MaxResult < 0:
		return errors.New("times and max_result must not be negative")
	case s.URL != "":
		return s.validateHTTP()
	}
	for _, a := range s.Command {
		if strings.ContainsRune(a, 0) {
			return fmt.Errorf("command: %q holds a NUL", a)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !envName.MatchString(name) {
			return fmt.Errorf("env: %q is no name of a variable", name)
		}
		if strings.ContainsRune(s.Env[name], 0) {
			return fmt.Errorf("env: %s: the value holds a NUL", name)
		}
		if err := tool.CheckReferences(s.Env[name]); err != nil {
			return fmt.Errorf("env: %s: %w", name, err)
		}
	}
	return nil
}

// kept are headers that the protocol itself sets.
var kept = []string{"Accept", "Content-Type", "Content-Length", "Transfer-Encoding", "Connection", "Last-Event-Id"}

func (s *Spec) validateHTTP() error {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil:
		return fmt.Errorf("url: %q cannot be read", s.URL)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("url: %q is not absolute; begin with http:// or https://", s.URL)
	case u.User != nil:
		return errors.New("url: credentials do not belong here; send a header with ${NAME}")
	case u.Fragment != "" || strings.Contains(s.URL, "#"):
		return errors.New("url: a fragment (#…) is never sent")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		canonical := nethttp.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return fmt.Errorf("headers: %q is no name of a header", name)
		case slices.Contains(kept, canonical) || strings.HasPrefix(canonical, "Mcp-"):
			return fmt.Errorf("headers: %s: this header is not yours to set", name)
		case !httpguts.ValidHeaderFieldValue(s.Headers[name]):
			return fmt.Errorf("headers: %s: the value holds characters that a header cannot", name)
		}
		if err := tool.CheckReferences(s.Headers[name]); err != nil {
			return fmt.Errorf("headers: %s: %w", name, err)
		}
	}
	return nil
}

// address names the server for people and approvals; it holds no values of references.
func (s *Spec) address() string {
	switch {
	case s.URL != "":
		return s.URL
	case s.Transport != nil:
		return s.Name
	}
	parts := make([]string, len(s.Command))
	for i, a := range s.Command {
		if parts[i] = a; a == "" || strings.ContainsAny(a, " \t\r\n\"'\\") {
			parts[i] = fmt.Sprintf("%q", a)
		}
	}
	return strings.Join(parts, " ")
}

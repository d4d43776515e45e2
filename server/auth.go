package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ronda-go/ronda/journal"
)

// Role says what the holder of a token may do. Each role may do what those before it may.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"   // look
	Operator Role = "operator" // start, message, cancel, extend, fork
	Approver Role = "approver" // decide and resolve
	Admin    Role = "admin"
)

var roles = []Role{Viewer, Operator, Approver, Admin}

// Roles lists the roles from the weakest to the strongest.
func Roles() []Role { return slices.Clone(roles) }

func (r Role) may(need Role) bool { return slices.Index(roles, r) >= slices.Index(roles, need) }

// Token is what is kept of a token: never the token itself.
type Token struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Hash    string    `json:"hash"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
}

const tokenSpace = "token"

// ErrNeedsTokens says that an address which others can reach needs tokens.
var ErrNeedsTokens = errors.New("server: an address that is not loopback needs tokens: make one with ronda token create --role admin")

// CreateToken makes a token for a person or a program and returns it: the only time that it can be seen.
func CreateToken(ctx context.Context, store journal.Store, name string, role Role, ttl time.Duration) (string, error) {
	if slices.Index(roles, role) < 0 {
		return "", fmt.Errorf("server: role %q is unknown. Use viewer, operator, approver or admin", role)
	}
	if name == "" || strings.ContainsAny(name, "\n\r\t") {
		return "", errors.New("server: a token needs a name: it is on record in what its holder decides")
	}
	if _, err := store.Doc(ctx, tokenSpace, name); err == nil {
		return "", fmt.Errorf("server: there is a token named %q. Revoke it first, or use another name", name)
	}
	var raw [32]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", err
	}
	secret := "ronda_" + base64.RawURLEncoding.EncodeToString(raw[:])
	t := Token{Name: name, Role: role, Hash: hash(secret), Created: time.Now().UTC()}
	if ttl > 0 {
		t.Expires = t.Created.Add(ttl)
	}
	doc, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	return secret, store.PutDoc(ctx, tokenSpace, name, doc)
}

// Tokens lists what is kept of tokens.
func Tokens(ctx context.Context, store journal.Store) ([]Token, error) {
	docs, err := store.Docs(ctx, tokenSpace)
	if err != nil {
		return nil, err
	}
	var list []Token
	for _, d := range docs {
		var t Token
		if err := json.Unmarshal(d, &t); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// RevokeToken ends a token.
func RevokeToken(ctx context.Context, store journal.Store, name string) error {
	if _, err := store.Doc(ctx, tokenSpace, name); err != nil {
		return fmt.Errorf("server: token %q: %w", name, err)
	}
	return store.DeleteDoc(ctx, tokenSpace, name)
}

// hash is what is stored of a token. Tokens are 256 random bits, so a plain hash is enough: there is nothing to guess.
func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

type auth struct {
	store journal.Store
	open  bool // nobody needs a token
	hosts []string
}

func newAuth(ctx context.Context, store journal.Store, o Options) (*auth, error) {
	a := &auth{store: store, hosts: o.Hosts}
	tokens, err := Tokens(ctx, store)
	if err != nil {
		return nil, err
	}
	local := Loopback(o.Addr)
	if len(tokens) == 0 && !local {
		return nil, ErrNeedsTokens
	}
	a.open = local && len(tokens) == 0
	if host, _, err := net.SplitHostPort(o.Addr); err == nil && host != "" {
		a.hosts = append(a.hosts, host)
	}
	return a, nil
}

// Loopback says whether an address can only be reached from this machine.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// Identity is who asks.
type Identity struct {
	Name string
	Role Role
}

type identityKey struct{}

func identity(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}

// who finds the holder of the request's token.
func (a *auth) who(r *http.Request) (Identity, bool) {
	secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || secret == "" {
		if a.open {
			return Identity{"local", Admin}, true
		}
		return Identity{}, false
	}
	docs, err := a.store.Docs(r.Context(), tokenSpace)
	if err != nil {
		return Identity{}, false
	}
	want := hash(secret)
	for _, d := range docs {
		var t Token
		if json.Unmarshal(d, &t) == nil && t.Hash == want && (t.Expires.IsZero() || time.Now().Before(t.Expires)) {
			return Identity{t.Name, t.Role}, true
		}
	}
	return Identity{}, false
}

// guarded checks Host and Origin (a page of another site must not reach a server on this machine by way of the browser), finds out who asks,
// and sets the headers that every answer has.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if h.Get("Content-Security-Policy") == "" {
			h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		}
		if !s.auth.allowedHost(r.Host) {
			refuse(w, http.StatusMisdirectedRequest, "the Host header names no host of this server")
			return
		}
		if o := r.Header.Get("Origin"); o != "" && !s.auth.allowedOrigin(o, r.Host) {
			refuse(w, http.StatusForbidden, "requests from another origin are refused")
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" && r.Method != http.MethodGet {
			refuse(w, http.StatusForbidden, "requests from another site are refused")
			return
		}
		if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" || !protected(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		id, ok := s.auth.who(r)
		if !ok {
			h.Set("WWW-Authenticate", `Bearer realm="ronda"`)
			refuse(w, http.StatusUnauthorized, "a valid token is needed: Authorization: Bearer …")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, id)))
	})
}

// protected says whether a path shows or changes something. The console's own files hold nothing.
func protected(path string) bool {
	return strings.HasPrefix(path, "/v1/") || path == "/metrics" || strings.HasPrefix(path, "/mcp")
}

func (a *auth) allowedHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	host = strings.Trim(host, "[]")
	if Loopback(host) {
		return true
	}
	return slices.Contains(a.hosts, host)
}

func (a *auth) allowedOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host == host
}

func refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail})
}

package fake

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/ronda-go/ronda/loop"
)

// ledger is what a server remembers of what it served. Its methods may be called on nil: then nothing is known, and each
// question is answered with what a stateless check can say. Safe for concurrent use.
type ledger struct {
	opts Options
	key  []byte

	mu        sync.Mutex
	n         uint64
	calls     map[string][]servedCall // by id on the wire
	loose     []servedCall            // had no id, or one that was served before: clients must make ids up
	responses map[string]*stored
	items     map[string]*servedCall // of stored responses by item id (openai); nil for those that are no call
}

type servedCall struct {
	id, name, args string
	turn           *turn
}

// turn is what must come back together with the calls of one response: signatures, ids of reasoning items, or reasoning text.
type turn struct {
	thoughts []string
}

// stored is a response that the server keeps, with the conversation before it.
type stored struct {
	messages []loop.Message
	open     []string // ids of calls without a result
}

func newLedger(opts Options) *ledger {
	var key [8]byte
	binary.LittleEndian.PutUint64(key[:], opts.Seed+1)
	sum := sha256.Sum256(append([]byte("ronda fake provider "), key[:]...))
	return &ledger{opts: opts, key: sum[:], calls: map[string][]servedCall{}, responses: map[string]*stored{}, items: map[string]*servedCall{}}
}

// sign makes the opaque text that stands for a provider's signature over what it served.
func (l *ledger) sign(kind, payload string) string {
	return base64.StdEncoding.EncodeToString(append([]byte("fake:"+kind+":"), l.mac(kind, payload)...))
}

func (l *ledger) mac(kind, payload string) []byte {
	h := hmac.New(sha256.New, l.key)
	fmt.Fprintf(h, "%d:%s%s", len(kind), kind, payload)
	return h.Sum(nil)[:30]
}

// signed reports whether signature is the one over payload.
func (l *ledger) signed(kind, payload, signature string) bool {
	return l == nil || hmac.Equal([]byte(l.sign(kind, payload)), []byte(signature))
}

// seal hides text in an opaque value that open reads back.
func (l *ledger) seal(kind, text string) string {
	return base64.URLEncoding.EncodeToString(append(l.mac(kind, text), text...))
}

func (l *ledger) open(kind, sealed string) (text string, ok bool) {
	if l == nil {
		return "", true
	}
	b, err := base64.URLEncoding.DecodeString(sealed)
	if err != nil || len(b) < 30 {
		return "", false
	}
	text = string(b[30:])
	return text, hmac.Equal(b[:30], l.mac(kind, text))
}

// rand is a source for the n-th response; it also makes the ids of that response.
func (l *ledger) rand() *rand.Rand {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	return rand.New(rand.NewPCG(l.opts.Seed, l.n))
}

const idLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func makeID(r *rand.Rand, prefix string, n int) string {
	b := []byte(prefix)
	for range n {
		b = append(b, idLetters[r.IntN(len(idLetters))])
	}
	return string(b)
}

func makeHexID(r *rand.Rand, prefix string) string {
	return fmt.Sprintf("%s%016x%016x", prefix, r.Uint64(), r.Uint64())
}

// serve notes the calls of a response before it leaves.
func (l *ledger) serve(t *turn, calls []servedCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range calls {
		c.turn = t
		if c.id == "" || len(l.calls[c.id]) > 0 {
			l.loose = append(l.loose, c)
		}
		if c.id != "" {
			l.calls[c.id] = append(l.calls[c.id], c)
		}
	}
}

// problem is what is wrong with a call that came back.
type problem string

const (
	fine     problem = ""
	changed  problem = "changed"
	unserved problem = "unserved"
)

// call looks a call of the history up. exact: the arguments must have the same bytes, not only the same value. Arguments that
// were served broken may come back in any form, since wires with structured arguments cannot carry them.
func (l *ledger) call(id, name, args string, exact bool) (servedCall, problem) {
	if l == nil {
		return servedCall{}, fine
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	same := func(c servedCall) bool {
		return c.name == name && (c.args == args || !jsonObject(c.args) || !exact && sameJSON(c.args, args))
	}
	at := slices.IndexFunc(l.calls[id], same)
	if id != "" && at >= 0 {
		return l.calls[id][at], fine
	}
	if i := slices.IndexFunc(l.loose, same); i >= 0 {
		return l.loose[i], fine
	}
	switch {
	case len(l.calls[id]) > 0:
		return servedCall{}, changed
	case l.opts.Foreign:
		return servedCall{}, fine
	}
	return servedCall{}, unserved
}

// thoughtsOf are the thoughts that must stand in a turn of the history that made these calls; ok is false where nothing is known.
func thoughtsOf(calls []servedCall) (thoughts []string, ok bool) {
	for _, c := range calls {
		if c.turn != nil {
			return c.turn.thoughts, true
		}
	}
	return nil, false
}

// store keeps a response under its id.
func (l *ledger) store(id string, s *stored, items map[string]*servedCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.responses[id] = s
	maps.Copy(l.items, items)
}

func (l *ledger) response(id string) *stored {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.responses[id]
}

// item looks up a stored item; call is nil for one that is no call.
func (l *ledger) item(id string) (call *servedCall, ok bool) {
	if l == nil {
		return nil, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	call, ok = l.items[id]
	return call, ok
}

func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.responses = map[string]*stored{}
	l.items = map[string]*servedCall{}
}

// pieces cuts text between characters into parts of seeded size.
func pieces(r *rand.Rand, text string) []string {
	var out []string
	runes := []rune(text)
	for len(runes) > 0 {
		n := min(1+r.IntN(12), len(runes))
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return out
}

func list(ids []string) string { return strings.Join(ids, ", ") }

// Package catalogue knows prices, context windows and output caps of models. The data is that of charm.land/catwalk, which its
// maintainers keep up to date; go generate writes it into a table that is read by scanning, because reading all of the library's
// JSON takes 10 ms, more than everything else between the start of a process and its first request.
package catalogue

import (
	_ "embed"
	"net/url"
	"strconv"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

//go:generate go run ./gen

//go:embed catalogue.tsv
var table string

// Entry is what is known of a model. Zero values mean unknown.
type Entry struct {
	Provider string
	Model    string
	Price    *loop.Price // nil: unknown, which a price of zero for input and output means too, save for models marked free
	Window   int64       // tokens of input and output together
	Cap      int64       // tokens of one response
	Media    bool        // takes images
	Reasons  bool        // can think before it answers
}

// Vendor is a provider by its address.
type Vendor struct {
	ID  string
	Key string // the environment variable of its key, "" unknown
}

// wires says whose models a wire serves, the provider itself first.
var wires = map[string][]string{
	"anthropic":  {"anthropic", "bedrock", "vertexai"},
	"openai":     {"openai", "azure"},
	"openaichat": {"openai", "azure"},
	"gemini":     {"gemini", "vertexai"},
}

// Lookup finds a model of a wire at the wire's own provider. Names of snapshots (gpt-4.1-2025-04-14, claude-sonnet-4-5 for its
// dated form, models/… of Gemini) find their model.
func Lookup(wire, model string) (Entry, bool) {
	for _, provider := range wires[wire] {
		if e, ok := find(provider, model); ok {
			return e, true
		}
	}
	return Entry{}, false
}

// LookupAt finds a model at the provider that has the base URL. Without such a provider it finds nothing.
func LookupAt(baseURL, model string) (Entry, bool) {
	v, ok := At(baseURL)
	if !ok {
		return Entry{}, false
	}
	return find(v.ID, model)
}

// At finds the provider that serves a base URL: the one whose host is the same and whose path agrees best.
func At(baseURL string) (Vendor, bool) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" {
		return Vendor{}, false
	}
	if u.Host == "api.openai.com" {
		return Vendor{ID: "openai", Key: "OPENAI_API_KEY"}, true
	}
	path := strings.Trim(u.Path, "/")
	var best Vendor
	length := -1
	for rest := table; ; {
		i := strings.Index(rest, "\n@")
		if i < 0 {
			return best, length >= 0
		}
		rest = rest[i+2:]
		line, _, _ := strings.Cut(rest, "\n")
		f := strings.Split(line, "\t")
		if len(f) != 4 || f[1] != u.Host {
			continue
		}
		if same := common(path, f[2]); same > length {
			best, length = Vendor{ID: f[0], Key: f[3]}, same
		}
	}
}

func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// find looks for the model's name, then for the name of which it is a snapshot, then for its newest snapshot.
func find(provider, model string) (Entry, bool) {
	model = strings.TrimPrefix(model, "models/")
	for _, name := range []string{model, undated(model)} {
		if line, ok := line(provider, name+"\t"); ok {
			return parse(line)
		}
	}
	newest := ""
	prefix := "\n" + provider + "\t" + undated(model) + "-"
	for rest := table; ; {
		i := strings.Index(rest, prefix)
		if i < 0 {
			break
		}
		rest = rest[i+1:]
		l, _, _ := strings.Cut(rest, "\n")
		name, _, _ := strings.Cut(l[len(provider)+1:], "\t")
		if undated(name) == undated(model) && l > newest {
			newest = l
		}
	}
	if newest == "" {
		return Entry{}, false
	}
	return parse(newest)
}

func line(provider, rest string) (string, bool) {
	_, after, ok := strings.Cut(table, "\n"+provider+"\t"+rest)
	if !ok {
		return "", false
	}
	l, _, _ := strings.Cut(after, "\n")
	return provider + "\t" + rest + l, true
}

// undated cuts what names a snapshot: -2025-04-14, -20250929, @20250929, -latest.
func undated(model string) string {
	model = strings.TrimSuffix(model, "-latest")
	if i := strings.LastIndexByte(model, '@'); i > 0 {
		model = model[:i]
	}
	n := len(model)
	switch {
	case n > 9 && model[n-9] == '-' && digits(model[n-8:]):
		return model[:n-9]
	case n > 11 && model[n-11] == '-' && model[n-6] == '-' && model[n-3] == '-' &&
		digits(model[n-10:n-6]) && digits(model[n-5:n-3]) && digits(model[n-2:]):
		return model[:n-11]
	}
	return model
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func parse(line string) (Entry, bool) {
	f := strings.Split(line, "\t")
	if len(f) != 9 {
		return Entry{}, false
	}
	var n [6]int64
	for i := range n {
		v, err := strconv.ParseInt(f[i+2], 10, 64)
		if err != nil {
			return Entry{}, false
		}
		n[i] = v
	}
	e := Entry{Provider: f[0], Model: f[1], Window: n[4], Cap: n[5], Media: strings.Contains(f[8], "m"), Reasons: strings.Contains(f[8], "r")}
	if n[0] > 0 || n[3] > 0 || strings.HasSuffix(f[1], ":free") {
		e.Price = &loop.Price{Input: loop.Pico(n[0]), CacheRead: loop.Pico(n[1]), CacheWrite: loop.Pico(n[2]), Output: loop.Pico(n[3])}
	}
	return e, true
}

// Command gen writes the table of package catalogue from the providers' data that charm.land/catwalk carries. Run go generate in
// the package after an update of the library; TestTableIsCurrent fails until then.
package main

import (
	"bytes"
	"fmt"
	"log"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

func main() {
	if err := os.WriteFile("catalogue.tsv", table(embedded.GetAll()), 0o644); err != nil {
		log.Fatal(err)
	}
}

// table has a line for each provider (provider, host, path, variable of the key) and for each model (provider, model, four
// prices in pico-USD a token, context window, output cap, m for media and r for reasoning), sorted, each led and ended by a line feed.
func table(providers []catwalk.Provider) []byte {
	var lines []string
	for _, p := range providers {
		host, path := endpoint(p.APIEndpoint)
		lines = append(lines, fmt.Sprintf("@%s\t%s\t%s\t%s", p.ID, host, path, strings.TrimPrefix(p.APIKey, "$")))
		for _, m := range p.Models {
			in, read, write, out := prices(m)
			marks := ""
			if m.SupportsImages {
				marks += "m"
			}
			if m.CanReason {
				marks += "r"
			}
			lines = append(lines, fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s",
				p.ID, m.ID, in, read, write, out, m.ContextWindow, m.DefaultMaxTokens, marks))
		}
	}
	slices.Sort(lines)
	return bytes.Join([][]byte{nil, []byte(strings.Join(slices.Compact(lines), "\n")), nil}, []byte("\n"))
}

func endpoint(s string) (host, path string) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "", ""
	}
	return u.Host, strings.Trim(u.Path, "/")
}

// prices reads the library's fields. Its own notes say that "in cached" is the price of a cache write and "out cached" that of a
// read, but many of its sources put the read price into the first: a price of a write below that of plain input is none. What is
// still unknown is the price of plain input, which a provider does not exceed for a read.
func prices(m catwalk.Model) (in, read, write, out int64) {
	in, out = pico(m.CostPer1MIn), pico(m.CostPer1MOut)
	first, second := pico(m.CostPer1MInCached), pico(m.CostPer1MOutCached)
	read, write = in, in
	if first > in {
		write = first
	}
	switch {
	case second > 0 && second < in:
		read = second
	case first > 0 && first < in:
		read = first
	}
	return in, read, write, out
}

// pico turns USD for a million tokens into 10⁻¹² USD for one. The library's prices have at most six decimals, so rounding takes
// away what binary fractions added and nothing else.
func pico(usd float64) int64 { return int64(math.Round(usd * 1e6)) }

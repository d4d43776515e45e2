package catalogue

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
)

func TestLookup(t *testing.T) {
	gpt41 := Entry{
		Provider: "openai", Model: "gpt-4.1", Window: 1_047_576, Cap: 16_384, Media: true,
		Price: &loop.Price{Input: 2_000_000, CacheRead: 500_000, CacheWrite: 2_000_000, Output: 8_000_000},
	}
	sonnet := Entry{
		Provider: "anthropic", Model: "claude-sonnet-4-5-20250929", Window: 200_000, Cap: 64_000, Media: true, Reasons: true,
		Price: &loop.Price{Input: 3_000_000, CacheRead: 300_000, CacheWrite: 3_750_000, Output: 15_000_000},
	}
	for _, c := range []struct {
		wire, model string
		want        Entry
	}{
		{"openai", "gpt-4.1", gpt41},
		{"openai", "gpt-4.1-2025-04-14", gpt41},
		{"openaichat", "gpt-4.1", gpt41},
		{"anthropic", "claude-sonnet-4-5", sonnet},
		{"anthropic", "claude-sonnet-4-5-20250929", sonnet},
		{"anthropic", "claude-sonnet-4-5-latest", sonnet},
		{"openai", "no-such-model", Entry{}},
		{"openai", "", Entry{}},
		{"openai", "gpt-4", Entry{}},
		{"", "gpt-4.1", Entry{}},
		{"openai", "\n@", Entry{}},
	} {
		got, ok := Lookup(c.wire, c.model)
		if diff := cmp.Diff(c.want, got); diff != "" || ok != (c.want.Model != "") {
			t.Errorf("%s/%s: %v, -want +got:\n%s", c.wire, c.model, ok, diff)
		}
	}
}

// Money of a usage is exact: a million tokens cost what the price list says for a million.
func TestPriceIsExact(t *testing.T) {
	e, ok := Lookup("openai", "gpt-4.1-mini")
	if !ok {
		t.Fatal("gpt-4.1-mini is not in the catalogue")
	}
	got := e.Price.Of(loop.Usage{Input: 1_000_000, Output: 1_000_000})
	if want := 2 * loop.USD; got != want { // 0.40 and 1.60
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestAt(t *testing.T) {
	for _, c := range []struct {
		url  string
		want Vendor
	}{
		{"https://api.openai.com/v1", Vendor{"openai", "OPENAI_API_KEY"}},
		{"https://api.groq.com/openai/v1/", Vendor{"groq", "GROQ_API_KEY"}},
		{"https://openrouter.ai/api/v1", Vendor{"openrouter", "OPENROUTER_API_KEY"}},
		{"https://open.bigmodel.cn/api/coding/paas/v4", Vendor{"zhipu-coding", "ZHIPU_API_KEY"}},
		{"https://open.bigmodel.cn/api/paas/v4", Vendor{"zhipu", "ZHIPU_API_KEY"}},
		{"http://localhost:11434/v1", Vendor{}},
		{"", Vendor{}},
		{"::", Vendor{}},
	} {
		if got, ok := At(c.url); got != c.want || ok != (c.want.ID != "") {
			t.Errorf("%s: got %v %v, want %v", c.url, got, ok, c.want)
		}
	}
	if _, ok := LookupAt("https://api.deepseek.com/v1", "deepseek-v4-pro"); !ok {
		t.Error("deepseek-v4-pro is not found at its provider")
	}
}

func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		Lookup("openai", "gpt-4.1-2025-04-14")
	}
}

package loop

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "a/b.c\nd", true},
		{"a", "a", true},
		{"a", "A", false},
		{"a", "ab", false},
		{"a*", "a", true},
		{"a*", "ba", false},
		{"*a", "ba", true},
		{"*a", "ab", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"**", "x", true},
		{"/tmp/*", "/tmp/../etc", true},
		{"ab*ba", "aba", false},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`a\**`, "a*b", true},
		{`a\**`, "ab", false},
		{`\\*`, `\anything`, true},
		{`C:\dir*`, `C:\dir\file`, true},
		{`end\`, `end\`, true},
		{"é*", "éa", true},
	} {
		if got := Match(c.pattern, c.s); got != c.want {
			t.Errorf("Match(%q, %q) = %t", c.pattern, c.s, got)
		}
	}
}

func TestMatchAgreesWithRegexp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alphabet := rapid.StringOfN(rapid.RuneFrom([]rune(`ab*\`)), 0, 8, -1)
		pattern, s := alphabet.Draw(t, "pattern"), alphabet.Draw(t, "s")
		var re strings.Builder
		for i := 0; i < len(pattern); i++ {
			switch rest := pattern[i:]; {
			case strings.HasPrefix(rest, `\*`) || strings.HasPrefix(rest, `\\`):
				i++
				re.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
			case pattern[i] == '*':
				re.WriteString("(?s:.*)")
			default:
				re.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
			}
		}
		want := regexp.MustCompile(`\A` + re.String() + `\z`).MatchString(s)
		if got := Match(pattern, s); got != want {
			t.Fatalf("Match(%q, %q) = %t, the expression %s says %t", pattern, s, got, &re, want)
		}
		if q := QuoteMatch(s); !Match(q, s) || Match(q, s+"a") {
			t.Fatalf("QuoteMatch(%q) = %q does not fit exactly it", s, q)
		}
	})
}

func TestMatchAny(t *testing.T) {
	if MatchAny(nil, "") || !MatchAny([]string{"a", "b*"}, "bc") || MatchAny([]string{"a"}, "b") {
		t.Error("MatchAny does not say whether one of the patterns fits")
	}
}

package loop

import "strings"

// Match reports whether the whole of s fits a pattern. `*` stands for any text, also none; it stops at nothing: neither '/'
// nor '.' nor a line end is special, so "/tmp/*" fits "/tmp/../etc/passwd" too. Everything else stands for itself; case
// counts. `\*` is the star itself and `\\` a backslash; a backslash before anything else is a backslash.
func Match(pattern, s string) bool {
	first, rest, star := nextLiteral(pattern)
	if !star {
		return s == first
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for {
		lit, more, star := nextLiteral(rest)
		if !star {
			return strings.HasSuffix(s, lit)
		}
		i := strings.Index(s, lit)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(lit):], more
	}
}

// MatchAny reports whether s fits one of the patterns; no patterns fit nothing.
func MatchAny(patterns []string, s string) bool {
	for _, p := range patterns {
		if Match(p, s) {
			return true
		}
	}
	return false
}

// QuoteMatch returns the pattern that fits exactly s.
func QuoteMatch(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`).Replace(s)
}

// nextLiteral cuts the text before the first star off a pattern.
func nextLiteral(p string) (lit, rest string, star bool) {
	end := strings.IndexAny(p, `*\`)
	if end < 0 {
		return p, "", false
	}
	if p[end] == '*' {
		return p[:end], p[end+1:], true
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '*':
			return b.String(), p[i+1:], true
		case p[i] == '\\' && i+1 < len(p) && (p[i+1] == '*' || p[i+1] == '\\'):
			i++
		}
		b.WriteByte(p[i])
	}
	return b.String(), "", false
}

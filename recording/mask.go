package recording

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// plainKeys are the members of events that metadata keeps: names, words of closed lists, ids. Everything else that is text is masked.
var plainKeys = map[string]bool{
	"k": true, "run": true, "agent": true, "model": true, "digest": true, "on_limit": true, "parallel": true, "name": true, "effect": true,
	"label": true, "on_reject": true, "facts": false, "called": true, "id": true, "root": true, "call": true, "path": true, "finish": true,
	"tape": true, "purpose": true, "class": true, "clock": true, "cause": true, "verdict": true, "rule": true, "standing": true, "why": true,
	"decision": true, "by": true, "input": true, "tool": true, "happened": true, "limit": true, "whose": true, "stop": true, "wire": true,
	"mime": true, "ref": true, "sum": true, "role": true, "broken": true, "tool_choice": true, "args_digest": true,
}

// mask replaces the texts of a body by fillers of the same length; equal texts get equal fillers.
func mask(body, salt []byte) []byte {
	return rewrite(body, func(at *walk, scalar []byte) []byte {
		inFacts := at.top() == "facts"
		if scalar[0] != '"' {
			if inFacts {
				return []byte("null")
			}
			return nil
		}
		s := unquote(scalar)
		// The name of a file, the digest that CallAuthorized keeps under args.
		if !inFacts && plainKeys[keyOf(at)] && !(at.key() == "name" && len(at.steps) > 1 && at.steps[len(at.steps)-2].key == "media") {
			return nil
		}
		if !inFacts && at.top() == "reason" && len(at.steps) == 1 && len(s) < 12 && !strings.Contains(s, " ") {
			return nil // the reason of a nudge is a word
		}
		return appendString(nil, filler(s, salt))
	})
}

// keyOf is the name of a value; values of an array have the array's.
func keyOf(at *walk) string {
	for i := len(at.steps) - 1; i >= 0; i-- {
		if at.steps[i].key != "" {
			return at.steps[i].key
		}
	}
	return ""
}

var fillerWords = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// filler says nothing of a text but its length and which texts are the same.
func filler(s string, salt []byte) string {
	if s == "" {
		return ""
	}
	h := sha256.New()
	h.Write(salt)
	h.Write([]byte(s))
	word := fillerWords.EncodeToString(h.Sum(nil))
	if len(s) <= len(word) {
		return word[:len(s)]
	}
	return word + strings.Repeat("x", len(s)-len(word))
}

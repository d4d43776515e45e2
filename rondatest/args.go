package rondatest

import (
	"encoding/json"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// members are the members of a JSON object; none for anything else.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(raw, &m)
	return m
}

// plainValue is a text as it is, any other value as JSON.
func plainValue(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// sameJSON compares values, numbers exactly.
func sameJSON(a, b []byte) bool {
	x, err := loop.Canonical(a)
	if err != nil {
		return string(a) == string(b)
	}
	y, err := loop.Canonical(b)
	return err == nil && string(x) == string(y)
}

// containsArgs says whether arguments have the members of want.
func containsArgs(args json.RawMessage, want *node) bool {
	have := members(args)
	for _, f := range want.Fields {
		v, ok := have[f.Name]
		if !ok || !sameJSON(v, f.Value.JSON()) {
			return false
		}
	}
	return true
}

// lastPart is the last call of a path of calls.
func lastPart(path string) string {
	return path[strings.LastIndexByte(path, '/')+1:]
}

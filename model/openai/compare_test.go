package openai_test

import (
	"encoding/json"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// compare says where what was sent differs from what was recorded. What the recorded client left out (thoughts, ids of items,
// items of the provider's tools) is not asked for; what it sent back must be the same. A reference to a stored item stands for it.
func compare(recorded, sent []item) string {
	kept := map[string]bool{}
	refs := map[string]bool{}
	for _, it := range recorded {
		kept[it.ID] = true
		if it.Type == "item_reference" {
			refs[it.ID] = true
		}
	}
	var want, got []any
	for _, it := range recorded {
		if it.Type == "message" && (it.Role == "system" || it.Role == "developer") {
			continue
		}
		if refs[it.ID] {
			want = append(want, "reference "+it.ID)
			continue
		}
		want = append(want, fixed(it, true))
	}
	for _, it := range sent {
		back := kept[it.ID] && it.ID != ""
		switch {
		case it.Type == "function_call", it.Type == "function_call_output", it.Type == "message" && it.Role != "assistant":
		case it.Type == "message" && !back && !repeated(recorded, it):
			continue
		case it.Type == "message":
		case !back && (it.Encrypted == "" || !sealed(recorded, it.Encrypted)):
			continue
		}
		if refs[it.ID] {
			got = append(got, "reference "+it.ID)
			continue
		}
		got = append(got, fixed(it, kept[it.ID]))
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

func sealed(its []item, secret string) bool {
	for _, it := range its {
		if it.Encrypted == secret {
			return true
		}
	}
	return false
}

func fixed(it item, id bool) any {
	one := map[string]any{"type": it.Type}
	if id && it.ID != "" && it.Type != "function_call_output" {
		one["id"] = it.ID
	}
	switch it.Type {
	case "message":
		one["role"], one["text"] = it.Role, textOf(it.Content)
		for _, p := range parts(it.Content) {
			if u := p.ImageURL + p.FileURL + p.FileData; u != "" {
				one["media"] = u
			}
		}
	case "function_call":
		var args any
		if json.Unmarshal([]byte(it.Arguments), &args) != nil {
			args = it.Arguments
		}
		one["call"], one["name"], one["args"] = it.CallID, it.Name, args
	case "function_call_output":
		one["call"], one["text"] = it.CallID, textOf(it.Output)
		for _, p := range parts(it.Output) {
			if u := p.ImageURL + p.FileURL + p.FileData; u != "" {
				one["media"] = u
			}
		}
	case "reasoning":
		one["encrypted"] = it.Encrypted
	default:
		var v any
		_ = json.Unmarshal(it.whole, &v)
		one["whole"] = v
	}
	return one
}

// repeated reports whether a client sent a text of the model back.
func repeated(its []item, m item) bool {
	for _, it := range its {
		if it.Type == "message" && it.Role == "assistant" && textOf(it.Content) == textOf(m.Content) {
			return true
		}
	}
	return false
}

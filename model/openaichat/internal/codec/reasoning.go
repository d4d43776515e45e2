package codec

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

// detail is one entry of reasoning_details (OpenRouter, Vercel's gateway), which has to go back as it came. In a stream an entry
// comes in pieces: those of one type and index, one after another, are one entry.
type detail struct {
	kind  string
	index string // as written, "" none
	field string // the member that grows: text, summary; "" for a type that comes whole
	text  text
	rest  []byte // the other members, as "name":value,
	names []string
}

// reasoning reads a member that holds a thought as text. Some servers send the same text in two members.
func (a *Answer) reasoning(member string, v gjson.Result) {
	if v.Type != gjson.String || v.Str == "" {
		return
	}
	if !slices.Contains(a.members, member) {
		a.members = append(a.members, strings.Clone(member))
	}
	if a.members[0] == member {
		a.think0(v.Str)
	}
}

func (a *Answer) think0(s string) {
	t := a.thought.add(s)
	a.emit(model.Delta{Channel: model.Thought, Text: t})
}

const detailsMember = "reasoning_details"

func (a *Answer) addDetails(v gjson.Result) {
	if !v.IsArray() || len(v.Raw) <= 2 {
		return
	}
	if !slices.Contains(a.members, detailsMember) {
		a.members = append(a.members, detailsMember)
	}
	v.ForEach(func(_, d gjson.Result) bool {
		a.detail(d)
		return true
	})
}

func (a *Answer) detail(v gjson.Result) {
	kind, index := v.Get("type").Str, v.Get("index").Raw
	field := ""
	switch kind {
	case "reasoning.text":
		field = "text"
	case "reasoning.summary":
		field = "summary"
	}
	var d *detail
	if n := len(a.details); n > 0 && field != "" && a.details[n-1].kind == kind && a.details[n-1].index == index {
		d = a.details[n-1]
	} else {
		d = &detail{kind: strings.Clone(kind), index: strings.Clone(index), field: field}
		a.details = append(a.details, d)
	}
	v.ForEach(func(k, v gjson.Result) bool {
		switch {
		case k.Str == field && field != "":
			if v.Type == gjson.String {
				d.text.add(v.Str)
			}
		case v.Type == gjson.Null && slices.Contains(d.names, k.Str):
		default:
			d.set(k, v)
		}
		return true
	})
	// Where the text comes nowhere else it is the thought. OpenRouter sends it in both places.
	if t := v.Get(field); field != "" && a.members[0] == detailsMember {
		a.think0(t.Str)
	}
}

// set keeps a member; a signature that comes with the last piece replaces the null of the first.
func (d *detail) set(k, v gjson.Result) {
	if i := slices.Index(d.names, k.Str); i >= 0 {
		var b []byte
		gjson.Parse("{" + strings.TrimSuffix(string(d.rest), ",") + "}").ForEach(func(k2, v2 gjson.Result) bool {
			raw := v2.Raw
			if k2.Str == k.Str {
				raw = v.Raw
			}
			b = append(append(append(append(b, k2.Raw...), ':'), raw...), ',')
			return true
		})
		d.rest = b
		return
	}
	d.names = append(d.names, strings.Clone(k.Str))
	d.rest = append(append(append(append(d.rest, k.Raw...), ':'), v.Raw...), ',')
}

func (d *detail) append(b []byte) []byte {
	b = append(append(b, '{'), d.rest...)
	if d.field == "" {
		b = b[:len(b)-min(1, len(d.rest))]
	} else {
		b = append(append(append(b, '"'), d.field...), '"', ':')
		b = wire.AppendString(b, d.text.String())
	}
	return append(b, '}')
}

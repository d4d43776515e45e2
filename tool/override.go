package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// Override changes what a server or a document says of one of its tools.
type Override struct {
	Name string   // the tool's own name, as the server says it
	Def  Def      // the new values
	Set  []string // the keys of an agent file that count, such as effect; nil: every field that is not zero
}

// overridable are the fields that an Override can set, by their keys in an agent file.
var overridable = []struct {
	key   string
	isSet func(Def) bool
	copy  func(to *Def, from Def)
}{
	{"effect", func(d Def) bool { return d.Effect != "" }, func(to *Def, from Def) { to.Effect = from.Effect }},
	{"label", func(d Def) bool { return d.Label != "" }, func(to *Def, from Def) { to.Label = from.Label }},
	{"approval", func(d Def) bool { return d.Approval != "" }, func(to *Def, from Def) { to.Approval = from.Approval }},
	{"on_reject", func(d Def) bool { return d.OnReject != "" }, func(to *Def, from Def) { to.OnReject = from.OnReject }},
	{"timeout", func(d Def) bool { return d.Timeout != 0 }, func(to *Def, from Def) { to.Timeout = from.Timeout }},
	{"retries", func(d Def) bool { return d.Retries != 0 }, func(to *Def, from Def) { to.Retries = from.Retries }},
	{"calls_max", func(d Def) bool { return d.CallsMax != nil }, func(to *Def, from Def) { to.CallsMax = from.CallsMax }},
	{"poll", func(d Def) bool { return d.Poll != nil }, func(to *Def, from Def) { to.Poll = from.Poll }},
	{"result_cap", func(d Def) bool { return d.ResultCap != 0 }, func(to *Def, from Def) { to.ResultCap = from.ResultCap }},
	{"requires", func(d Def) bool { return d.Requires != nil }, func(to *Def, from Def) { to.Requires = from.Requires }},
	{"grounded", func(d Def) bool { return d.Grounded != nil }, func(to *Def, from Def) { to.Grounded = from.Grounded }},
}

// sets reports whether the override sets the field with a key.
func (o Override) sets(key string, isSet func(Def) bool) bool {
	if o.Set == nil {
		return isSet(o.Def)
	}
	return slices.Contains(o.Set, key)
}

// Apply puts what the override sets into def. A tool that is made one that only reads no longer asks, unless the override also
// sets the approval.
func (o Override) Apply(def *Def) {
	approval := false
	for _, f := range overridable {
		if o.sets(f.key, f.isSet) {
			f.copy(def, o.Def)
			approval = approval || f.key == "approval"
		}
	}
	if o.sets("effect", func(d Def) bool { return d.Effect != "" }) && def.Effect == loop.Read && !approval {
		def.Approval = loop.Allow
	}
}

// Offer says which of the tools that a server or a document brings are offered, and how they are changed.
type Offer struct {
	Overrides []Override
	Only      []string // own names; nil: all
	Prefix    string   // put before each name that a model sees
}

// Check reports names that the source does not have.
func (o Offer) Check(have []string) error {
	known := func(field, name string) error {
		if slices.Contains(have, name) {
			return nil
		}
		list := slices.Clone(have)
		slices.Sort(list)
		return fmt.Errorf("%s: there is no tool %q; there are %s", field, name, shorten(strings.Join(list, ", "), 400))
	}
	for _, v := range o.Overrides {
		if err := known("tools", v.Name); err != nil {
			return err
		}
	}
	for _, n := range o.Only {
		if err := known("only", n); err != nil {
			return err
		}
	}
	if o.Prefix != "" && !toolName.MatchString(o.Prefix) {
		return fmt.Errorf("prefix: %q; begin with a letter or _ and go on with letters, digits, _ or -", o.Prefix)
	}
	return nil
}

// Offers reports whether a tool is offered.
func (o Offer) Offers(name string) bool { return o.Only == nil || slices.Contains(o.Only, name) }

// Apply applies the overrides of a tool by its own name.
func (o Offer) Apply(name string, def *Def) {
	for _, v := range o.Overrides {
		if v.Name == name {
			v.Apply(def)
		}
	}
}

package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	nethttp "net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/ronda-go/ronda/tool"
	"github.com/ronda-go/ronda/tool/http"
)

// inputs are the arguments of one operation and where they go. They are not changed after they were made.
type inputs struct {
	path     string // with the arguments' names in its places
	args     []argument
	bodied   bool // there is a JSON body
	flat     bool // its members are arguments
	mustBody bool
	conv     converter
}

type argument struct {
	name     string // of the argument
	in       string // path, query, header, body
	own      string // the name where it goes; "" for a whole body
	schema   any
	required bool
	style    string
	explode  bool
	asJSON   bool // a parameter whose value is JSON
}

// places in the order in which they keep their names.
var places = []string{"path", "query", "header", "body"}

func (b *builder) inputs(o operation) (*inputs, error) {
	in := &inputs{path: o.path, conv: converter{tree: b.tree, drop: "readOnly"}}
	params := map[string]*openapi3.Parameter{} // those of an operation take the place of its path's
	for _, list := range []openapi3.Parameters{o.item.Parameters, o.op.Parameters} {
		for _, ref := range list {
			if ref != nil && ref.Value != nil {
				params[ref.Value.In+" "+ref.Value.Name] = ref.Value
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(params)) {
		a, err := in.parameter(params[key], b.headers)
		if err != nil {
			return nil, err
		}
		if a != nil {
			in.args = append(in.args, *a)
		}
	}
	if err := in.body(o.op); err != nil {
		return nil, err
	}
	in.nameAll()
	return in, in.fillPath()
}

// parameter reads one parameter; nil is one that is not an argument.
func (in *inputs) parameter(p *openapi3.Parameter, headers map[string]string) (*argument, error) {
	a := &argument{in: p.In, own: p.Name, required: p.Required}
	switch p.In {
	case "cookie":
		if p.Required {
			return nil, fmt.Errorf("it needs a cookie, %s", p.Name)
		}
		return nil, nil
	case "header":
		switch nethttp.CanonicalHeaderKey(p.Name) {
		case "Accept", "Content-Type", "Authorization", "Idempotency-Key", "Content-Length", "Transfer-Encoding", "Connection", "Host", "Cookie":
			return nil, nil // the runtime's own, or given by hand
		}
		if hasHeader(headers, p.Name) {
			return nil, nil
		}
	case "path":
		a.required = true
	case "query":
	default:
		return nil, fmt.Errorf("a parameter, %s, is in %q", p.Name, p.In)
	}
	how, err := p.SerializationMethod()
	if err != nil {
		return nil, err
	}
	a.style, a.explode = how.Style, how.Explode
	if p.In == "path" && a.style != openapi3.SerializationSimple {
		return nil, fmt.Errorf("the style %s of the parameter %s is not known", a.style, p.Name)
	}
	a.schema = map[string]any{}
	if p.Schema != nil {
		a.schema = in.conv.convert(p.Schema)
	} else if media := jsonMedia(p.Content); media != nil {
		if a.asJSON = true; media.Schema != nil {
			a.schema = in.conv.convert(media.Schema)
		}
	}
	if m, ok := a.schema.(map[string]any); ok && m["description"] == nil && p.Description != "" {
		m["description"] = strings.ToValidUTF8(p.Description, "\ufffd")
	}
	return a, nil
}

// body reads the body of the request.
func (in *inputs) body(op *openapi3.Operation) error {
	if op.RequestBody == nil || op.RequestBody.Value == nil {
		return nil
	}
	body := op.RequestBody.Value
	media := jsonMedia(body.Content)
	if media == nil {
		if !body.Required {
			return nil
		}
		return fmt.Errorf("it needs a body of %s", strings.Join(slices.Sorted(maps.Keys(body.Content)), " or "))
	}
	in.bodied, in.mustBody = true, body.Required
	var schema any = map[string]any{}
	if media.Schema != nil {
		schema = in.conv.convert(media.Schema)
	}
	object, ok := in.conv.plainObject(schema)
	if in.flat = ok; !ok {
		if m, isMap := schema.(map[string]any); isMap && m["description"] == nil && body.Description != "" {
			m["description"] = strings.ToValidUTF8(body.Description, "\ufffd")
		}
		in.args = append(in.args, argument{in: "body", schema: schema, required: body.Required})
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(object.members)) {
		in.args = append(in.args, argument{in: "body", own: name, schema: object.members[name], required: body.Required && slices.Contains(object.required, name)})
	}
	return nil
}

// nameAll gives each argument its name by the rule of Load.
func (in *inputs) nameAll() {
	slices.SortStableFunc(in.args, func(a, b argument) int { return slices.Index(places, a.in) - slices.Index(places, b.in) })
	taken := map[string]bool{}
	for i := range in.args {
		a := &in.args[i]
		own := a.own
		if own == "" {
			own = "body"
		}
		namer := tool.Namer{}
		if a.name = namer.Name(own); taken[a.name] {
			a.name = namer.Name(a.in + "_" + own)
		}
		for n := 2; taken[a.name]; n++ {
			a.name = namer.Name(fmt.Sprintf("%s_%s_%d", a.in, own, n))
		}
		taken[a.name] = true
	}
}

var place = regexp.MustCompile(`\{([^{}]*)\}`)

// fillPath puts the arguments' names into the path's places.
func (in *inputs) fillPath() error {
	var err error
	in.path = place.ReplaceAllStringFunc(in.path, func(m string) string {
		for _, a := range in.args {
			if a.in == "path" && a.own == m[1:len(m)-1] {
				return "{" + a.name + "}"
			}
		}
		err = fmt.Errorf("the path's %s is no parameter", m)
		return m
	})
	if !strings.HasPrefix(in.path, "/") {
		in.path = "/" + in.path
	}
	return err
}

// schema is the JSON Schema of the arguments.
func (in *inputs) schema() []byte {
	properties, required := map[string]any{}, []string{}
	for _, a := range in.args {
		properties[a.name] = a.schema
		if a.required {
			required = append(required, a.name)
		}
	}
	m := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		m["required"] = required
	}
	return in.conv.whole(m)
}

// arrange puts the arguments of a call into the parts of its request.
func (in *inputs) arrange(args map[string]json.RawMessage) (http.Parts, error) {
	parts := http.Parts{Headers: map[string]string{}}
	var query []string
	body := map[string]json.RawMessage{}
	for _, a := range in.args {
		raw, ok := args[a.name]
		if !ok {
			continue
		}
		switch a.in {
		case "query":
			pairs, err := a.query(raw)
			if err != nil {
				return parts, fmt.Errorf("%s: %w", a.name, err)
			}
			query = append(query, pairs...)
		case "header":
			v, err := a.header(raw)
			if err != nil {
				return parts, fmt.Errorf("%s: %w", a.name, err)
			}
			if v != "" {
				parts.Headers[a.own] = v
			}
		case "body":
			if a.own == "" {
				parts.Body = raw
				continue
			}
			body[a.own] = raw
		}
	}
	parts.Query = strings.Join(query, "&")
	if in.flat && (len(body) > 0 || in.mustBody) {
		raw, err := encode(body)
		if err != nil {
			return parts, err
		}
		parts.Body = raw
	}
	return parts, nil
}

// query spells a parameter of the query, in its style (OpenAPI 3.1, section 4.8.12.2).
func (a *argument) query(raw json.RawMessage) ([]string, error) {
	name := url.QueryEscape(a.own)
	if a.asJSON {
		return []string{name + "=" + url.QueryEscape(string(raw))}, nil
	}
	switch raw[0] {
	case 'n':
		return nil, nil
	case '[':
		values, err := scalars(raw)
		if err != nil {
			return nil, err
		}
		if a.explode {
			for i := range values {
				values[i] = name + "=" + values[i]
			}
			return values, nil
		}
		between := map[string]string{openapi3.SerializationSpaceDelimited: "%20", openapi3.SerializationPipeDelimited: "%7C"}[a.style]
		if between == "" {
			between = ","
		}
		return []string{name + "=" + strings.Join(values, between)}, nil
	case '{':
		return a.queryObject(name, raw)
	}
	v, err := scalar(raw)
	return []string{name + "=" + url.QueryEscape(v)}, err
}

func (a *argument) queryObject(name string, raw json.RawMessage) (pairs []string, err error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if string(m[k]) == "null" {
			continue
		}
		v, err := scalar(m[k])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		key, v := url.QueryEscape(k), url.QueryEscape(v)
		switch {
		case a.style == openapi3.SerializationDeepObject:
			pairs = append(pairs, url.QueryEscape(a.own+"["+k+"]")+"="+v)
		case a.explode:
			pairs = append(pairs, key+"="+v)
		default:
			pairs = append(pairs, key+","+v)
		}
	}
	if len(pairs) > 0 && !a.explode && a.style != openapi3.SerializationDeepObject {
		return []string{name + "=" + strings.Join(pairs, ",")}, nil
	}
	return pairs, nil
}

// header spells a parameter in a header; "" is none.
func (a *argument) header(raw json.RawMessage) (string, error) {
	switch {
	case a.asJSON:
		return string(raw), nil
	case raw[0] == 'n':
		return "", nil
	case raw[0] != '[':
		return scalar(raw)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", err
	}
	values := make([]string, len(list))
	for i, v := range list {
		var err error
		if values[i], err = scalar(v); err != nil {
			return "", err
		}
	}
	return strings.Join(values, ","), nil
}

// scalars are the values of a list, escaped for the query.
func scalars(raw json.RawMessage) ([]string, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	values := make([]string, len(list))
	for i, v := range list {
		s, err := scalar(v)
		if err != nil {
			return nil, err
		}
		values[i] = url.QueryEscape(s)
	}
	return values, nil
}

func scalar(raw json.RawMessage) (string, error) {
	switch {
	case len(raw) == 0 || raw[0] == 'n':
		return "", nil
	case raw[0] == '{' || raw[0] == '[':
		return "", errors.New("must be a text, a number, true or false")
	case raw[0] != '"':
		return string(raw), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(buf.Bytes(), "\n"), err
}

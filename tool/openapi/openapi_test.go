package openapi

import (
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

func read(t *testing.T, s Spec) *Document {
	t.Helper()
	d, err := Load(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func pick(t *testing.T, d *Document, name string) tool.Tool {
	t.Helper()
	for _, tl := range d.Tools() {
		if tl.Def().Name == name {
			return tl
		}
	}
	t.Fatalf("there is no tool %s", name)
	return nil
}

func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	b, err := loop.Canonical(raw)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDefinitions(t *testing.T) {
	d := read(t, Spec{Document: "testdata/shop.yaml", Offer: tool.Offer{Prefix: "shop_", Overrides: []tool.Override{
		{Name: "deleteOrder", Def: tool.Def{Approval: loop.Deny, Label: "orders"}, Set: []string{"approval", "label"}},
	}}})
	const order = `"Order":{"properties":{"code":{"type":"string"},"lines":{"items":{"$ref":"#/$defs/Line"},"type":"array"},"parent":{"$ref":"#/$defs/Order"}},"required":["lines"],"type":"object"}`
	const line = `"Line":{"allOf":[{"properties":{"sku":{"type":"string"}},"required":["sku"],"type":"object"},{"properties":{"count":{"type":["integer","null"]}},"type":"object"}]}`
	const id = `"id":{"description":"The order's number.","exclusiveMinimum":0,"type":"integer"}`
	type def struct{ name, description, effect, destination, input string }
	want := []def{
		{"shop_list_orders", "Lists orders.", "read allow", "GET https://eu.shop.example/v1/orders",
			`{"additionalProperties":false,"properties":{"X-Trace":{"type":"string"},"filter_state_":{"items":{"enum":["open","closed"],"type":"string"},"type":"array"},"ids":{"items":{"type":"integer"},"type":"array"},"range":{"properties":{"from":{"type":"string"},"to":{"type":"string"}},"type":"object"}},"type":"object"}`},
		{"shop_createOrder", "Creates an order.", "once ask", "POST https://eu.shop.example/v1/orders",
			`{"$defs":{` + line + `,` + order + `},"additionalProperties":false,"properties":{"code":{"type":"string"},"lines":{"items":{"$ref":"#/$defs/Line"},"type":"array"},"parent":{"$ref":"#/$defs/Order"}},"required":["lines"],"type":"object"}`},
		{"shop_get_orders_id", "", "read allow", "GET https://eu.shop.example/v1/orders/{id}", `{"additionalProperties":false,"properties":{` + id + `},"required":["id"],"type":"object"}`},
		{"shop_replaceOrder", "", "idempotent ask", "PUT https://eu.shop.example/v1/orders/{id}",
			`{"additionalProperties":false,"properties":{"body_id":{"type":"string"},"header_id":{"type":"string"},` + id + `,"note":{"type":["string","null"]},"query_id":{"type":"string"}},"required":["id"],"type":"object"}`},
		{"shop_patchOrder", "", "once ask", "PATCH https://eu.shop.example/v1/orders/{id}",
			`{"additionalProperties":false,"properties":{"body":{"items":{"type":"object"},"type":"array"},` + id + `},"required":["id","body"],"type":"object"}`},
		{"shop_deleteOrder", "Deprecated.", "idempotent deny", "DELETE https://eu.shop.example/v1/orders/{id}", `{"additionalProperties":false,"properties":{` + id + `},"required":["id"],"type":"object"}`},
	}
	var got []def
	for _, tl := range d.Tools() {
		f := tl.Def()
		got = append(got, def{f.Name, f.Description, string(f.Effect) + " " + string(f.Approval), f.Destination, compact(t, f.Input)})
		if _, err := tool.Verify(tl); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(def{})); diff != "" {
		t.Error(diff)
	}
	if out := compact(t, pick(t, d, "shop_get_orders_id").Def().Output); !strings.Contains(out, `"required":["id","lines"]`) {
		t.Errorf("the result's schema lacks what only comes back: %s", out)
	}
	var notes []string
	for _, n := range d.Notes() {
		n, _, _ = strings.Cut(n, ": error parsing")
		notes = append(notes, n)
	}
	wantNotes := []string{
		"operation elsewhere is left out: it has a server of its own, https://thief.example; set base_url to call it at another one",
		"operation list.orders: $defs/Order/properties/code: the pattern ^(?!x) is not checked",
		"operation createOrder: $defs/Order/properties/code: the pattern ^(?!x) is not checked",
		"operation createOrder: properties/code: the pattern ^(?!x) is not checked",
		"operation get /orders/{id}: $defs/Order/properties/code: the pattern ^(?!x) is not checked",
		"operation sendPhoto is left out: it needs a body of image/png",
		"operations need the security key, for which no value and no header is set",
	}
	if diff := cmp.Diff(wantNotes, notes); diff != "" {
		t.Error(diff)
	}
}

type seen struct{ line, trace, id, key, kind, body string }

func TestCalls(t *testing.T) {
	t.Setenv("RONDA_TEST_KEY", "hunter2222")
	got := make(chan seen, 1)
	srv := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- seen{r.Method + " " + r.RequestURI, r.Header.Get("X-Trace"), r.Header.Get("Id"), r.Header.Get("X-Key") + " " + r.Header.Get("Idempotency-Key"), r.Header.Get("Content-Type"), string(b)}
		fmt.Fprintf(w, `{"result":{"n":1},"facts":{"key":%q}}`, r.Header.Get("X-Key"))
	}))
	t.Cleanup(srv.Close)
	d := read(t, Spec{Document: "shop.yaml", Dir: "testdata", BaseURL: srv.URL + "/v2/", Security: map[string]string{"key": "${RONDA_TEST_KEY}"}})
	if len(d.Tools()) != 7 {
		t.Errorf("%d tools: with a base URL all operations go there", len(d.Tools()))
	}
	const key = "hunter2222 key-1"
	for _, c := range []struct {
		name, args string
		want       seen
	}{
		{"list_orders", `{"filter_state_":["open","closed"],"ids":[1,2],"range":{"from":"a&b","to":null},"X-Trace":"t 1"}`,
			seen{"GET /v2/orders?filter%5Bstate%5D=open&filter%5Bstate%5D=closed&ids=1,2&range%5Bfrom%5D=a%26b", "t 1", "", key, "", ""}},
		{"list_orders", `{}`, seen{"GET /v2/orders", "", "", key, "", ""}},
		{"createOrder", `{"lines":[{"sku":"<é>","count":null}]}`, seen{"POST /v2/orders", "", "", key, "application/json", `{"lines":[{"sku":"<é>","count":null}]}`}},
		{"createOrder", `{}`, seen{"POST /v2/orders", "", "", key, "application/json", `{}`}},
		{"replaceOrder", `{"id":12345678901234567890,"query_id":"q","header_id":"h","body_id":"b"}`,
			seen{"PUT /v2/orders/12345678901234567890?id=q", "", "h", key, "application/json", `{"id":"b"}`}},
		{"replaceOrder", `{"id":7}`, seen{"PUT /v2/orders/7", "", "", key, "", ""}},
		{"patchOrder", `{"id":7,"body":[{"op":"x"}]}`, seen{"PATCH /v2/orders/7", "", "", key, "application/json", `[{"op":"x"}]`}},
		{"deleteOrder", `{"id":"../x"}`, seen{"DELETE /v2/orders/..%2Fx", "", "", key, "", ""}},
	} {
		res, err := pick(t, d, c.name).Run(t.Context(), tool.Call{Key: "key-1", Args: json.RawMessage(c.args)})
		want := tool.Result{Text: `{"n":1}`, Facts: map[string]json.RawMessage{"key": json.RawMessage(`"${RONDA_TEST_KEY}"`)}}
		if diff := cmp.Diff(want, res); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
			continue
		}
		if diff := cmp.Diff(c.want, <-got, cmp.AllowUnexported(seen{})); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.name, c.args, diff)
		}
	}
	for name, args := range map[string]string{"list_orders": `{"range":{"from":[1]}}`, "deleteOrder": `{}`} {
		_, err := pick(t, d, name).Run(t.Context(), tool.Call{Args: json.RawMessage(args)})
		if e := tool.AsError(err); e == nil || e.Class != loop.ClassInvalid || !e.NotRun {
			t.Errorf("%s %s: %v", name, args, err)
		}
	}
}

// A document of 3.1 whose schema is in another file beside it.
func TestNewerDocumentInTwoFiles(t *testing.T) {
	d := read(t, Spec{Document: "testdata/notes.json", BaseURL: "http://localhost:1"})
	want := `{"additionalProperties":false,"properties":{"kind":{"const":"note"},"size":{"exclusiveMinimum":0,"type":"integer"},"tags":{"items":{"type":"string"},"type":["array","null"]},"text":{"description":"What to remember.","type":"string"}},"required":["text"],"type":"object"}`
	if got := compact(t, pick(t, d, "addNote").Def().Input); got != want {
		t.Errorf("got %s", got)
	}
	if len(d.Notes()) > 0 {
		t.Errorf("notes %q", d.Notes())
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "outside.yaml"), []byte("A: {type: string}"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	doc := func(ref string) string {
		return `{"openapi":"3.0.0","info":{"title":"t","version":"1"},"servers":[{"url":"/v1"}],"paths":{"/a":{"get":{"responses":{"200":{"description":"x","content":{"application/json":{"schema":{"$ref":"` + ref + `"}}}}}}}}}`
	}
	plain := write("plain.json", strings.Replace(doc("#/x"), `"schema":{"$ref":"#/x"}`, `"schema":{}`, 1))
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{}, "document: name the file"},
		{Spec{Document: "https://a.example/openapi.json"}, "document: nothing is fetched"},
		{Spec{Document: filepath.Join(dir, "none.yaml")}, "no such file"},
		{Spec{Document: write("swagger.yaml", "swagger: '2.0'\ninfo: {title: t, version: '1'}\npaths: {}\n")}, `it does not say "openapi: 3…"`},
		{Spec{Document: write("later.yaml", "openapi: 4.0.0\ninfo: {title: t, version: '1'}\npaths: {}\n")}, "OpenAPI 4.0.0 is not known"},
		{Spec{Document: write("bad.yaml", "openapi: [")}, "document: "},
		{Spec{Document: write("remote.json", doc("https://a.example/x.json#/A"))}, "nothing is fetched"},
		{Spec{Document: write("outside.json", doc("../outside.yaml#/A"))}, "outside of the document's folder"},
		{Spec{Document: plain}, `servers: "/v1" is not absolute; set base_url`},
		{Spec{Document: plain, BaseURL: "ftp://x"}, `base_url: "ftp://x" is not absolute`},
		{Spec{Document: plain, BaseURL: "http://u:p@x"}, "holds more than scheme, host and path"},
		{Spec{Document: "testdata/shop.yaml", Security: map[string]string{"nope": "x"}}, `security: the document has no scheme "nope"; it has basic, key, query, token`},
		{Spec{Document: "testdata/shop.yaml", Security: map[string]string{"query": "x"}}, "security: query: keys in the query end up in logs"},
		{Spec{Document: "testdata/shop.yaml", Security: map[string]string{"basic": "x"}}, "security: basic: a scheme of type http basic has no such value"},
		{Spec{Document: "testdata/shop.yaml", Offer: tool.Offer{Only: []string{"nope"}}}, `only: there is no tool "nope"; there are createOrder, deleteOrder, `},
	} {
		if _, err := Load(t.Context(), c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v:\n got %v\nwant %s", c.spec, err, c.want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, name := range []string{"shop.yaml", "notes.json", "common.yaml"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "doc.yaml")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Load(t.Context(), Spec{Document: path, BaseURL: "http://localhost:1"})
		if err != nil {
			return
		}
		for _, tl := range d.Tools() {
			if _, err := tool.Verify(tl); err != nil {
				t.Fatal(err)
			}
		}
	})
}

package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ronda-go/ronda/loop"
)

func runNothing(context.Context, Call) (Result, error) { return Result{}, nil }

type payment struct {
	To      string            `json:"to" jsonschema:"who gets it"`
	Amount  json.Number       `json:"amount"`
	Tags    []string          `json:"tags,omitempty"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Photo   []byte            `json:"photo,omitempty"`
	When    time.Time         `json:"when,omitzero"`
	Note    *string           `json:"note,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	private int               //lint:ignore U1000 it must not enter the schema
}

type receipt struct {
	No string `json:"no"`
}

func TestFuncDef(t *testing.T) {
	five, twenty := 5, 20
	got := Func("pay", "Pay somebody.", func(context.Context, payment) (receipt, error) { return receipt{}, nil },
		Idempotent(), Ask(), Label("money"), OnReject("stop"), Timeout(time.Second), Retries(2), CallsMax(5), Poller(20, time.Minute),
		ResultCap(100), Requires("find"), RequiresSame("quote", "to", "amount"), Grounded("to"), Destination("bank"),
		Enum("to", "ana", "bob"),
		CheckWith(func(context.Context, payment) (string, receipt, error) { return loop.HappenedNo, receipt{}, nil }))
	want := Def{
		Name: "pay", Description: "Pay somebody.",
		Input: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string","description":"who gets it","enum":["ana","bob"]},` +
			`"amount":{"type":"number"},"tags":{"type":"array","items":{"type":"string"}},"raw":true,"photo":{"type":"string","contentEncoding":"base64"},` +
			`"when":{"type":"string","format":"date-time"},"note":{"type":["null","string"]},"labels":{"type":"object","additionalProperties":{"type":"string"}}},` +
			`"required":["to","amount"],"additionalProperties":false}`),
		Output: json.RawMessage(`{"type":"object","properties":{"no":{"type":"string"}},"required":["no"],"additionalProperties":false}`),
		Effect: loop.Idempotent, Label: "money", Approval: loop.Ask, OnReject: "stop", Timeout: time.Second, Retries: 2,
		CallsMax: &five, Poll: &Poll{CallsMax: &twenty, Interval: time.Minute}, ResultCap: 100,
		Requires: []Requirement{{Tool: "find"}, {Tool: "quote", Same: []string{"to", "amount"}}}, Grounded: []string{"to"},
		Check: true, Destination: "bank",
	}
	sameJSON := cmp.Transformer("json", func(r json.RawMessage) any {
		var v any
		if len(r) > 0 {
			if err := json.Unmarshal(r, &v); err != nil {
				return err.Error()
			}
		}
		return v
	})
	if diff := cmp.Diff(want, got.Def(), sameJSON); diff != "" {
		t.Errorf("Def (-want +got):\n%s", diff)
	}
	if _, err := Verify(got); err != nil {
		t.Error(err)
	}
}

func TestOptionsThatContradict(t *testing.T) {
	run := func(context.Context, struct{}) (string, error) { return "", nil }
	got := Func("t", "", run, Read(), Once(), Ask(), Deny(), Poller(-1, 0)).Def()
	if got.Effect != loop.Once || got.Approval != loop.Deny || got.Poll == nil || got.Poll.CallsMax != nil {
		t.Errorf("the last word does not hold: %+v", got)
	}
}

func TestFuncRuns(t *testing.T) {
	ctx := context.Background()
	call := Call{Run: "r", ID: "1.0", Name: "t", Key: "k", Attempt: 2, Args: json.RawMessage(`{"to":"ana","amount":12345678901234567890.123}`)}
	run := func(t Tool) (Result, error) { return t.Run(ctx, call) }
	type in = payment
	for _, c := range []struct {
		name string
		tool Tool
		want Result
		err  *Error
	}{
		{name: "a string is the text, made valid",
			tool: Func("t", "", func(_ context.Context, p in) (string, error) { return "<" + p.To + "\xff>", nil }),
			want: Result{Text: "<ana\ufffd>"}},
		{name: "a value is JSON; numbers stay exact; no HTML escapes",
			tool: Func("t", "", func(_ context.Context, p in) (map[string]any, error) {
				return map[string]any{"n": p.Amount, "s": "<&>"}, nil
			}),
			want: Result{Text: `{"n":12345678901234567890.123,"s":"<&>"}`}},
		{name: "a Result is itself; its facts win",
			tool: Func("t", "", func(ctx context.Context, p in) (Result, error) {
				if err := errors.Join(Fact(ctx, "paid", map[string]any{"b": 1.0, "a": "R-1"}), Fact(ctx, "x", 1)); err != nil {
					return Result{}, err
				}
				return Result{Text: "ok", Facts: map[string]json.RawMessage{"x": json.RawMessage("2")}}, nil
			}),
			want: Result{Text: "ok", Facts: map[string]json.RawMessage{"paid": json.RawMessage(`{"a":"R-1","b":1}`), "x": json.RawMessage("2")}}},
		{name: "the call is in the context",
			tool: Func("t", "", func(ctx context.Context, p in) (string, error) {
				c, ok := CallOf(ctx)
				return fmt.Sprint(c.Run, c.ID, c.Key, c.Attempt, ok), nil
			}),
			want: Result{Text: "r1.0k2 true"}},
		{name: "an error keeps its class and gets the facts",
			tool: Func("t", "", func(ctx context.Context, p in) (string, error) {
				_ = Fact(ctx, "draft", true)
				return "", fmt.Errorf("pay: %w", Transient(errors.New("busy"), time.Second))
			}),
			err: &Error{Class: loop.ClassTransient, Message: "pay: busy", RetryAfter: time.Second, NotRun: true, Facts: map[string]json.RawMessage{"draft": json.RawMessage("true")}}},
		{name: "a plain error is an ordinary one",
			tool: Func("t", "", func(context.Context, in) (string, error) { return "", errors.New("no such case") }),
			err:  &Error{Class: loop.ClassError, Message: "no such case"}},
		{name: "a time-out is unknown",
			tool: Func("t", "", func(context.Context, in) (string, error) {
				return "", fmt.Errorf("post: %w", context.DeadlineExceeded)
			}),
			err: &Error{Class: loop.ClassUnknown, Message: "post: context deadline exceeded"}},
		{name: "arguments that do not decode are invalid",
			tool: Func("t", "", func(context.Context, struct{ To int }) (string, error) { return "", nil }),
			err:  &Error{Class: loop.ClassInvalid, Message: "To: cannot be a string here (int)", NotRun: true}},
		{name: "a result that cannot be encoded: the effect may have happened",
			tool: Func("t", "", func(context.Context, in) (func(), error) { return func() {}, nil }),
			err:  &Error{Class: loop.ClassUnknown}},
		{name: "a misconfigured tool does not run",
			tool: Func("t", "", func(context.Context, int) (string, error) { return "ran", nil }),
			err:  &Error{Class: loop.ClassFatal, NotRun: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := run(c.tool)
			var e *Error
			if err != nil && !errors.As(err, &e) {
				t.Fatalf("%v is no *Error", err)
			}
			if diff := cmp.Diff(c.want, res); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.err, e, cmpopts.IgnoreFields(Error{}, "Err")); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFuncPanicsReachTheCaller(t *testing.T) {
	defer func() {
		if got := recover(); got != "boom" {
			t.Errorf("recovered %v", got)
		}
	}()
	tool := Func("t", "", func(context.Context, struct{}) (string, error) { panic("boom") })
	_, _ = tool.Run(context.Background(), Call{})
}

func TestFuncNeedsNoArguments(t *testing.T) {
	tool := Func("now", "", func(context.Context, struct{}) (string, error) { return "noon", nil })
	s, err := Verify(tool)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(s.Validate([]byte(`{"a":1}`))), "a: not known; nothing is allowed here"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if res, err := tool.Run(context.Background(), Call{}); err != nil || res.Text != "noon" {
		t.Errorf("got %+v, %v", res, err)
	}
}

type node struct{ Next *node }

func TestFuncMistakesAreReported(t *testing.T) {
	text := func(context.Context, struct{ A int }) (string, error) { return "", nil }
	for _, c := range []struct {
		tool Tool
		want string
	}{
		{Func[int, string]("t", "", nil), `tool "t": the arguments are a int; they must be a struct or a map with string keys`},
		{Func[struct{}, string]("t", "", nil), `tool "t": the function is nil`},
		{Func("t", "", func(context.Context, *struct{}) (string, error) { return "", nil }), `tool "t": the arguments are a *struct {}; they must be a struct or a map with string keys`},
		{Func("t", "", func(context.Context, node) (string, error) { return "", nil }), `tool "t": infer the schema of the arguments: `},
		{Func("t", "", text, Enum("B", 1)), `tool "t": Enum("B"): there is no argument of that name`},
		{Func("t", "", text, InputSchema(nil), Enum("A", 1)), `tool "t": Enum("A") needs the schema that Func infers`},
		{Func("t", "", text, Grounded("B")), `tool "t": grounded: the input has no argument "B"`},
		{New(Def{Name: "t"}, nil), `tool "t": the function is nil`},
	} {
		if _, err := Verify(c.tool); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}

func TestFreeArguments(t *testing.T) {
	for name, tool := range map[string]Tool{
		"raw": Func("t", "", func(_ context.Context, in json.RawMessage) (string, error) { return string(in), nil }),
		"map": Func("t", "", func(_ context.Context, in map[string]any) (string, error) {
			return fmt.Sprintf(`{"a":%v}`, in["a"]), nil
		}),
		"any": Func("t", "", func(_ context.Context, in any) (any, error) { return in, nil }),
	} {
		if _, err := Verify(tool); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		res, err := tool.Run(context.Background(), Call{Args: json.RawMessage(`{"a":1}`)})
		if err != nil || res.Text != `{"a":1}` {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

func TestCheck(t *testing.T) {
	pay := func(context.Context, payment) (receipt, error) { return receipt{}, nil }
	tool := Func("pay", "", pay, CheckWith(func(ctx context.Context, p payment) (string, receipt, error) {
		c, _ := CallOf(ctx)
		if c.Key == "" {
			return loop.HappenedNo, receipt{No: "never"}, nil
		}
		return loop.HappenedYes, receipt{No: c.Key + p.To}, Fact(ctx, "paid", c.Key)
	}))
	c := tool.(Checker)
	happened, res, err := c.Check(context.Background(), Call{Key: "k", Args: json.RawMessage(`{"to":"ana"}`)})
	want := Result{Text: `{"no":"kana"}`, Facts: map[string]json.RawMessage{"paid": json.RawMessage(`"k"`)}}
	if diff := cmp.Diff(want, res); happened != loop.HappenedYes || err != nil || diff != "" {
		t.Errorf("%s, %v (-want +got):\n%s", happened, err, diff)
	}
	happened, res, err = c.Check(context.Background(), Call{})
	if diff := cmp.Diff(Result{}, res); happened != loop.HappenedNo || err != nil || diff != "" {
		t.Errorf("%s, %v (-want +got):\n%s", happened, err, diff)
	}
	happened, _, err = Func("pay", "", pay).(Checker).Check(context.Background(), Call{})
	if happened != loop.HappenedUnknown || err != nil {
		t.Errorf("without a check: %s, %v", happened, err)
	}
}

func TestFactOutsideOfACall(t *testing.T) {
	if err := Fact(context.Background(), "a", 1); err == nil {
		t.Error("a fact without a call was taken")
	}
	var kept context.Context
	tool := Func("t", "", func(ctx context.Context, _ struct{}) (string, error) {
		kept = ctx
		return "", Fact(ctx, "f", func() {})
	})
	if _, err := tool.Run(context.Background(), Call{}); err == nil || !strings.Contains(err.Error(), `fact "f"`) {
		t.Errorf("a fact that is no JSON: %v", err)
	}
	if err := Fact(kept, "late", 1); err == nil || err.Error() != `fact "late": the call is over` {
		t.Errorf("a late fact: %v", err)
	}
}

func TestErrorClasses(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct {
		err  error
		want Error
	}{
		{Invalid(cause), Error{Class: loop.ClassInvalid, Message: "cause"}},
		{Denied(cause), Error{Class: loop.ClassDenied, Message: "cause"}},
		{Fatal(cause), Error{Class: loop.ClassFatal, Message: "cause"}},
		{Unknown(cause), Error{Class: loop.ClassUnknown, Message: "cause"}},
		{Transient(cause, -1), Error{Class: loop.ClassTransient, Message: "cause", NotRun: true}},
		{Errorf(loop.ClassFatal, "a %d: %w", 1, cause), Error{Class: loop.ClassFatal, Message: "a 1: cause"}},
		{&Error{Message: "m"}, Error{Class: loop.ClassError, Message: "m"}},
		{context.Canceled, Error{Class: loop.ClassUnknown, Message: "context canceled"}},
		{cause, Error{Class: loop.ClassError, Message: "cause"}},
	} {
		if diff := cmp.Diff(&c.want, AsError(c.err), cmpopts.IgnoreFields(Error{}, "Err")); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.err, diff)
		}
		if c.want.Message == "cause" && !errors.Is(c.err, cause) {
			t.Errorf("%v lost its cause", c.err)
		}
	}
	for _, err := range []error{Invalid(nil), Denied(nil), Fatal(nil), Unknown(nil), Transient(nil, 1)} {
		if err != nil {
			t.Errorf("nil became %v", err)
		}
	}
	if AsError(nil) != nil {
		t.Error("AsError(nil) is not nil")
	}
}

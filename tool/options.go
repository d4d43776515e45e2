package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ronda-go/ronda/loop"
)

// Option changes a tool while Func or New makes it. Of options that contradict each other the last one holds.
type Option func(*making)

// making is a tool in the making.
type making struct {
	*made
	schema *jsonschema.Schema // inferred by Func; nil: Def.Input holds
}

func (m *making) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

// Read says that the tool changes nothing.
func Read() Option { return effect(loop.Read) }

// Idempotent says that a call may be repeated with the same key.
func Idempotent() Option { return effect(loop.Idempotent) }

// Once says that an effect must not happen twice. It is the default.
func Once() Option { return effect(loop.Once) }

func effect(e loop.Effect) Option { return func(m *making) { m.def.Effect = e } }

// Ask has a person decide on each call.
func Ask() Option { return func(m *making) { m.def.Approval = loop.Ask } }

// Deny refuses each call: the model sees the tool and cannot use it unless a policy overrides this.
func Deny() Option { return func(m *making) { m.def.Approval = loop.Deny } }

// Label names the effect; tools that do the same thing to the world share one.
func Label(label string) Option { return func(m *making) { m.def.Label = label } }

// OnReject says what a refusal does: "tell" hands it to the model, "stop" ends the run as denied.
func OnReject(what string) Option { return func(m *making) { m.def.OnReject = what } }

// Timeout bounds one attempt.
func Timeout(d time.Duration) Option { return func(m *making) { m.def.Timeout = d } }

// Retries allows n further attempts after transient errors.
func Retries(n int) Option { return func(m *making) { m.def.Retries = n } }

// CallsMax allows n calls of the tool in a run. Zero means none.
func CallsMax(n int) Option { return func(m *making) { m.def.CallsMax = &n } }

// Poller exempts the tool from stall detection: at most calls of it in a run (below 0: no cap of its own), interval apart.
func Poller(calls int, interval time.Duration) Option {
	return func(m *making) {
		m.def.Poll = &Poll{Interval: interval}
		if calls >= 0 {
			m.def.Poll.CallsMax = &calls
		}
	}
}

// ResultCap bounds the bytes of a result that enter the transcript.
func ResultCap(bytes int) Option { return func(m *making) { m.def.ResultCap = bytes } }

// Requires names tools that must have succeeded earlier in the run.
func Requires(tools ...string) Option {
	return func(m *making) {
		for _, t := range tools {
			m.def.Requires = append(m.def.Requires, Requirement{Tool: t})
		}
	}
}

// RequiresSame names a tool that must have succeeded earlier in the run on the same values of the given arguments.
func RequiresSame(tool string, args ...string) Option {
	return func(m *making) { m.def.Requires = append(m.def.Requires, Requirement{Tool: tool, Same: args}) }
}

// Grounded names arguments whose value must occur in an earlier result or in the user's words.
func Grounded(args ...string) Option {
	return func(m *making) { m.def.Grounded = append(m.def.Grounded, args...) }
}

// Destination says where calls go; an approval binds it.
func Destination(d string) Option { return func(m *making) { m.def.Destination = d } }

// InputSchema replaces the schema that Func infers. The arguments must still decode into its input type.
func InputSchema(raw json.RawMessage) Option {
	return func(m *making) { m.def.Input, m.schema = raw, nil }
}

// Enum allows only the given values of a top-level argument of a Func; struct tags cannot say that. Values are encoded as
// JSON.
func Enum(arg string, values ...any) Option {
	return func(m *making) {
		if m.schema == nil {
			m.fail("Enum(%q) needs the schema that Func infers", arg)
			return
		}
		p := m.schema.Properties[arg]
		if p == nil {
			m.fail("Enum(%q): there is no argument of that name", arg)
			return
		}
		p.Enum = values
	}
}

// CheckWith makes the tool a Checker: fn tells whether the effect of a call with these arguments and this key (CallOf)
// happened, in the words loop.HappenedYes, HappenedNo and HappenedUnknown, without changing anything. With yes, out becomes
// the result as Func would make it.
func CheckWith[In, Out any](fn func(ctx context.Context, in In) (happened string, out Out, err error)) Option {
	return CheckCalls(func(ctx context.Context, call Call) (string, Result, error) {
		var in In
		if err := decodeArgs(call.Args, &in); err != nil {
			return loop.HappenedUnknown, Result{}, err
		}
		ctx, calling := begin(ctx, call)
		happened, out, err := fn(ctx, in)
		facts := calling.end()
		if err != nil || happened != loop.HappenedYes {
			return happened, Result{}, err
		}
		res, err := resultOf(out, facts)
		return happened, res, err
	})
}

// CheckCalls is CheckWith on the raw layer.
func CheckCalls(fn func(ctx context.Context, call Call) (happened string, res Result, err error)) Option {
	return func(m *making) { m.check, m.def.Check = fn, fn != nil }
}

package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ronda-go/ronda/loop"
)

// fault is one that somebody could have made: the plant makes it between the driver and those who watch it, and rule is the invariant
// that has to notice. applied counts how often there was an occasion.
type fault struct {
	name string
	rule string
	make func(applied *atomic.Int64) *plant
}

// onEvent plants a fault in what is written.
func onEvent[T loop.Body](change func(b *T) bool) func(*atomic.Int64) *plant {
	return func(n *atomic.Int64) *plant {
		return &plant{event: func(_ string, ev *loop.Event) bool {
			if b, ok := ev.Body.(T); ok && change(&b) {
				n.Add(1)
				*ev = loop.Event{Seq: ev.Seq, Time: ev.Time, Body: b}
			}
			return false
		}}
	}
}

// onRequest plants a fault in what is sent.
func onRequest(change func(r *seenRequest) bool) func(*atomic.Int64) *plant {
	return func(n *atomic.Int64) *plant {
		return &plant{request: func(r *seenRequest) {
			r.messages = slices.Clone(r.messages)
			if change(r) {
				n.Add(1)
			}
		}}
	}
}

// onCall plants a fault in what is executed.
func onCall(change func(w *world, e *execution) (hit, again bool)) func(*atomic.Int64) *plant {
	return func(n *atomic.Int64) *plant {
		return &plant{call: func(w *world, e *execution) bool {
			hit, again := change(w, e)
			if hit {
				n.Add(1)
			}
			return again
		}}
	}
}

// edit changes the blocks of the last message for which f says so.
func edit(r *seenRequest, f func(m *loop.Message, blocks []loop.Block) []loop.Block) bool {
	for i := len(r.messages) - 1; i >= 0; i-- {
		if blocks := f(r.messages[i], slices.Clone(r.messages[i].Blocks)); blocks != nil {
			m := *r.messages[i]
			m.Blocks = blocks
			r.messages[i] = &m
			return true
		}
	}
	return false
}

var faults = []fault{
	{"a call with effect once runs twice", "at most once", onCall(func(_ *world, e *execution) (bool, bool) { return once(e.def), once(e.def) })},
	{"an attempt that may be repeated is, without a record", "at most once", onCall(func(_ *world, e *execution) (bool, bool) {
		again := e.def.Effect == loop.Idempotent
		return again, again
	})},
	{"two calls have one key", "at most once", func(n *atomic.Int64) *plant {
		return &plant{before: func(e *execution) { n.Add(1); e.tool.Key = "key" }}
	}},
	{"the key changes from attempt to attempt", "at most once", func(n *atomic.Int64) *plant {
		return &plant{before: func(e *execution) {
			if e.tool.Attempt > 1 {
				n.Add(1)
			}
			e.tool.Key += fmt.Sprint(e.tool.Attempt)
		}}
	}},
	{"a call runs with other arguments than were approved", "approval is exact", func(n *atomic.Int64) *plant {
		return &plant{before: func(e *execution) { n.Add(1); e.tool.Args = json.RawMessage(`{"x":99}`) }}
	}},
	{"a call runs without being asked for", "approval is exact", onEvent(func(b *loop.CallAuthorized) bool {
		hit := b.Verdict == loop.Allow && b.Finish == ""
		if hit {
			b.Verdict = loop.Ask
		}
		return hit
	})},
	{"a call runs though a person said no", "approval is exact", onEvent(func(b *loop.ApprovalDecided) bool {
		hit := b.Decision == loop.Approve
		if hit {
			b.Decision = loop.Reject
		}
		return hit
	})},
	{"a tool runs before its start is on record", "written before done", func(n *atomic.Int64) *plant {
		return &plant{event: func(_ string, ev *loop.Event) bool {
			_, hit := ev.Body.(loop.ToolStarted)
			if hit {
				n.Add(1)
			}
			return hit
		}}
	}},
	{"a model call is sent before its start is on record", "written before done", onRequest(func(r *seenRequest) bool { r.attempt++; return true })},
	{"usage is not settled", "exact account", func(n *atomic.Int64) *plant {
		return &plant{ledger: func(_ string, st *loop.State) {
			if st.Ledger.Own.Usage.Output > 0 {
				n.Add(1)
				st.Ledger.Own.Usage.Output--
			}
		}}
	}},
	{"a child's usage is lost", "exact account", onEvent(func(b *loop.ChildStopped) bool {
		hit := b.Counts.ModelCalls > 0
		b.Counts = loop.Counts{}
		return hit
	})},
	{"a limit is one too high", "hard caps", func(n *atomic.Int64) *plant {
		lower := func(l *int64) *int64 {
			if l == nil || *l == 0 {
				return l
			}
			n.Add(1)
			v := *l - 1
			return &v
		}
		return &plant{ledger: func(_ string, st *loop.State) {
			if st.Seq > 1 {
				return
			}
			c := *st.Config
			c.Limits.ToolCalls, c.Limits.ModelCalls, c.Limits.Rounds = lower(c.Limits.ToolCalls), lower(c.Limits.ModelCalls), lower(c.Limits.Rounds)
			st.Config = &c
		}}
	}},
	{"more is billed than was reserved, and nobody notices", "exact account", func(n *atomic.Int64) *plant {
		return &plant{ledger: func(_ string, st *loop.State) {
			if st.Ledger.Held.Output > 0 {
				n.Add(1)
				st.Ledger.Held.Output, st.Ledger.Cost = 0, st.Ledger.Cost+1
			}
		}}
	}},
	{"results change places", "well-formed prompts", onRequest(func(r *seenRequest) bool {
		return edit(r, func(m *loop.Message, b []loop.Block) []loop.Block {
			if m.Role != loop.Tool || len(b) < 2 {
				return nil
			}
			b[0], b[1] = b[1], b[0]
			return b
		})
	})},
	{"a result is missing", "well-formed prompts", onRequest(func(r *seenRequest) bool {
		return edit(r, func(m *loop.Message, b []loop.Block) []loop.Block {
			if m.Role != loop.Tool || len(b) < 2 {
				return nil
			}
			return b[:len(b)-1]
		})
	})},
	{"tools may be called in the closing call", "well-formed prompts", onRequest(func(r *seenRequest) bool {
		hit := r.choice != ""
		r.choice = ""
		return hit
	})},
	{"a message of the user is forgotten", "well-formed prompts", onRequest(func(r *seenRequest) bool {
		for i, m := range r.messages {
			if m.Role == loop.User && m.Seq > 1 && len(m.Blocks) > 0 && strings.HasPrefix(m.Blocks[0].Text, "And this too.") {
				r.messages = slices.Delete(r.messages, i, i+1)
				return true
			}
		}
		return false
	})},
	{"an early message changes", "stable prefix", onRequest(func(r *seenRequest) bool {
		m := *r.messages[0]
		m.Blocks = []loop.Block{{Kind: loop.BlockText, Text: fmt.Sprintf("It is call %d. %s", r.call, m.Blocks[0].Text)}}
		r.messages[0] = &m
		return r.call > 1
	})},
	{"a sealed thought is changed", "opaque is opaque", onRequest(func(r *seenRequest) bool {
		return edit(r, func(m *loop.Message, b []loop.Block) []loop.Block {
			for i := range b {
				if m.Role == loop.Assistant && len(b[i].Raw) > 0 {
					b[i].Raw = json.RawMessage(`{}`)
					return b
				}
			}
			return nil
		})
	})},
	{"the time goes back", "fold", func(n *atomic.Int64) *plant {
		return &plant{event: func(_ string, ev *loop.Event) bool {
			if ev.Seq == 4 {
				n.Add(1)
				ev.Time -= loop.Minute
			}
			return false
		}}
	}},
	{"an event is lost", "fold", func(n *atomic.Int64) *plant {
		return &plant{event: func(_ string, ev *loop.Event) bool {
			_, hit := ev.Body.(loop.ToolReturned)
			if hit {
				n.Add(1)
			}
			return hit
		}}
	}},
	{"facts are lost", "fold", func(n *atomic.Int64) *plant {
		return &plant{live: func(st *loop.State) {
			if len(st.Facts) > 0 {
				n.Add(1)
			}
			st.Facts = nil
		}}
	}},
	{"a run stops twice", "one end", func(n *atomic.Int64) *plant {
		return &plant{extra: func(_ *world, _ string, st loop.State) *loop.Event {
			if st.Stop == nil {
				return nil
			}
			n.Add(1)
			return &loop.Event{Seq: st.Seq + 1, Time: st.Time, Body: *st.Stop}
		}}
	}},
	{"a stop that is on no list", "one end", onEvent(func(b *loop.RunStopped) bool { b.Stop = "finished"; return true })},
	{"a result of any size enters the transcript", "bounded", onEvent(func(b *loop.ToolReturned) bool { b.Text += strings.Repeat("x", 20_000); return true })},
	{"after a crash the run ends otherwise", "crash anywhere", func(n *atomic.Int64) *plant {
		return &plant{end: func(e *End, crashed bool) {
			if crashed && e.Stop == loop.StopCompleted {
				n.Add(1)
				e.Answer = ""
			}
		}}
	}},
}

// TestPlantedFaults: seeds without strong invariants prove little. Each of these faults has to be noticed, by the invariant that it
// breaks, within a few seeds.
func TestPlantedFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
			var applied atomic.Int64
			p := f.make(&applied)
			for seed := uint64(1); seed <= 200; seed++ {
				problems, _ := compared(t, seed, p)
				for _, problem := range problems {
					if strings.HasPrefix(problem, f.rule) {
						t.Logf("caught with seed %d: %.160s", seed, problem)
						return
					}
				}
			}
			t.Errorf("not caught in 200 seeds; there were %d occasions", applied.Load())
		})
	}
}

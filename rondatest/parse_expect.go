package rondatest

import (
	"math"
	"slices"
	"strconv"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
)

func readExpect(p *yamldoc.Problems, n *node) expect {
	e := expect{line: n.Line}
	p.Object(n, yamldoc.Keys{
		"status": func(n *node) {
			e.status = p.OneOf(n, "a status", loop.StatusRunning, loop.StatusWaiting, loop.StatusStopped)
		},
		"stop": func(n *node) {
			var words []string
			for _, r := range loop.Reasons() {
				words = append(words, string(r))
			}
			e.stop = p.OneOf(n, "a stop", words...)
		},
		"limit": func(n *node) {
			l := p.OneOf(n, "a limit", loop.LimitRounds, loop.LimitModelCalls, loop.LimitToolCalls, loop.LimitTokens, loop.LimitCost,
				loop.LimitActiveTime, loop.LimitDeadline)
			e.limit = &l
		},
		"waiting": func(n *node) {
			e.hasWaiting = true
			p.List(n, func(n *node) {
				e.waiting = append(e.waiting, p.OneOf(n, "what a run can wait for", loop.WaitApproval, loop.WaitResolution, loop.WaitInput,
					loop.WaitExtension, loop.WaitChild, loop.WaitTimer))
			})
		},
		"answer":     func(n *node) { e.answer = readText(p, n, false) },
		"executions": func(n *node) { e.executions = readCounts(p, n, nil) },
		"counts":     func(n *node) { e.counts = readCounts(p, n, countNames) },
		"usage": func(n *node) {
			e.usage = readCounts(p, n, usageNames)
			if c := n.Get("cost_usd"); c != nil {
				pico := loop.Pico(math.Round(p.Float(c) * float64(loop.USD)))
				e.cost = &pico
			}
		},
		"facts": func(n *node) { e.facts = fields(p, n) },
		"pending": func(n *node) {
			e.hasPending = true
			p.List(n, func(n *node) { e.pending = append(e.pending, readPending(p, n)) })
		},
		"requests": func(n *node) { p.List(n, func(n *node) { e.requests = append(e.requests, readRequest(p, n)) }) },
		"events": func(n *node) {
			e.eventsLine = n.Line
			p.List(n, func(n *node) { e.events = append(e.events, p.Name(n)) })
		},
		"sessions": func(n *node) {
			p.Object(n, yamldoc.Keys{"messages": func(n *node) { v := p.Int(n); e.messages = &v }})
		},
	})
	return e
}

var (
	countNames = []string{"rounds", "model_calls", "model_attempts", "tool_calls", "tool_attempts"}
	usageNames = []string{"input", "cache_read", "cache_write", "output", "reasoning", "cost_usd"}
)

// readCounts reads a map of numbers; names nil means any name.
func readCounts(p *yamldoc.Problems, n *node, names []string) (out []countExpect) {
	for _, f := range fields(p, n) {
		switch {
		case names != nil && !slices.Contains(names, f.Name):
			p.Add(f.Key, "unknown key "+strconv.Quote(f.Name), "known keys: "+list(names))
		case f.Name == "cost_usd" && names != nil:
		default:
			out = append(out, countExpect{f.Name, p.Int(f.Value), f.Key.Line})
		}
	}
	return out
}

func list(words []string) string {
	s := ""
	for i, w := range words {
		if i > 0 {
			s += ", "
		}
		s += w
	}
	return s
}

// readText reads what a text must be: a map, or a text that it equals (or, with part, contains).
func readText(p *yamldoc.Problems, n *node, part bool) *textExpect {
	t := &textExpect{line: n.Line}
	if n.Kind != yamldoc.Map {
		s := p.Scalar(n)
		if part {
			t.contains = []string{s}
		} else {
			t.equals = &s
		}
		return t
	}
	p.Object(n, yamldoc.Keys{
		"equals":   func(n *node) { s := p.Scalar(n); t.equals = &s },
		"contains": func(n *node) { t.contains = oneOrMore(p, n) },
		"excludes": func(n *node) { t.excludes = oneOrMore(p, n) },
	})
	return t
}

func oneOrMore(p *yamldoc.Problems, n *node) []string {
	if n.Kind == yamldoc.List {
		return p.Strings(n)
	}
	return []string{p.Scalar(n)}
}

func readPending(p *yamldoc.Problems, n *node) pendingExpect {
	e := pendingExpect{line: n.Line}
	p.Object(n, yamldoc.Keys{
		"call": func(n *node) { e.call = p.Name(n) },
		"id":   func(n *node) { e.id = p.Scalar(n) },
		"args": func(n *node) { e.args = n; fields(p, n) },
		"for":  func(n *node) { e.kind = p.OneOf(n, "what a call can wait for", loop.WaitApproval, loop.WaitResolution) },
	})
	return e
}

func readRequest(p *yamldoc.Problems, n *node) requestExpect {
	e := requestExpect{line: n.Line}
	p.Object(n, yamldoc.Keys{
		"n": func(n *node) {
			if n.Kind == yamldoc.String && n.Text == "last" {
				return
			}
			if e.n = int(p.Int(n)); e.n < 1 {
				p.Add(n, "counts from 1", "or write last")
			}
		},
		"tool_choice":     func(n *node) { s := p.Name(n); e.choice = &s },
		"tools_declared":  func(n *node) { b := p.Bool(n); e.declared = &b },
		"system_contains": func(n *node) { e.system = oneOrMore(p, n) },
		"system_excludes": func(n *node) { e.systemNot = oneOrMore(p, n) },
		"results": func(n *node) {
			e.hasResults = true
			p.List(n, func(n *node) { e.results = append(e.results, readResult(p, n)) })
		},
		"user_last": func(n *node) { e.user = readText(p, n, true) },
	})
	if n.Kind == yamldoc.Map && n.Get("n") == nil {
		p.Add(n, "n is missing: which request is meant", "write n: 1 or n: last")
	}
	return e
}

func readResult(p *yamldoc.Problems, n *node) resultExpect {
	e := resultExpect{line: n.Line}
	p.Object(n, yamldoc.Keys{
		"call":     func(n *node) { e.call = p.Name(n) },
		"id":       func(n *node) { e.id = p.Scalar(n) },
		"contains": func(n *node) { e.contains = oneOrMore(p, n) },
		"excludes": func(n *node) { e.excludes = oneOrMore(p, n) },
		"error":    func(n *node) { b := p.Bool(n); e.isError = &b },
	})
	return e
}

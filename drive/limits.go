package drive

import (
	"math"
	"time"

	"github.com/ronda-go/ronda/loop"
)

func int64p(v *int) *int64 {
	if v == nil {
		return nil
	}
	n := int64(*v)
	return &n
}

// build turns limits as Go users write them into the loop's.
func (l Limits) build(p *problems, field string, rounds bool) loop.Limits {
	var out loop.Limits
	count := func(name string, v int64) *int64 {
		switch {
		case v == 0:
			return nil
		case v == Zero:
			v = 0
		case v < 0:
			p.add(field+"."+name, "%d is negative. Leave it out for no limit, use Zero for a limit of zero", v)
		}
		return &v
	}
	out.Rounds = count("Rounds", int64(l.Rounds))
	if rounds && out.Rounds == nil {
		def := int64(DefaultRounds)
		out.Rounds = &def
	} else if l.Rounds == Unlimited {
		out.Rounds = nil
	}
	out.ModelCalls, out.ToolCalls, out.Tokens = count("ModelCalls", int64(l.ModelCalls)), count("ToolCalls", int64(l.ToolCalls)), count("Tokens", l.Tokens)
	switch {
	case l.CostUSD == 0:
	case l.CostUSD == ZeroUSD:
		zero := loop.Pico(0)
		out.Cost = &zero
	case l.CostUSD < 0 || l.CostUSD > 9e6 || math.IsNaN(l.CostUSD):
		p.add(field+".CostUSD", "%v is no amount. Use a positive number of dollars up to 9 million", l.CostUSD)
	default:
		pico := loop.Pico(math.Round(l.CostUSD * float64(loop.USD)))
		out.Cost = &pico
	}
	duration := func(name string, d time.Duration) *loop.Micros {
		switch {
		case d == 0:
			return nil
		case d == Zero:
			d = 0
		case d < 0:
			p.add(field+"."+name, "%v is negative", d)
		}
		m := toMicros(d)
		return &m
	}
	out.ActiveTime, out.Deadline = duration("ActiveTime", l.ActiveTime), duration("Deadline", l.Deadline)
	return out
}

// build converts USD per million tokens to 10⁻¹² USD per token: one dollar per million is 10⁶ of them.
func (p *Price) build() *loop.Price {
	pico := func(usd float64) loop.Pico { return loop.Pico(math.Round(usd * 1e6)) }
	return &loop.Price{Input: pico(p.Input), CacheRead: pico(p.CacheRead), CacheWrite: pico(p.CacheWrite), Output: pico(p.Output)}
}

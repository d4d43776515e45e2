package drive

import (
	"context"
	"strings"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
)

// sideCap is how many tokens a summary or a verdict may have, unless its model has less.
const sideCap = 4096

// sideModel is what the loop has to know of a model that works beside the agent's own. A model of the same name has the agent's price.
func (c *compiled) sideModel(p *problems, field string, m model.Model, price *Price) loop.SideModel {
	info := m.Info()
	s := loop.SideModel{Model: info.Ref(), Price: info.Price, OutputCap: sideCap}
	switch {
	case price != nil:
		s.Price = price.build()
	case info.Price == nil && info.Ref() == c.info.Ref():
		s.Price = c.config.Price
	}
	if info.OutputCap > 0 && info.OutputCap < sideCap {
		s.OutputCap = info.OutputCap
	}
	if s.Price == nil && (c.config.Limits.Cost != nil || c.agent.Session.CostUSD != 0) && !c.agent.AllowUnpriced {
		p.add(field, "the price of %s is not known, so a cost limit would not hold. Set Price beside the model, or AllowUnpriced", info.Ref())
	}
	return s
}

// sideBound is an upper bound of the tokens of a request that has only texts.
func sideBound(req *model.Request) int64 {
	n := int64(len(req.System)+len(req.Output)) + 64
	for _, m := range req.Messages {
		n += m.Bound()
	}
	return n
}

// ask puts a call for another purpose on record and sends it after the commit. then makes, of a whole reply, what the run is told beside it.
// why says that the model is not asked; nothing was put on record then.
func (d *driver) ask(ctx context.Context, c loop.Command, m model.Model, req *model.Request, then func(reply *loop.ModelReplied) loop.Body) (why string, err error) {
	input := sideBound(req)
	if est, ok := m.(model.Estimator); ok {
		if n, ok := est.Estimate(req); ok {
			input = n
		}
	}
	started, why := d.state.AdmitSide(input)
	if why != "" {
		return why, nil
	}
	if err := d.step(started); err != nil {
		return "", err
	}
	c.N, c.Attempt = started.Call, max(started.Attempt, 1)
	req.Run, req.Call, req.Attempt, req.MaxOutput = d.lease.Run, c.N, c.Attempt, started.Reserve.Output
	req.Cache, req.Timeouts = &model.Cache{}, d.timeouts(false)
	d.under(ctx, c, func(ctx context.Context, w *work) {
		a := d.generate(ctx, w, m, req)
		switch b := a.body.(type) {
		case loop.ModelReplied:
			b.Purpose = started.Purpose
			a.also = then(&b)
			a.body = b
		case loop.ModelFailed:
			b.Purpose = started.Purpose
			b.Attempt = attempt(int(b.Attempt))
			a.body = b
		}
		d.post(a)
	})
	return "", nil
}

// nextSide is the number and attempt that the next call for another purpose will have; an estimate may depend on them.
func (d *driver) nextSide() (call, attempt int64) {
	if d.state.Side.Again {
		return d.state.Model.Call, d.state.Side.Attempt + 1
	}
	return d.state.Model.Call + 1, 1
}

// said is the text of a reply.
func said(b *loop.ModelReplied) string {
	var sb strings.Builder
	for _, bl := range b.Blocks {
		if bl.Kind == loop.BlockText {
			sb.WriteString(bl.Text)
		}
	}
	return strings.TrimSpace(sb.String())
}

// render writes messages as text, for a model that is to read them and not to go on with them.
func render(sb *strings.Builder, msgs []*loop.Message, resultCap int) {
	for _, m := range msgs {
		for _, b := range m.Blocks {
			switch b.Kind {
			case loop.BlockText:
				who := "User"
				if m.Role == loop.Assistant {
					who = "Agent"
				}
				sb.WriteString(who + ": " + b.Text + "\n")
			case loop.BlockCall:
				sb.WriteString("Agent calls " + b.Name + " " + middle(b.Args, resultCap) + "\n")
			case loop.BlockResult:
				what := "Result of "
				if b.Error {
					what = "Error of "
				}
				sb.WriteString(what + b.Name + ": " + middle(b.Text, resultCap) + "\n")
			case loop.BlockMedia:
				sb.WriteString("(an image or file)\n")
			}
		}
	}
}

// middle leaves out the middle of a long text.
func middle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	head := strings.TrimSuffix(cut(s, n*3/4), "…")
	from := len(s) - n/4
	for from < len(s) && s[from]&0xC0 == 0x80 {
		from++
	}
	return head + " … " + s[from:]
}

package drive

import (
	"context"
	"fmt"

	"github.com/ronda-go/ronda/loop"
)

// beginCompaction shortens the transcript between complete exchanges: the task and the last exchanges stay word for word, what lies
// between becomes one note. All or nothing: a failure leaves the transcript as it was.
func (d *driver) beginCompaction(ctx context.Context, c loop.Command) {
	msgs := d.talk.Messages()
	facts := d.state.Facts
	keep := 4
	if r := d.c.agent.Compact; r != nil && r.Keep > 0 {
		keep = r.Keep
	}
	d.under(ctx, c, func(ctx context.Context, w *work) {
		d.post(answer{id: w.cmd.ID, body: window(msgs, facts, keep)})
	})
}

// window is the pure rule: it drops the oldest exchanges.
func window(msgs []*loop.Message, facts map[string]loop.Fact, keep int) loop.Compacted {
	var starts []int // of exchanges: an assistant turn with what was handed back for it
	for i, m := range msgs {
		if m.Role == loop.Assistant {
			starts = append(starts, i)
		}
	}
	if len(starts) <= keep {
		return loop.Compacted{Failed: "there is nothing left to drop"}
	}
	cutAt := starts[len(starts)-keep]
	c := loop.Compacted{}
	task := -1
	for i, m := range msgs[:cutAt] {
		c.Upto = max(c.Upto, m.Seq) // a message that waited for its place is older than the one before it
		if task < 0 && m.Role == loop.User && m.Seq > 0 {
			task = i // what this run was started with; messages of earlier runs have no number to be kept by
		}
	}
	dropped := 0
	for i := range msgs[:cutAt] {
		if i == task {
			c.Keep = append(c.Keep, msgs[i].Seq)
			continue
		}
		dropped++
	}
	note := fmt.Sprintf("[%d earlier messages of this conversation were left out to save room.", dropped)
	if len(facts) > 0 {
		note += " Established so far:"
		for _, name := range sortedKeys(facts) {
			note += fmt.Sprintf(" %s = %s;", name, facts[name].Value)
		}
	}
	c.Messages = []loop.Message{{Role: loop.User, Blocks: []loop.Block{{Kind: loop.BlockText, Text: note + "]"}}, Seq: c.Upto}}
	for _, m := range msgs[cutAt:] {
		c.Tokens += m.Bound()
	}
	c.Tokens += int64(len(note)) + 64
	if task >= 0 {
		c.Tokens += msgs[task].Bound()
	}
	return c
}

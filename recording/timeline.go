package recording

import (
	"slices"
	"strings"

	"github.com/ronda-go/ronda/loop"
)

// Item is one thing that a player shows: an event, or a piece of a streamed response.
type Item struct {
	At      loop.Micros // since the start of the first run
	Run     int
	Seq     int64 // event; for a piece, of the event that began the attempt
	Offset  int64 // piece: from 1 within its attempt; 0 for an event
	Event   loop.Event
	Block   int
	Channel string
	Text    string // piece
	Wait    string // what the time before it was spent on
}

// Timeline lists what happened in a recording in the order in which it happened, the pieces of streams among the events.
func Timeline(rec *Recording) []Item {
	var out []Item
	start := rec.Header.Started
	for n := range rec.Runs {
		run := &rec.Runs[n]
		var w waiting
		attempt, began := int64(0), loop.Micros(0)
		for _, ev := range run.Events {
			at := ev.Time - start
			cause := w.apply(ev.Body)
			switch b := ev.Body.(type) {
			case loop.ModelCallStarted:
				attempt, began = ev.Seq, at
			case loop.ModelReplied:
				out = append(out, piecesOf(run, b, n, attempt, began, at)...)
			}
			out = append(out, Item{At: at, Run: n, Seq: ev.Seq, Event: ev, Wait: cause})
		}
	}
	slices.SortStableFunc(out, func(a, b Item) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return out
}

func piecesOf(run *Run, b loop.ModelReplied, n int, attempt int64, began, replied loop.Micros) []Item {
	tape, err := DecodeTape(run.Tapes[b.Tape])
	if err != nil {
		return nil
	}
	cut, ok := cutMessage(tape, b.Blocks, nil)
	if !ok {
		return nil
	}
	out := make([]Item, len(cut))
	for i, p := range cut {
		out[i] = Item{At: min(began+p.At, replied), Run: n, Seq: attempt, Offset: int64(i + 1), Block: p.Block, Channel: p.Channel, Text: p.text, Wait: WaitModel}
	}
	return out
}

// Block is one thing on the player's screen.
type Block struct {
	Kind   string      `json:"kind"` // user, thought, text, call, result, note, wait, stop
	Run    int         `json:"run,omitempty"`
	Seq    int64       `json:"seq"`
	Text   string      `json:"text,omitempty"`
	Tool   string      `json:"tool,omitempty"`
	Args   string      `json:"args,omitempty"`
	Failed bool        `json:"failed,omitempty"`
	Folded bool        `json:"folded,omitempty"` // thought: only its first line is shown
	Open   bool        `json:"open,omitempty"`   // it is being streamed
	Cause  string      `json:"cause,omitempty"`  // wait
	Cut    loop.Micros `json:"cut,omitempty"`    // wait: the time that is not played
	block  int
}

// screen is the list of blocks after some items.
type screen struct {
	blocks []Block
	tools  map[string]string // by run and call
	open   int               // blocks that are being streamed, the first of them at from
	from   int
}

func (s *screen) apply(it Item, cut loop.Micros) {
	if cut > 0 {
		s.blocks = append(s.blocks, Block{Kind: "wait", Run: it.Run, Seq: it.Seq, Cause: it.Wait, Cut: cut})
	}
	if it.Offset > 0 {
		s.piece(it)
		return
	}
	s.event(it)
}

func (s *screen) piece(it Item) {
	for i := len(s.blocks) - 1; i >= 0 && i >= len(s.blocks)-16; i-- {
		if b := &s.blocks[i]; b.Open && b.Run == it.Run && b.block == it.Block {
			if b.Kind == "call" {
				b.Args += it.Text
			} else {
				b.Text += it.Text
			}
			return
		}
	}
	b := Block{Kind: it.Channel, Run: it.Run, Seq: it.Seq, Text: it.Text, Open: true, block: it.Block}
	switch it.Channel {
	case Arguments:
		b.Kind, b.Text, b.Args = "call", "", it.Text
	case Thought:
		b.Folded = true
	}
	if s.open == 0 {
		s.from = len(s.blocks)
	}
	s.open++
	s.blocks = append(s.blocks, b)
}

func (s *screen) event(it Item) {
	add := func(b Block) {
		b.Run, b.Seq = it.Run, it.Seq
		s.blocks = append(s.blocks, b)
	}
	note := func(text string) { add(Block{Kind: "note", Text: text}) }
	switch b := it.Event.Body.(type) {
	case loop.RunStarted:
		add(Block{Kind: "user", Text: textOf(b.Input)})
	case loop.MessageTaken:
		add(Block{Kind: "user", Text: textOf(b.Blocks)})
	case loop.ModelReplied:
		s.replied(it, b)
	case loop.ModelFailed:
		s.drop(it.Run)
		note("model failed (" + string(b.Class) + "): " + b.Message)
	case loop.ToolReturned:
		add(Block{Kind: "result", Tool: s.tool(it.Run, b.Call), Text: b.Text})
	case loop.ToolFailed:
		add(Block{Kind: "result", Tool: s.tool(it.Run, b.Call), Text: loop.FailureText(b), Failed: true})
	case loop.CallRefused:
		add(Block{Kind: "result", Tool: s.tool(it.Run, b.Call), Text: b.Message, Failed: true})
	case loop.ChildStopped:
		add(Block{Kind: "result", Tool: s.tool(it.Run, b.Call), Text: b.Text, Failed: b.Error})
	case loop.ApprovalAsked:
		note(s.tool(it.Run, b.Call) + " waits for an approval")
	case loop.ApprovalDecided:
		note(s.tool(it.Run, b.Call) + ": " + b.Decision + " by " + b.By)
	case loop.EffectResolved:
		note(s.tool(it.Run, b.Call) + ": " + loop.ResolvedText(b))
	case loop.LimitReached:
		note("limit reached: " + b.Limit)
	case loop.LimitsExtended:
		note("limits extended by " + b.By)
	case loop.Nudged:
		note("told the model: " + b.Text)
	case loop.CancelRequested:
		note("cancelled by " + b.By)
	case loop.Compacted:
		note("the transcript was shortened")
	case loop.ChildStarted:
		note(b.Agent + " runs as " + b.Run)
	case loop.ContractChecked:
		if !b.OK {
			note("not done: missing " + strings.Join(b.Missing, "; "))
		}
	case loop.RunStopped:
		text := string(b.Stop)
		if b.Limit != "" {
			text += " (" + b.Limit + ")"
		}
		if b.Message != "" {
			text += ": " + b.Message
		}
		add(Block{Kind: "stop", Text: text})
	}
}

// replied puts the whole response in the place of its pieces.
func (s *screen) replied(it Item, b loop.ModelReplied) {
	s.drop(it.Run)
	n := 0
	for i, bl := range b.Blocks {
		out := Block{Run: it.Run, Seq: it.Seq, block: i}
		switch bl.Kind {
		case loop.BlockThought:
			out.Kind, out.Text, out.Folded = "thought", bl.Text, true
		case loop.BlockText:
			out.Kind, out.Text = "text", bl.Text
		case loop.BlockCall:
			out.Kind, out.Tool, out.Args = "call", bl.Name, bl.Args
			s.name(it.Run, loop.CallID(b.Call, n), bl.Name)
			n++
		default:
			continue
		}
		if out.Text != "" || out.Kind == "call" {
			s.blocks = append(s.blocks, out)
		}
	}
}

// drop takes the pieces of a run's response away.
func (s *screen) drop(run int) {
	if s.open == 0 {
		return
	}
	kept := slices.DeleteFunc(s.blocks[s.from:], func(b Block) bool {
		gone := b.Open && b.Run == run
		if gone {
			s.open--
		}
		return gone
	})
	s.blocks = s.blocks[:s.from+len(kept)]
}

func callKey(run int, call string) string { return string(rune('0'+run)) + "/" + call }

func (s *screen) name(run int, call, tool string) {
	if s.tools == nil {
		s.tools = map[string]string{}
	}
	s.tools[callKey(run, call)] = tool
}

func (s *screen) tool(run int, call string) string {
	if t := s.tools[callKey(run, call)]; t != "" {
		return t
	}
	return call
}

func textOf(blocks []loop.Block) string {
	var parts []string
	for _, b := range blocks {
		switch {
		case b.Text != "":
			parts = append(parts, b.Text)
		case b.Media != nil:
			parts = append(parts, "("+b.Media.MIME+" "+b.Media.Name+")")
		}
	}
	return strings.Join(parts, "\n")
}

package recording_test

import (
	"fmt"
	"testing"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

// big makes a recording with about so many events: rounds of two calls, streamed, without driving anything.
func big(t testing.TB, events int) *recording.Recording {
	t.Helper()
	cfg := &loop.Config{Agent: "big", Model: "scripted/x", Nudges: 1, Repairs: 3, Stall: loop.Stall{Repeats: 3}, Parallel: "read",
		Tools: []loop.ToolSpec{{Name: "search", Effect: loop.Read}, {Name: "read", Effect: loop.Read}}, Price: &loop.Price{Input: 3_000_000, Output: 15_000_000}}
	run := recording.Run{RunInfo: recording.RunInfo{Run: "run_big", Agent: "big"}, Tapes: map[string][]byte{}}
	now := loop.Micros(start.UnixMicro())
	var st loop.State
	add := func(after loop.Micros, b loop.Body) {
		now += after
		ev := loop.Event{Seq: int64(len(run.Events) + 1), Time: now, Body: b}
		next, err := loop.Next(st, ev)
		if err != nil {
			t.Fatal(err)
		}
		st = next
		run.Events = append(run.Events, ev)
	}
	add(0, loop.RunStarted{Run: "run_big", Config: cfg, Input: []loop.Block{{Kind: loop.BlockText, Text: "Look everything up."}}})
	n := int64(0)
	seed := uint32(1)
	rnd := func(m int) int {
		seed = seed*1664525 + 1013904223
		return int(seed>>8) % m
	}
	words := []string{"the", "records", " show", " that", " in", " March", " a", " visit", " was", " made", " to", " page", " of", " history", ", then", " again"}
	for len(run.Events) < events-10 {
		n++
		add(2000, loop.ModelCallStarted{Call: n, Reserve: loop.Reserve{Input: n * 100, Output: 100}})
		text := ""
		var pieces []recording.TapePiece
		at := loop.Micros(400_000)
		for range 40 {
			w := words[rnd(len(words))]
			text += w
			at += loop.Micros(8000 + rnd(15000))
			pieces = append(pieces, recording.TapePiece{At: at, Channel: recording.Thought, Block: 0, Bytes: len(w)})
		}
		id := fmt.Sprintf("model/%d/1", n)
		run.Tapes[id] = recording.EncodeTape(pieces)
		add(at+3000, loop.ModelReplied{Call: n, Finish: loop.FinishCalls, Tape: id, Usage: &loop.Usage{Input: 900 + n, Output: 60}, Blocks: []loop.Block{
			{Kind: loop.BlockThought, Text: text},
			{Kind: loop.BlockCall, ID: fmt.Sprintf("toolu_%08d", n), Name: "search", Args: fmt.Sprintf(`{"q":"item %d"}`, rnd(5000))},
			{Kind: loop.BlockCall, ID: fmt.Sprintf("toolv_%08d", n), Name: "read", Args: fmt.Sprintf(`{"q":"page %d"}`, rnd(5000))}}})
		a, b := loop.CallID(n, 0), loop.CallID(n, 1)
		for i, id := range []string{a, b} {
			args := run.Events[len(run.Events)-1-i].Body.(loop.ModelReplied).Blocks[1+i].Args
			add(50, loop.CallAuthorized{Call: id, Verdict: loop.Allow, Args: loop.Fingerprint([]byte(args)), Rule: "tool"})
		}
		add(50, loop.ToolStarted{Call: a})
		add(0, loop.ToolStarted{Call: b})
		add(loop.Micros(20000+rnd(200000)), loop.ToolReturned{Call: a, Text: fmt.Sprintf("%d hits: visit %d, page %d", rnd(50), rnd(9000), rnd(9000))})
		add(loop.Micros(rnd(90000)), loop.ToolReturned{Call: b, Text: fmt.Sprintf("page %d says that item %d was moved", rnd(9000), rnd(9000))})
	}
	add(100, loop.ModelCallStarted{Call: n + 1, Reserve: loop.Reserve{Input: 1, Output: 1}})
	add(100, loop.ModelReplied{Call: n + 1, Finish: loop.FinishStop, Blocks: []loop.Block{{Kind: loop.BlockText, Text: "That is all."}}})
	add(0, *st.End)
	return &recording.Recording{Header: recording.Header{Run: "run_big", Agent: "big", Models: []string{"scripted/x"}, Started: run.Events[0].Time,
		Capture: recording.Full, Source: recording.Source{Name: "ronda"}, Pace: recording.PaceReal}, Runs: []recording.Run{run}, Artifacts: map[string]recording.Artifact{}}
}

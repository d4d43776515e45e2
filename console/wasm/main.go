//go:build wasip1

// Command wasm is the loop itself for the console's page of time travel: it folds the events of a run and says, for any of them, what the
// state was and what the run owed; and what other limits would have done. A page calls its exports; nothing of it touches the world.
//
//	alloc(n)   room for n bytes of an argument; returns where
//	load(n)    the argument is events, one a line; returns how many fold
//	at(i)      the state after i events, as JSON; returns its length
//	what_if(n) the argument is a recording.Change; returns the length of the outcome
//	result()   where the last result is
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unsafe"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

func main() {}

var (
	argument []byte
	answer   []byte
	events   []loop.Event
	states   []loop.State // after each event; they share what did not change
	refused  string       // why the events after the last state do not fold
)

//go:wasmexport alloc
func alloc(n int32) unsafe.Pointer {
	argument = make([]byte, max(n, 1))
	return unsafe.Pointer(&argument[0])
}

//go:wasmexport result
func result() unsafe.Pointer {
	if len(answer) == 0 {
		return nil
	}
	return unsafe.Pointer(&answer[0])
}

//go:wasmexport load
func load(n int32) int32 {
	events, states, refused = nil, nil, ""
	var st loop.State
	for line := range bytes.Lines(bytes.Clone(argument[:n])) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		ev, err := loop.Decode(line)
		if err != nil {
			refused = err.Error()
			break
		}
		events = append(events, ev)
		if refused != "" {
			continue
		}
		next, err := loop.Next(st, ev)
		if err != nil {
			refused = fmt.Sprintf("event %d, %s: %v", ev.Seq, ev.Kind(), err)
			continue
		}
		st = next
		states = append(states, st)
	}
	return int32(len(states))
}

// owed is a command as the page shows it.
type owed struct {
	ID      string
	Kind    loop.CommandKind
	Call    string      `json:",omitempty"`
	Attempt int64       `json:",omitempty"`
	Closing bool        `json:",omitempty"`
	Started bool        `json:",omitempty"`
	After   loop.Micros `json:",omitempty"`
	Cause   string      `json:",omitempty"`
	Record  string      `json:",omitempty"`
	Body    loop.Body   `json:",omitempty"`
}

//go:wasmexport at
func at(i int32) int32 {
	if i < 1 || int(i) > len(states) {
		return say(map[string]any{"error": refused})
	}
	st := states[i-1]
	status, waiting := st.Status()
	list := []owed{}
	for _, c := range loop.Ready(st, st.Time) {
		o := owed{ID: c.ID, Kind: c.Kind, Call: c.Call, Attempt: c.Attempt, Closing: c.Closing, Started: c.Started, After: c.After, Cause: c.Cause, Body: c.Body}
		if c.Body != nil {
			o.Record = c.Body.Kind()
		}
		list = append(list, o)
	}
	return say(map[string]any{"state": st, "status": status, "waiting": waiting, "owed": list, "kind": events[i-1].Kind(), "error": refused})
}

//go:wasmexport what_if
func whatIf(n int32) int32 {
	var ch recording.Change
	if err := json.Unmarshal(argument[:n], &ch); err != nil {
		return say(map[string]any{"error": err.Error()})
	}
	out, err := recording.WhatIf(events, ch)
	if err != nil {
		return say(map[string]any{"error": err.Error()})
	}
	return say(map[string]any{"outcome": out})
}

func say(v any) int32 {
	var err error
	if answer, err = json.Marshal(v); err != nil {
		answer, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	return int32(len(answer))
}

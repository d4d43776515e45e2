package loop

import (
	"fmt"
	"strings"
	"time"
)

// What a script prints.

func duration(text string) Micros {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return Micros(d.Microseconds())
}

func clock(m Micros) string { return (time.Duration(m) * time.Microsecond).String() }

func (s *script) printTalk() {
	for _, m := range s.talk.Messages() {
		var parts []string
		for _, b := range m.Blocks {
			switch b.Kind {
			case BlockCall:
				parts = append(parts, b.Name+b.Args+" "+b.Call)
			case BlockResult:
				mark := ""
				if b.Error {
					mark = " error"
				}
				parts = append(parts, fmt.Sprintf("%s%s: %s", b.Call, mark, b.Text))
			default:
				parts = append(parts, b.Text)
			}
		}
		s.printf("  %s: %s", m.Role, strings.Join(parts, " | "))
	}
}

// show prints the state and what is owed.
func (s *script) show() {
	st := s.state
	_, desc, _ := strings.Cut(st.String(), " phase ")
	status, waiting := st.Status()
	s.printf("= %s; %s%s", desc, status, strings.Join(append([]string{""}, waiting...), " "))
	c := st.Ledger.Own
	line := fmt.Sprintf("  rounds %d, model %d/%d, tools %d/%d, tokens %d", c.Rounds, c.ModelCalls, c.ModelAttempts, c.ToolCalls, c.ToolAttempts, c.Usage.Total())
	add := func(format string, v int64) {
		if v != 0 {
			line += fmt.Sprintf(format, v)
		}
	}
	add(" (%d estimated)", c.Estimated)
	add(", cost %d", int64(st.Ledger.Cost))
	add(", held %d", st.Ledger.Held.Input+st.Ledger.Held.Output)
	add(", below %d", st.Ledger.Below.Usage.Total())
	add(", nudges %d", st.Nudges)
	add(", repairs %d", st.Repairs)
	add(", queued %d", st.Queued)
	line += ", active " + clock(st.Ledger.Active)
	s.printf("%s", line)
	if len(st.Facts) > 0 {
		s.printf("  facts %s", mustJSON(st.Facts))
	}
	if st.Stop != nil {
		s.printf("  stop %s", mustJSON(st.Stop))
	}
	for _, cmd := range Ready(st, s.now) {
		s.printf("  owes %s", s.describe(cmd))
	}
}

func (s *script) describe(c Command) string {
	switch {
	case c.Kind == Record:
		return fmt.Sprintf("%s %s", c.Body.Kind(), mustJSON(c.Body))
	case c.Kind == Wake:
		return "wake at +" + clock(c.After-s.now)
	}
	text := c.ID
	if c.Closing {
		text += " closing"
	}
	if c.Started {
		text += " started"
	}
	if c.After > s.now {
		text += " after +" + clock(c.After-s.now)
	}
	if c.Cause != "" {
		text += " " + c.Cause
	}
	return text
}

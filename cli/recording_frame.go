package cli

import (
	"fmt"
	"strings"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

const playerHelp = `space  play, pause          ← →   event before, after     [ ]   round before, after
, .    slower, faster       0–9   to a tenth              /     search; n N next, before
e      unfold all thoughts  ?     this help               q     quit`

// frame is the whole screen of the player, for a terminal of w columns and h rows: the last blocks, the time line, the state.
func frame(v recording.View, marks []recording.Mark, rec *recording.Recording, w, h int) string {
	var lines []string
	rows := h - 2
	for i := len(v.Blocks) - 1; i >= 0 && len(lines) < rows; i-- {
		lines = append(blockLines(v.Blocks[i], w, rec), lines...)
	}
	if v.Help {
		lines = append(lines, strings.Split(playerHelp, "\n")...)
	}
	lines = lines[max(len(lines)-rows, 0):]
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i := range rows {
		if i < len(lines) {
			b.WriteString(lines[i])
		}
		b.WriteString("\x1b[K\r\n")
	}
	b.WriteString(timeLine(v, marks, w) + "\x1b[K\r\n" + short(stateLine(v), w-1) + "\x1b[K")
	return b.String()
}

// timeLine draws what is played with its marks: | rounds, · tools, ? approvals, ■ the stop, ░ waits that were cut.
func timeLine(v recording.View, marks []recording.Mark, w int) string {
	n := max(w-1, 1)
	line := []rune(strings.Repeat("─", n))
	place := func(at loop.Micros) int {
		if v.Total == 0 {
			return 0
		}
		return min(int(int64(at)*int64(n-1)/int64(v.Total)), n-1)
	}
	for _, m := range marks {
		r := map[string]rune{"round": '|', "tool": '·', "approval": '?', "stop": '■'}[m.Kind]
		if m.Kind == "wait" {
			for i := place(m.At - recording.DefaultMaxWait); i < place(m.At); i++ {
				line[max(i, 0)] = '░'
			}
			continue
		}
		if i := place(m.At); line[i] == '─' || line[i] == '░' || m.Kind != "tool" {
			line[i] = r
		}
	}
	i := place(v.Pos)
	return string(line[:i]) + "\x1b[7m" + string(line[i]) + "\x1b[0m" + string(line[i+1:])
}

func stateLine(v recording.View) string {
	state := "❚❚"
	if v.Playing {
		state = "▶"
	}
	s := fmt.Sprintf("%s %s/%s ×%g · event %d · model call %d · %d/%d", state, recording.Length(v.Pos), recording.Length(v.Total), v.Speed, v.Event, v.Round, v.Shown, v.Items)
	switch {
	case v.Typing:
		s = "/" + v.Query + "▏"
	case v.Wait != nil:
		s += fmt.Sprintf(" · waiting for %s, %s of it cut", causeText(v.Wait.Cause), recording.Length(v.Wait.Cut))
	case v.Missed:
		s += " · not found: " + v.Query
	case v.Query != "":
		s += " · /" + v.Query
	}
	return s + " · ? help"
}

func causeText(cause string) string {
	switch cause {
	case recording.WaitHuman:
		return "a person"
	case recording.WaitModel:
		return "the model"
	case recording.WaitTool:
		return "a tool"
	case recording.WaitRateLimit:
		return "a rate limit"
	case recording.WaitBackOff:
		return "back-off"
	}
	return "a driver"
}

// blockLines are the lines of a block in w columns; 0 does not wrap. Control characters of texts are shown, not sent.
func blockLines(b recording.Block, w int, rec *recording.Recording) []string {
	lead, text := "", b.Text
	switch b.Kind {
	case "user":
		lead = "user  "
	case "thought":
		lead = "think "
		if b.Folded {
			first, _, more := strings.Cut(strings.TrimSpace(text), "\n")
			if text = short(first, max(w-12, 60)); more {
				text += " …"
			}
		}
	case "text":
		lead = "says  "
	case "call":
		lead, text = "call  ", b.Tool+" "+b.Args
	case "result":
		lead, text = "  →   ", b.Tool+": "+short(b.Text, 2000)
		if b.Failed {
			lead = "  ✗   "
		}
	case "wait":
		lead, text = "░░░   ", recording.Length(b.Cut)+" of waiting for "+causeText(b.Cause)+" not shown"
	case "stop":
		lead, text = "■     ", b.Text
	default:
		lead = "      "
	}
	if b.Run > 0 && b.Run < len(rec.Runs) {
		lead = "  [" + rec.Runs[b.Run].Agent + "] " + lead
	}
	return wrap(lead, visible(text), w)
}

// visible replaces control characters, which a terminal would obey.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0:
			return '·'
		}
		return r
	}, s)
}

func wrap(lead, text string, w int) []string {
	indent := strings.Repeat(" ", len([]rune(lead)))
	room := w - len(indent) - 1
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		r := []rune(line)
		for w > 0 && room > 8 && len(r) > room {
			cut := room
			for i := room; i > room*2/3; i-- {
				if r[i] == ' ' {
					cut = i
					break
				}
			}
			out = append(out, lead+string(r[:cut]))
			lead, r = indent, []rune(strings.TrimPrefix(string(r[cut:]), " "))
		}
		out = append(out, lead+string(r))
		lead = indent
	}
	return out
}

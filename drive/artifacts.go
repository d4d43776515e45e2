package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// ReadArtifact is the name of the built-in tool that reads a part of a result that was cut.
const ReadArtifact = "read_artifact"

const readArtifactText = "Reads a part of a result that was too long and is shown as a preview with a reference (sha256:…). " +
	"Give offset and bytes for a range, from_line and lines for lines, or search for the lines that contain a text."

var readArtifactInput = json.RawMessage(`{"type":"object","properties":{` +
	`"ref":{"type":"string","description":"The reference as the preview shows it."},` +
	`"offset":{"type":"integer","minimum":0,"description":"First byte, from 0."},` +
	`"bytes":{"type":"integer","minimum":1,"description":"How many bytes."},` +
	`"from_line":{"type":"integer","minimum":1,"description":"First line, from 1."},` +
	`"lines":{"type":"integer","minimum":1,"description":"How many lines."},` +
	`"search":{"type":"string","minLength":1,"description":"A text; upper and lower case are the same."}},` +
	`"required":["ref"],"additionalProperties":false}`)

// artifactReader stands in the list of tools; the driver does its work.
type artifactReader struct{}

func (artifactReader) Def() tool.Def {
	return tool.Def{Name: ReadArtifact, Description: readArtifactText, Input: readArtifactInput, Effect: loop.Read}
}

func (artifactReader) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, tool.Fatal(errors.New("read_artifact only runs inside a run"))
}

// readsArtifacts says whether the agent declares read_artifact. Tools must not change in the middle of a run, so it is declared from the
// start wherever a result may be cut: by an agent with any tool or child.
func (a *Agent) readsArtifacts() bool {
	if a.ReadArtifacts != nil {
		return *a.ReadArtifacts
	}
	return len(a.Tools)+len(a.Children) > 0
}

type readArgs struct {
	Ref      string `json:"ref"`
	Offset   int    `json:"offset"`
	Bytes    int    `json:"bytes"`
	FromLine int    `json:"from_line"`
	Lines    int    `json:"lines"`
	Search   string `json:"search"`
}

// readArtifact reads a part of an artifact that this run, or an earlier run of its session, made.
func (d *driver) readArtifact(ctx context.Context, limit int, refs map[string]bool, args []byte) (tool.Result, error) {
	var a readArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return tool.Result{}, &tool.Error{Class: loop.ClassInvalid, Message: err.Error()}
	}
	ways := 0
	for _, set := range []bool{a.Offset > 0 || a.Bytes > 0, a.FromLine > 0 || a.Lines > 0, a.Search != ""} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		return tool.Result{}, &tool.Error{Class: loop.ClassInvalid, Message: "offset and bytes, from_line and lines, and search exclude each other. Use one way for each call."}
	}
	a.Ref = strings.TrimSpace(a.Ref)
	if !refs[a.Ref] {
		known, err := d.h.sessionRef(ctx, d.session(), a.Ref)
		if err != nil {
			return tool.Result{}, &tool.Error{Class: loop.ClassTransient, NotRun: true, Err: err}
		}
		if !known {
			return tool.Result{}, &tool.Error{Class: loop.ClassInvalid, Message: fmt.Sprintf("no result of this run has the reference %q. Use a reference as a preview shows it.", cut(a.Ref, 100))}
		}
	}
	art, err := d.h.store.Artifact(ctx, a.Ref)
	if err != nil {
		return tool.Result{}, &tool.Error{Class: loop.ClassError, Message: "the artifact cannot be read: " + err.Error()}
	}
	if !utf8.Valid(art.Data) {
		return tool.Result{Text: fmt.Sprintf("[%s is %s of %d bytes, no text]", a.Ref, art.MIME, len(art.Data))}, nil
	}
	text := string(art.Data)
	switch {
	case a.Search != "":
		return tool.Result{Text: searchLines(text, a.Search, limit)}, nil
	case a.FromLine > 0 || a.Lines > 0:
		return tool.Result{Text: someLines(text, max(a.FromLine, 1), a.Lines, limit)}, nil
	}
	return tool.Result{Text: someBytes(text, a.Offset, a.Bytes, limit)}, nil
}

// headRoom is kept of a cap for the line that says what part is shown.
const headRoom = 120

func someBytes(text string, from, n, limit int) string {
	from = min(from, len(text))
	for from < len(text) && from > 0 && !utf8.RuneStart(text[from]) {
		from++
	}
	room := max(limit-headRoom, 1)
	if n > 0 {
		room = min(room, n)
	}
	to := min(from+room, len(text))
	for to < len(text) && to > from && !utf8.RuneStart(text[to]) {
		to--
	}
	if to == from && from < len(text) { // not even one character fits: show it all the same
		_, size := utf8.DecodeRuneInString(text[from:])
		to = from + size
	}
	head := fmt.Sprintf("[bytes %d to %d of %d", from, to, len(text))
	if to < len(text) {
		head += fmt.Sprintf("; go on with offset %d", to)
	}
	return head + "]\n" + text[from:to]
}

func someLines(text string, from, n, limit int) string {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if from > len(all) {
		return fmt.Sprintf("[there are %d lines]", len(all))
	}
	room := max(limit-headRoom, 1)
	var sb strings.Builder
	to := from - 1
	for to < len(all) && (n <= 0 || to-from+1 < n) {
		line := all[to] + "\n"
		if sb.Len()+len(line) > room {
			if sb.Len() > 0 {
				break
			}
			sb.WriteString(cut(line, max(room-4, 1)) + "\n") // one line that is longer than the cap
			to++
			break
		}
		sb.WriteString(line)
		to++
	}
	head := fmt.Sprintf("[lines %d to %d of %d", from, to, len(all))
	if to < len(all) {
		head += fmt.Sprintf("; go on with from_line %d", to+1)
	}
	return head + "]\n" + sb.String()
}

func searchLines(text, what string, limit int) string {
	room := max(limit-headRoom, 1)
	want := strings.ToLower(what)
	var sb strings.Builder
	hits, shown := 0, 0
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		at := strings.Index(strings.ToLower(line), want)
		if at < 0 {
			continue
		}
		hits++
		entry := fmt.Sprintf("%d: %s\n", n, around(line, at, 400))
		if shown < hits-1 || sb.Len()+len(entry) > room {
			continue
		}
		shown++
		sb.WriteString(entry)
	}
	head := fmt.Sprintf("[%d lines contain it", hits)
	if shown < hits {
		head += fmt.Sprintf("; the first %d are shown", shown)
	}
	return head + "]\n" + sb.String()
}

// around shows a long line near a place in it.
func around(line string, at, n int) string {
	if len(line) <= n {
		return line
	}
	from := min(max(at-n/4, 0), len(line))
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	head := ""
	if from > 0 {
		head = "…"
	}
	return head + cut(line[from:], n)
}

// refs lists the artifacts that an event names.
func refsOf(ev loop.Event, add func(ref string)) {
	blocks := func(list []loop.Block) {
		for _, b := range list {
			if b.Media != nil && b.Media.Ref != "" {
				add(b.Media.Ref)
			}
		}
	}
	switch b := ev.Body.(type) {
	case loop.ToolReturned:
		if b.Ref != "" {
			add(b.Ref)
		}
		blocks(b.More)
	case loop.EffectChecked:
		if b.Ref != "" {
			add(b.Ref)
		}
	case loop.ChildStopped:
		if b.Ref != "" {
			add(b.Ref)
		}
	}
}

// session is the run before this one in its session; nil without one.
func (d *driver) session() *loop.RunRef {
	if s := d.state.Config.Session; s != nil {
		return s.Prev
	}
	return nil
}

// sessionRef looks for a reference in the earlier runs of a session, which share a transcript with this one.
func (h *Host) sessionRef(ctx context.Context, prev *loop.RunRef, ref string) (found bool, err error) {
	for prev != nil && !found {
		var before *loop.RunRef
		err := h.read(ctx, prev.Run, func(ev loop.Event) error {
			if b, ok := ev.Body.(loop.RunStarted); ok && b.Config.Session != nil {
				before = b.Config.Session.Prev
			}
			refsOf(ev, func(r string) { found = found || r == ref })
			return nil
		})
		if err != nil {
			return false, err
		}
		prev = before
	}
	return found, nil
}

// cutText caps a text that enters the transcript; what is over it becomes an artifact.
func cutText(text string, limit int, follow bool) (shown, ref string, artifacts []journal.Artifact) {
	if len(text) <= limit {
		return text, "", nil
	}
	art := Artifact("text/plain; charset=utf-8", []byte(text))
	return preview(text, limit, art.Ref, follow), art.Ref, []journal.Artifact{art}
}

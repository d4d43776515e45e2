package foreign

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

// maxSample bounds one sample of a log.
const maxSample = 256 << 20

// zipZstd is the method number of Zstandard in zips, which newer logs use.
const zipZstd = 93

type evalHeader struct {
	Version int `json:"version"`
	Eval    struct {
		RunID    string          `json:"run_id"`
		TaskID   string          `json:"task_id"`
		Task     string          `json:"task"`
		Model    string          `json:"model"`
		Packages json.RawMessage `json:"packages"`
	} `json:"eval"`
}

type evalSample struct {
	ID          json.RawMessage   `json:"id"`
	Epoch       int               `json:"epoch"`
	UUID        string            `json:"uuid"`
	Messages    []evalMessage     `json:"messages"`
	Events      []evalEvent       `json:"events"`
	Attachments map[string]string `json:"attachments"`
	Error       *struct {
		Message string `json:"message"`
	} `json:"error"`
}

type evalMessage struct {
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID        string          `json:"id"`
		Function  string          `json:"function"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"tool_calls"`
	CallID string `json:"tool_call_id"`
	Error  *struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Model string `json:"model"`
}

type evalEvent struct {
	Event     string          `json:"event"`
	Timestamp string          `json:"timestamp"`
	Completed string          `json:"completed"`
	ID        json.RawMessage `json:"id"`
	Output    *struct {
		Choices []struct {
			Message    evalMessage `json:"message"`
			StopReason string      `json:"stop_reason"`
		} `json:"choices"`
		Usage *struct {
			Input      int64 `json:"input_tokens"`
			Output     int64 `json:"output_tokens"`
			CacheWrite int64 `json:"input_tokens_cache_write"`
			CacheRead  int64 `json:"input_tokens_cache_read"`
			Reasoning  int64 `json:"reasoning_tokens"`
		} `json:"usage"`
	} `json:"output"`
}

// readEval reads a log of inspect: a zip with a header and one JSON file for each sample.
func readEval(data []byte) (list []*recording.Recording, err error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("foreign: %w: a zip that cannot be read: %w", ErrUnknown, err)
	}
	z.RegisterDecompressor(zipZstd, func(r io.Reader) io.ReadCloser {
		d, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(maxSample))
		if err != nil {
			return io.NopCloser(strings.NewReader(""))
		}
		return d.IOReadCloser()
	})
	var head evalHeader
	known := false
	for _, f := range z.File {
		if f.Name == "header.json" || f.Name == "_journal/start.json" {
			raw, err := readEntry(f)
			if err != nil {
				return nil, err
			}
			known = json.Unmarshal(raw, &head) == nil || known
		}
	}
	if !known {
		return nil, fmt.Errorf("foreign: %w: a zip without the header of an inspect log", ErrUnknown)
	}
	for _, f := range z.File {
		if !strings.HasPrefix(f.Name, "samples/") || !strings.HasSuffix(f.Name, ".json") {
			continue
		}
		raw, err := readEntry(f)
		if err != nil {
			return nil, err
		}
		var s evalSample
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("foreign: inspect: %s: %w", f.Name, err)
		}
		rec, err := s.source(&head).build()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		list = append(list, rec)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("foreign: inspect: the log has no samples")
	}
	slices.SortStableFunc(list, func(a, b *recording.Recording) int { return strings.Compare(a.Header.Run, b.Header.Run) })
	return list, nil
}

func readEntry(f *zip.File) ([]byte, error) {
	rc, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("foreign: inspect: %s: %w", f.Name, err)
	}
	defer rc.Close()
	raw, err := io.ReadAll(io.LimitReader(rc, maxSample+1))
	if err == nil && len(raw) > maxSample {
		err = fmt.Errorf("more than %d bytes", maxSample)
	}
	if err != nil {
		return nil, fmt.Errorf("foreign: inspect: %s: %w", f.Name, err)
	}
	return raw, nil
}

var unsafeID = sync.OnceValue(func() *strings.Replacer { return strings.NewReplacer("/", "_", " ", "_", "\"", "", "\\", "_") })

func (s *evalSample) source(head *evalHeader) *source {
	wire, model, ok := strings.Cut(head.Eval.Model, "/")
	if !ok {
		wire, model = "inspect", head.Eval.Model
	}
	id := fmt.Sprintf("%s_%d", unsafeID().Replace(string(s.ID)), s.Epoch)
	src := &source{name: Inspect, wire: wire, model: model, agent: head.Eval.Task, run: "run_" + head.Eval.RunID + "_" + id, session: head.Eval.RunID, pace: recording.PaceBlock}
	models, tools := map[string]*evalEvent{}, map[string]*evalEvent{}
	for i := range s.Events {
		ev := &s.Events[i]
		switch {
		case ev.Event == "model" && ev.Output != nil && len(ev.Output.Choices) > 0:
			models[ev.Output.Choices[0].Message.ID] = ev
		case ev.Event == "tool":
			var id string
			if json.Unmarshal(ev.ID, &id) == nil {
				tools[id] = ev
			}
		}
	}
	systems := 0
	for _, m := range s.Messages {
		switch m.Role {
		case "system":
			systems++
		case "user":
			src.says = append(src.says, say{user: s.text(m.Content)})
		case "assistant":
			src.says = append(src.says, s.reply(m, models[m.ID]))
		case "tool":
			x := say{result: &result{call: m.CallID, text: s.text(m.Content)}}
			if ev := tools[m.CallID]; ev != nil {
				x.at = moment(ev.Completed)
			}
			if m.Error != nil {
				x.result.fail, x.result.text = true, m.Error.Message
			}
			src.says = append(src.says, x)
		}
	}
	if systems > 0 {
		src.notes = append(src.notes, fmt.Sprintf("%d system messages are not part of the transcript", systems))
	}
	if s.Error != nil {
		src.stopped = s.Error.Message
	}
	return src
}

func (s *evalSample) reply(m evalMessage, ev *evalEvent) say {
	r := &reply{model: m.Model}
	r.blocks = s.blocks(m.Content)
	for _, c := range m.ToolCalls {
		r.blocks = append(r.blocks, loop.Block{Kind: loop.BlockCall, ID: c.ID, Name: c.Function, Args: argsOf(c.Arguments)})
		r.ids = append(r.ids, c.ID)
	}
	x := say{reply: r}
	if ev == nil {
		return x
	}
	x.began, x.at = moment(ev.Timestamp), moment(ev.Completed)
	if x.at == 0 {
		x.at = x.began
	}
	if u := ev.Output.Usage; u != nil {
		r.usage = &loop.Usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output, Reasoning: min(u.Reasoning, u.Output)}
	}
	if ev.Output.Choices[0].StopReason == "max_tokens" {
		r.finish = loop.FinishLength
	}
	return x
}

// blocks reads the content of a message of the model.
func (s *evalSample) blocks(raw json.RawMessage) []loop.Block {
	var parts []struct{ Type, Text, Reasoning string }
	if json.Unmarshal(raw, &parts) != nil {
		if t := s.text(raw); t != "" {
			return text(t)
		}
		return nil
	}
	var out []loop.Block
	for _, p := range parts {
		switch p.Type {
		case "text":
			out = append(out, loop.Block{Kind: loop.BlockText, Text: s.attached(p.Text)})
		case "reasoning":
			out = append(out, loop.Block{Kind: loop.BlockThought, Text: s.attached(p.Reasoning)})
		}
	}
	return out
}

func (s *evalSample) text(raw json.RawMessage) string { return s.attached(textOf(raw)) }

// attached resolves a text that is kept beside the messages.
func (s *evalSample) attached(t string) string {
	if ref, ok := strings.CutPrefix(t, "attachment://"); ok {
		if a, ok := s.Attachments[ref]; ok {
			return a
		}
	}
	return t
}

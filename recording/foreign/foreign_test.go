package foreign_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
	"github.com/ronda-go/ronda/recording/foreign"
)

// The sources below are written by hand after the formats of their tools: one question, a call that works, one that fails, an answer.

const claude = `{"type":"summary","summary":"Files","leafUuid":"x"}
{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"Which files are there?"},"uuid":"u1","sessionId":"s-1","version":"2.0.1","timestamp":"2026-01-02T10:00:00.000Z"}
{"type":"assistant","uuid":"u2","sessionId":"s-1","version":"2.0.1","timestamp":"2026-01-02T10:00:02.000Z","message":{"id":"msg_1","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"thinking","thinking":"I list them.","signature":"sig"}],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}}}
{"type":"assistant","uuid":"u3","sessionId":"s-1","version":"2.0.1","timestamp":"2026-01-02T10:00:03.000Z","message":{"id":"msg_1","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls"}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":30}}}
{"type":"user","uuid":"u4","sessionId":"s-1","version":"2.0.1","timestamp":"2026-01-02T10:00:04.500Z","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":[{"type":"text","text":"a.go"}]}]}}
{"type":"assistant","uuid":"u5","sessionId":"s-1","version":"2.0.1","timestamp":"2026-01-02T10:00:06.000Z","message":{"id":"msg_2","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"toolu_2","name":"Read","input":{"path":"b.go"}}],"usage":{"input_tokens":40,"output_tokens":7}}}
{"type":"user","uuid":"u6","sessionId":"s-1","version":"2.0.1","timestamp":"2026-01-02T10:00:07.000Z","message":{"role":"user","content":[{"tool_use_id":"toolu_2","type":"tool_result","content":"no such file","is_error":true}]}}
{"type":"assistant","uuid":"u7","isSidechain":true,"sessionId":"s-1","timestamp":"2026-01-02T10:00:08.000Z","message":{"id":"msg_9","role":"assistant","content":[{"type":"text","text":"of a sub-agent"}]}}
{"type":"assistant","uuid":"u8","sessionId":"s-1","version":"2.0.1","timestamp":"2026-01-02T10:00:09.000Z","message":{"id":"msg_3","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"There is a.go."}],"usage":{"input_tokens":60,"output_tokens":9}}}
`

const codex = `{"timestamp":"2026-01-02T10:00:00.000Z","type":"session_meta","payload":{"id":"c-1","timestamp":"2026-01-02T10:00:00.000Z","cwd":"/x","originator":"codex_cli_rs","cli_version":"0.50.0"}}
{"timestamp":"2026-01-02T10:00:00.100Z","type":"turn_context","payload":{"cwd":"/x","model":"gpt-5-codex"}}
{"timestamp":"2026-01-02T10:00:00.200Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}
{"timestamp":"2026-01-02T10:00:00.300Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Which files are there?"}]}}
{"timestamp":"2026-01-02T10:00:02.000Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"I list them."}],"encrypted_content":"zzz"}}
{"timestamp":"2026-01-02T10:00:03.000Z","type":"response_item","payload":{"type":"function_call","name":"Bash","arguments":"{\"command\":\"ls\"}","call_id":"call_1"}}
{"timestamp":"2026-01-02T10:00:03.500Z","type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":15,"cached_input_tokens":5,"output_tokens":30,"reasoning_output_tokens":4}}}}
{"timestamp":"2026-01-02T10:00:04.500Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"{\"output\":\"a.go\",\"metadata\":{\"exit_code\":0}}"}}
{"timestamp":"2026-01-02T10:00:06.000Z","type":"response_item","payload":{"type":"function_call","name":"Read","arguments":"{\"path\":\"b.go\"}","call_id":"call_2"}}
{"timestamp":"2026-01-02T10:00:07.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_2","output":"{\"output\":\"no such file\",\"metadata\":{\"exit_code\":1}}"}}
{"timestamp":"2026-01-02T10:00:09.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"There is a.go."}]}}
`

const agui = `data: {"type":"RUN_STARTED","threadId":"t","runId":"run_ag","timestamp":1767348000000,"input":{"messages":[{"id":"m0","role":"user","content":"Which files are there?"}]}}

data: {"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"I list ","timestamp":1767348001000}
data: {"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"them.","timestamp":1767348001200}
data: {"type":"TOOL_CALL_START","toolCallId":"k1","toolCallName":"Bash","timestamp":1767348001300}
data: {"type":"TOOL_CALL_ARGS","toolCallId":"k1","delta":"{\"command\":","timestamp":1767348001400}
data: {"type":"TOOL_CALL_ARGS","toolCallId":"k1","delta":"\"ls\"}","timestamp":1767348001500}
data: {"type":"TOOL_CALL_END","toolCallId":"k1","timestamp":1767348001500}
data: {"type":"TOOL_CALL_RESULT","messageId":"m2","toolCallId":"k1","content":"a.go","timestamp":1767348002000}
data: {"type":"TOOL_CALL_START","toolCallId":"k2","toolCallName":"Read","timestamp":1767348003000}
data: {"type":"TOOL_CALL_ARGS","toolCallId":"k2","delta":"{\"path\":\"b.go\"}","timestamp":1767348003100}
data: {"type":"TOOL_CALL_RESULT","messageId":"m4","toolCallId":"k2","content":"no such file","timestamp":1767348004000}
data: {"type":"TEXT_MESSAGE_START","messageId":"m5","role":"assistant","timestamp":1767348005000}
data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m5","delta":"There is ","timestamp":1767348005100}
data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m5","delta":"a.go.","timestamp":1767348005200}
data: {"type":"RUN_FINISHED","threadId":"t","runId":"run_ag","timestamp":1767348005300}
`

const otlp = `{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"spans":[
{"traceId":"tr1","spanId":"1","name":"invoke_agent files","startTimeUnixNano":"1767348000000000000","endTimeUnixNano":"1767348009000000000","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"invoke_agent"}},{"key":"gen_ai.agent.name","value":{"stringValue":"files"}}]},
{"traceId":"tr1","spanId":"2","name":"chat m","startTimeUnixNano":"1767348000100000000","endTimeUnixNano":"1767348003000000000","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.provider.name","value":{"stringValue":"openai"}},{"key":"gen_ai.request.model","value":{"stringValue":"gpt-5"}},{"key":"gen_ai.usage.input_tokens","value":{"intValue":"10"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"30"}},
 {"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"Which files are there?\"}]}]"}},
 {"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"reasoning\",\"content\":\"I list them.\"},{\"type\":\"tool_call\",\"id\":\"k1\",\"name\":\"Bash\",\"arguments\":{\"command\":\"ls\"}}]}]"}}]},
{"traceId":"tr1","spanId":"3","name":"execute_tool Bash","startTimeUnixNano":"1767348003100000000","endTimeUnixNano":"1767348004000000000","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},{"key":"gen_ai.tool.name","value":{"stringValue":"Bash"}},{"key":"gen_ai.tool.call.id","value":{"stringValue":"k1"}},{"key":"gen_ai.tool.call.result","value":{"stringValue":"a.go"}}]},
{"traceId":"tr1","spanId":"4","name":"chat m","startTimeUnixNano":"1767348005000000000","endTimeUnixNano":"1767348006000000000","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"tool_call\",\"id\":\"k2\",\"name\":\"Read\",\"arguments\":{\"path\":\"b.go\"}}]}]"}}]},
{"traceId":"tr1","spanId":"5","name":"execute_tool Read","startTimeUnixNano":"1767348006100000000","endTimeUnixNano":"1767348007000000000","status":{"code":2,"message":"no such file"},"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},{"key":"gen_ai.tool.name","value":{"stringValue":"Read"}},{"key":"gen_ai.tool.call.id","value":{"stringValue":"k2"}}]},
{"traceId":"tr1","spanId":"6","name":"chat m","startTimeUnixNano":"1767348007500000000","endTimeUnixNano":"1767348009000000000","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"There is a.go.\"}]}]"}}]}
]}]}]}`

const sample = `{"id":"q1","epoch":1,"messages":[
{"id":"m0","role":"system","content":"Be brief."},{"id":"m1","role":"user","content":"attachment://abc"},
{"id":"m2","role":"assistant","content":[{"type":"reasoning","reasoning":"I list them."}],"tool_calls":[{"id":"k1","function":"Bash","arguments":{"command":"ls"},"type":"function"}],"model":"gpt-5"},
{"id":"m3","role":"tool","tool_call_id":"k1","function":"Bash","content":"a.go"},
{"id":"m4","role":"assistant","content":"","tool_calls":[{"id":"k2","function":"Read","arguments":{"path":"b.go"}}]},
{"id":"m5","role":"tool","tool_call_id":"k2","content":"","error":{"type":"file_not_found","message":"no such file"}},
{"id":"m6","role":"assistant","content":"There is a.go."}],
"attachments":{"abc":"Which files are there?"},
"events":[{"event":"model","timestamp":"2026-01-02T10:00:00+00:00","completed":"2026-01-02T10:00:03+00:00","output":{"choices":[{"message":{"id":"m2","role":"assistant","content":""},"stop_reason":"tool_calls"}],"usage":{"input_tokens":10,"output_tokens":30,"input_tokens_cache_read":5}}},
{"event":"tool","id":"k1","timestamp":"2026-01-02T10:00:03+00:00","completed":"2026-01-02T10:00:04+00:00"}]}`

func eval(t testing.TB) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for name, text := range map[string]string{"header.json": `{"version":2,"eval":{"run_id":"R1","task":"files","model":"openai/gpt-5"}}`, "samples/q1_epoch_1.json": sample} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// said is what a run says, whatever its source.
func said(rec *recording.Recording) []string {
	var out []string
	for _, ev := range rec.Root().Events {
		switch b := ev.Body.(type) {
		case loop.RunStarted:
			out = append(out, "user: "+b.Input[0].Text)
		case loop.ModelReplied:
			for _, bl := range b.Blocks {
				if bl.Text+bl.Args != "" {
					out = append(out, string(bl.Kind)+": "+bl.Name+bl.Text+bl.Args)
				}
			}
		case loop.ToolReturned:
			out = append(out, "result: "+b.Text)
		case loop.ToolFailed:
			out = append(out, "failed: "+b.Message)
		case loop.RunStopped:
			out = append(out, "stop: "+string(b.Stop))
		}
	}
	return out
}

func TestSources(t *testing.T) {
	want := []string{"user: Which files are there?", "thought: I list them.", `call: Bash{"command":"ls"}`, "result: a.go", `call: Read{"path":"b.go"}`,
		"failed: no such file", "text: There is a.go.", "stop: completed"}
	for _, c := range []struct {
		name  string
		data  []byte
		pace  recording.Pace
		run   string
		model string
		usage loop.Usage // of the first response
		took  loop.Micros
	}{
		{foreign.ClaudeCode, []byte(claude), recording.PaceBlock, "run_s-1", "anthropic/claude-sonnet-4-5", loop.Usage{Input: 10, CacheRead: 5, Output: 30}, 9 * loop.Second},
		{foreign.Codex, []byte(codex), recording.PaceBlock, "run_c-1", "openai/gpt-5-codex", loop.Usage{Input: 10, CacheRead: 5, Output: 30, Reasoning: 4}, 8700 * loop.Millisecond},
		{foreign.AGUI, []byte(agui), recording.PaceReal, "run_ag", "ag-ui/unknown", loop.Usage{}, 5200 * loop.Millisecond},
		{foreign.OTLP, []byte(otlp), recording.PaceBlock, "run_tr1", "openai/gpt-5", loop.Usage{Input: 10, Output: 30}, 8900 * loop.Millisecond},
		{foreign.Inspect, eval(t), recording.PaceBlock, "run_R1_q1_1", "openai/gpt-5", loop.Usage{Input: 10, CacheRead: 5, Output: 30}, loop.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := foreign.Read(c.data)
			if err != nil || len(list) != 1 {
				t.Fatalf("%d runs, %v", len(list), err)
			}
			rec := list[0]
			wanted := want
			if c.name == foreign.AGUI { // its results do not say that they are errors
				wanted = strings.Split(strings.ReplaceAll(strings.Join(want, "\n"), "failed: ", "result: "), "\n")
			}
			if diff := cmp.Diff(wanted, said(rec)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			h := rec.Header
			if h.Source.Name != c.name || h.Pace != c.pace || h.Run != c.run || h.Models[0] != c.model {
				t.Errorf("header: %+v", h)
			}
			st, err := rec.Root().Fold()
			if err != nil || st.Phase != loop.PhaseStopped {
				t.Fatalf("it does not fold to a stop: %v, %s", err, st)
			}
			if st.Time-st.Started != c.took && c.name != foreign.Inspect {
				t.Errorf("it took %d, want %d", st.Time-st.Started, c.took)
			}
			for _, ev := range rec.Root().Events {
				if b, ok := ev.Body.(loop.ModelReplied); ok {
					if *b.Usage != c.usage {
						t.Errorf("usage %+v, want %+v", *b.Usage, c.usage)
					}
					break
				}
			}
			if diff := recording.Check(rec.Root().Events); diff != nil {
				t.Error(diff)
			}
			data, err := rec.Bytes(recording.Lines, recording.WriteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			back, err := recording.Read(bytes.NewReader(data))
			if err != nil || !recording.Verify(back).OK() || !cmp.Equal(said(back), said(rec)) {
				t.Errorf("written and read: %v, %+v", err, recording.Verify(back))
			}
			if x := recording.Explain(rec.Root().Events); x.Partial || len(x.Rounds) != 3 {
				t.Errorf("explained: %d rounds\n%s", len(x.Rounds), x.Text())
			}
			if pieces := len(recording.Timeline(rec)) - len(rec.Root().Events); c.name == foreign.AGUI && pieces != 7 {
				t.Errorf("%d pieces, want 7", pieces)
			}
		})
	}
}

func TestAStreamWithoutTimes(t *testing.T) {
	var b strings.Builder
	for line := range strings.Lines(agui) {
		if i := strings.Index(line, `,"timestamp":`); i >= 0 {
			j := i + len(`,"timestamp":`) + 13
			line = line[:i] + line[j:]
		}
		b.WriteString(line)
	}
	list, err := foreign.Read([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if h := list[0].Header; h.Pace != recording.PaceSynthetic || len(h.Source.Notes) == 0 {
		t.Errorf("header: %+v", h)
	}
}

func TestGoesOnAfterAnAnswer(t *testing.T) {
	more := claude + `{"type":"user","uuid":"v1","sessionId":"s-1","timestamp":"2026-01-02T10:01:00.000Z","message":{"role":"user","content":"And now?"}}
{"type":"assistant","uuid":"v2","sessionId":"s-1","timestamp":"2026-01-02T10:01:02.000Z","message":{"id":"msg_5","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"toolu_7","name":"Bash","input":{}}]}}
`
	list, err := foreign.Read([]byte(more))
	if err != nil {
		t.Fatal(err)
	}
	got := said(list[0])
	if got[len(got)-1] != "stop: cancelled" || !strings.Contains(strings.Join(list[0].Header.Source.Notes, ";"), "1 calls have no result") {
		t.Errorf("%v, notes %v", got, list[0].Header.Source.Notes)
	}
	if diff := recording.Check(list[0].Root().Events); diff != nil {
		t.Error(diff)
	}
}

func TestUnknownIsRefused(t *testing.T) {
	for _, in := range []string{"", "hello", "{}", `{"a":1}` + "\n", "PK\x03\x04 no zip"} {
		if _, err := foreign.Read([]byte(in)); !errors.Is(err, foreign.ErrUnknown) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, in := range []string{claude, codex, agui, otlp, string(eval(f))} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := foreign.Read(data)
		if err != nil {
			return
		}
		for _, rec := range list {
			if st, err := rec.Root().Fold(); err != nil || st.Phase != loop.PhaseStopped {
				t.Errorf("it does not fold to a stop: %v, %s", err, st)
			}
		}
	})
}

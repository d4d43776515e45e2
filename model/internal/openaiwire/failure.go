// Package openaiwire is what the two protocols of OpenAI share on the wire: the shapes in which OpenAI and compatible servers
// report errors and usage, schemas as they take them, media. It does not import the SDK, so that decoders can be fuzzed without
// instrumenting all of it.
package openaiwire

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

// Failure makes the error of a status of 400 and above.
func Failure(status int, h http.Header, body []byte) *model.Error {
	r := report{status: status}
	if wire.Valid(body) {
		r.read(gjson.ParseBytes(body))
	}
	if r.message == "" {
		r.message = strings.Trim(http.StatusText(status)+": "+strings.TrimSpace(string(body[:min(len(body), 500)])), ": ")
	}
	e := r.failure()
	if e.Class == loop.ClassTransient {
		e.RetryAfter = wire.RetryAfter(h, r.message, time.Now())
	}
	if id := h.Get("X-Request-Id"); id != "" {
		e.Message += " (request " + id + ")"
	}
	e.Lost = status == http.StatusRequestTimeout || status == http.StatusBadGateway || status == http.StatusGatewayTimeout
	return e
}

// InBody makes the error of an error object that came with a good status, whole or in a stream. The provider may have billed
// what it did before, so it is Lost unless usage says what was billed.
func InBody(object gjson.Result) *model.Error {
	var r report
	r.read(object)
	if r.message == "" {
		r.message = object.Raw
	}
	e := r.failure()
	e.Lost = e.Class == loop.ClassTransient
	if e.Class == loop.ClassTransient {
		e.RetryAfter = wire.WaitInText(r.message)
	}
	return e
}

// report is an error in the provider's words. Shapes seen: {"error":{message,type,code,param}} (OpenAI, most others; code may
// be a number), {"error":"…","code":"…"} (xAI), {"error":"…"} (Venice), {"message","type","code"} (Mistral), {"detail":"…"}
// (Mistral, ChatGPT), [{"error":{…}}] (Google), and an error object by itself (events of streams).
type report struct {
	status  int
	code    string
	kind    string
	param   string
	message string
	failed  string // Groq: what the model wrote
}

func (r *report) read(v gjson.Result) {
	if v.IsArray() {
		v = v.Get("0")
	}
	if v.Type == gjson.String {
		r.message = v.Str
		return
	}
	e := v.Get("error")
	switch {
	case e.IsObject():
		v = e
	case e.Type == gjson.String:
		r.message = e.Str
	}
	if m := v.Get("message"); r.message == "" && m.Exists() && m.Type != gjson.Null {
		r.message = m.String()
	}
	if d := v.Get("detail"); r.message == "" && d.Exists() {
		r.message = d.String()
	}
	if raw := v.Get("metadata.raw"); raw.Type == gjson.String { // OpenRouter: the words of the provider behind it
		r.message += ": " + raw.Str[:min(len(raw.Str), 1000)]
	}
	r.param = v.Get("param").Str
	r.kind = v.Get("type").Str
	r.failed = v.Get("failed_generation").Str
	code := v.Get("code")
	switch code.Type {
	case gjson.String:
		r.code = code.Str
	case gjson.Number:
		r.code = code.Raw
		if r.status == 0 {
			r.status = int(code.Int())
		}
	}
	if s := v.Get("status_code"); r.status == 0 && s.Type == gjson.Number {
		r.status = int(s.Int())
	}
}

// windowText are the words of servers that have no code for a transcript that does not fit the window (Ollama, Perplexity,
// vLLM, llama.cpp, OpenRouter's providers).
var windowText = regexp.MustCompile(`(?i)maximum context length|max(imum)? context|context (window|size)|exceed_context|prompt is too long|prompt too long|too many (prompt )?tokens|total length of all messages is too long`)

func (r *report) failure() *model.Error {
	e := &model.Error{Class: loop.ClassFatal, Status: r.status, Code: r.code, Message: r.message}
	if r.kind != "" && (e.Code == "" || isNumber(e.Code)) {
		e.Code = r.kind
	}
	if r.failed != "" {
		e.Err = generation(r.failed)
	}
	names := strings.ToLower(r.code + " " + r.kind)
	switch {
	case has(names, "insufficient_quota", "billing_hard_limit", "billing_not_active", "insufficient_credits") || r.status == http.StatusPaymentRequired:
	case has(names, "context_length_exceeded", "too_many_prompt_tokens", "exceed_context_size") ||
		r.status == http.StatusRequestEntityTooLarge ||
		(r.status == 400 || r.status == 422 || r.status == 0) && windowText.MatchString(r.message):
		e.Class, e.Window = loop.ClassInvalid, true
	case has(names, "previous_response_not_found") || r.param == "previous_response_id":
		e.Class, e.Gone = loop.ClassTransient, true
	case r.status != 0:
		e.Class = wire.ClassOf(r.status)
	case has(names, "invalid", "not_found", "authentication", "permission", "unsupported", "content_filter"):
	default: // rate_limit_exceeded, server_error, overloaded and what nobody has a name for, in mid-stream
		e.Class = loop.ClassTransient
	}
	return e
}

func has(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// Refused makes a response of an error that is the provider's word on one generation and no failure of the call: Groq's
// tool_use_failed (the model wrote a call that cannot be parsed) and Azure's content_filter (the prompt was refused). ok is
// false for every other error.
func Refused(e *model.Error) (res *model.Response, ok bool) {
	switch {
	case e.Code == "tool_use_failed":
		res = &model.Response{Finish: loop.FinishMalformed, Detail: e.Message}
	case e.Code == "content_filter" && (e.Status == 0 || e.Status == 400):
		res = &model.Response{Finish: loop.FinishFilter, Detail: e.Message}
	default:
		return nil, false
	}
	var wrote generation
	if errors.As(e.Err, &wrote) {
		res.Detail += ": " + string(wrote)
	}
	return res, true
}

// generation is what the model wrote where the provider could make nothing of it.
type generation string

func (g generation) Error() string { return "the model wrote: " + string(g) }

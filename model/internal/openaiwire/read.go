package openaiwire

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/wire"
)

// Read gives the body of a response to f: each event of a stream, or the body of a whole response as one. What came decides, not
// what was asked for: some servers stream always, others never. It reports whether it was a stream.
func Read(at *wire.Attempt, res *http.Response, f func(name, data []byte) error) (stream bool, err error) {
	body := at.Body(res.Body)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		err = wire.Events(body, f)
		if err == nil {
			at.Finish(res.Body)
		} else {
			res.Body.Close()
		}
		return true, err
	}
	defer res.Body.Close()
	b, err := wire.ReadAll(body, res.ContentLength)
	if err != nil {
		return false, err
	}
	if t := bytes.TrimSpace(b); len(t) > 0 && t[0] != '{' && t[0] != '[' && (t[0] == ':' || bytes.HasPrefix(t, []byte("data:")) || bytes.HasPrefix(t, []byte("event:"))) {
		return true, wire.Events(bytes.NewReader(b), f)
	}
	if err = f(nil, b); err == wire.ErrStop {
		err = nil
	}
	return false, err
}

// NoJSON is the error of a body or an event that is no JSON. Nobody knows what the provider billed for it.
func NoJSON(data []byte) error {
	return &model.Error{
		Class: loop.ClassTransient, Lost: true, Code: "no_json",
		Message: fmt.Sprintf("the provider sent what is no JSON: %.200q", data),
	}
}

// IsError reports whether a body without an answer is an error in one of the shapes that report knows.
func IsError(v gjson.Result) bool {
	e := v.Get("error")
	return e.Exists() && e.Type != gjson.Null || v.Get("object").Str == "error" || v.Get("type").Str == "error" || v.Get("detail").Exists() ||
		v.Get("message").Type == gjson.String && v.Get("code").Exists()
}

// ChatUsage reads the usage of Chat Completions into disjoint parts; nil where there is none. Prompt tokens include cached ones
// (prompt_tokens_details.cached_tokens; DeepSeek: prompt_cache_hit_tokens; Moonshot: cached_tokens) and those written to a cache
// (OpenRouter: cache_write_tokens). Servers that do not count thoughts as completion (xAI, Google) show it in the total.
func ChatUsage(v gjson.Result) *loop.Usage {
	if !v.IsObject() || !v.Get("prompt_tokens").Exists() && !v.Get("completion_tokens").Exists() && !v.Get("total_tokens").Exists() {
		return nil
	}
	var prompt, completion, total, read, write, reasoning int64
	v.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "prompt_tokens":
			prompt = count(v)
		case "completion_tokens":
			completion = count(v)
		case "total_tokens":
			total = count(v)
		case "cached_tokens", "prompt_cache_hit_tokens":
			read = max(read, count(v))
		case "prompt_tokens_details":
			read = max(read, count(v.Get("cached_tokens")))
			write = max(count(v.Get("cache_write_tokens")), count(v.Get("cache_creation_tokens")))
		case "completion_tokens_details":
			reasoning = count(v.Get("reasoning_tokens"))
		case "reasoning_tokens":
			reasoning = max(reasoning, count(v))
		}
		return true
	})
	return disjoint(prompt, completion, total, read, write, reasoning)
}

// ResponsesUsage reads the usage of the Responses API into disjoint parts; nil where there is none.
func ResponsesUsage(v gjson.Result) *loop.Usage {
	if !v.IsObject() || !v.Get("input_tokens").Exists() && !v.Get("output_tokens").Exists() {
		return nil
	}
	return disjoint(count(v.Get("input_tokens")), count(v.Get("output_tokens")), count(v.Get("total_tokens")),
		count(v.Get("input_tokens_details.cached_tokens")), count(v.Get("input_tokens_details.cache_write_tokens")),
		count(v.Get("output_tokens_details.reasoning_tokens")))
}

func count(v gjson.Result) int64 { return min(max(v.Int(), 0), 1<<50) }

func disjoint(input, output, total, read, write, reasoning int64) *loop.Usage {
	if unsaid := total - input - output; unsaid > 0 {
		output += unsaid
		reasoning = max(reasoning, unsaid)
	}
	read = min(read, input)
	write = min(write, input-read)
	return &loop.Usage{Input: input - read - write, CacheRead: read, CacheWrite: write, Output: output, Reasoning: min(reasoning, output)}
}

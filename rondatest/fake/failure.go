package fake

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// failure answers with a status that the script asks for, in the body that the wire has for it. Sources: recorded errors
// (anthropic-sdk-python____inline_snapshot___test_messages_* 429, ruby_llm__chat_real_error_scenarios_* 429 of Azure and Gemini
// with RetryInfo) and the pages "Errors" (Anthropic), "Error codes" (OpenAI), "Troubleshooting" (Gemini API). No recording
// holds a 529 or a 5xx of OpenAI: those are from the pages.
func (s *Server) failure(w http.ResponseWriter, r *rand.Rand, status int, wait time.Duration, message string) {
	id := requestID(r, s.wire)
	head(w, s.wire, id)
	w.Header().Set("Content-Type", contentJSON(s.wire))
	if wait > 0 && s.wire != Gemini {
		w.Header().Set("retry-after", waitHeader(wait))
		if s.wire != Anthropic {
			w.Header().Set("retry-after-ms", fmt.Sprint(wait.Milliseconds()))
		}
	}
	var body json.RawMessage
	switch s.wire {
	case Anthropic:
		again := status == 408 || status == 409 || status == 429 || status >= 500
		w.Header().Set("x-should-retry", fmt.Sprint(again))
		typ, said := anthropicError(status)
		body = object("type", "error", "error", object("type", typ, "message", or(message, said)), "request_id", id)
	case Gemini:
		body = geminiError(status, wait, message)
	default:
		typ, code, said := openAIError(status, wait)
		body = object("error", object("message", or(message, said), "type", typ, "param", nil, "code", null(code)))
	}
	w.WriteHeader(status)
	w.Write(body)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func anthropicError(status int) (typ, message string) {
	switch status {
	case 400:
		return "invalid_request_error", "The request is invalid."
	case 401:
		return "authentication_error", "invalid x-api-key"
	case 402:
		return "billing_error", "There's an issue with your billing or payment information."
	case 403:
		return "permission_error", "Your API key does not have permission to use the specified resource."
	case 404:
		return "not_found_error", "The requested resource could not be found."
	case 413:
		return "request_too_large", "Request exceeds the maximum allowed number of bytes."
	case 429:
		return "rate_limit_error", "This request would exceed your organization's rate limit. For details, refer to: https://docs.claude.com/en/api/rate-limits."
	case 504:
		return "timeout_error", "Request timed out."
	case 529:
		return "overloaded_error", "Overloaded"
	}
	return "api_error", "Internal server error"
}

func openAIError(status int, wait time.Duration) (typ, code, message string) {
	switch status {
	case 400:
		return "invalid_request_error", "", "The request is invalid."
	case 401:
		return "invalid_request_error", "invalid_api_key", "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys."
	case 403:
		return "invalid_request_error", "unsupported_country_region_territory", "Country, region, or territory not supported"
	case 404:
		return "invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."
	case 429:
		said := "Rate limit reached on tokens per min (TPM): Limit 30000, Used 30000, Requested 1000."
		if wait > 0 {
			said += fmt.Sprintf(" Please try again in %s.", wait)
		}
		return "tokens", "rate_limit_exceeded", said
	case 503, 529:
		return "server_error", "server_is_overloaded", "Our servers are currently overloaded. Please try again later."
	}
	return "server_error", "", "The server had an error while processing your request. Sorry about that!"
}

func geminiStatus(status int) string {
	switch status {
	case 400:
		return "INVALID_ARGUMENT"
	case 401:
		return "UNAUTHENTICATED"
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 408, 504:
		return "DEADLINE_EXCEEDED"
	case 409:
		return "ABORTED"
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 500:
		return "INTERNAL"
	case 503, 529:
		return "UNAVAILABLE"
	}
	return "UNKNOWN"
}

func geminiError(status int, wait time.Duration, message string) json.RawMessage {
	said := map[string]string{
		"RESOURCE_EXHAUSTED": "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.",
		"UNAVAILABLE":        "The model is overloaded. Please try again later.",
		"INTERNAL":           "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting",
		"DEADLINE_EXCEEDED":  "Deadline expired before operation could complete.",
	}[geminiStatus(status)]
	e := object("code", status, "message", or(message, or(said, "The request failed.")), "status", geminiStatus(status))
	if wait > 0 {
		e = with(e, "details", array(object("@type", "type.googleapis.com/google.rpc.RetryInfo", "retryDelay", fmt.Sprintf("%gs", wait.Seconds()))))
	}
	return object("error", e)
}

// statusOf is the status of an error that is named as error events name it.
func statusOf(code string) int {
	c := strings.ToLower(code)
	switch {
	case strings.Contains(c, "overloaded"):
		return 529
	case strings.Contains(c, "rate_limit"), strings.Contains(c, "exhausted"):
		return 429
	case strings.Contains(c, "unavailable"):
		return 503
	case strings.Contains(c, "timeout"):
		return 504
	case strings.Contains(c, "invalid"):
		return 400
	}
	return 500
}

// errorEvent is an error in mid-stream. Sources: "Streaming messages: error events" (Anthropic),
// prism__Fixtures_openai_stream-rate-limited-N (Responses: an error event), pydantic-ai__test_openrouter_test_openrouter_stream_error
// (chat: a data line with an error); for Gemini the error body as an event.
func (s *Server) errorEvent(code, message string, seq int) []byte {
	status := statusOf(code)
	switch s.wire {
	case Anthropic:
		typ, said := anthropicError(status)
		return sse("error", object("type", "error", "error", object("type", typ, "message", or(message, said))), "\n\n")
	case OpenAI:
		typ, c, said := openAIError(status, 0)
		return sse("error", object("type", "error", "sequence_number", seq, "error",
			object("type", typ, "code", or(c, "server_error"), "message", or(message, said), "param", nil)), "\n\n")
	case Gemini:
		if status == 529 {
			status = 503
		}
		return sse("", geminiError(status, 0, message), "\r\n\r\n")
	}
	typ, c, said := openAIError(status, 0)
	return sse("", object("error", object("message", or(message, said), "type", typ, "param", nil, "code", or(c, "server_error"))), "\n\n")
}

package fake

import (
	"fmt"
	"net/http"
	"strings"
)

// Refusal is a request that a provider refuses, in the provider's words.
type Refusal struct {
	Rule    string // short name of the rule, the same on all wires that have it
	Status  int    // HTTP
	Type    string // error.type; Gemini: error.status
	Code    string // error.code (OpenAI)
	Param   string // error.param (OpenAI), the path of the field (others)
	Message string
}

func (r *Refusal) Error() string {
	s := fmt.Sprintf("refused with %d (%s)", r.Status, r.Rule)
	if r.Param != "" {
		s += " at " + r.Param
	}
	return s + ": " + r.Message
}

// invalid is the 400 of Anthropic: the path and the message are one text.
func invalid(rule, path, format string, args ...any) *Refusal {
	m := fmt.Sprintf(format, args...)
	if path != "" {
		m = path + ": " + m
	}
	return &Refusal{Rule: rule, Status: http.StatusBadRequest, Type: "invalid_request_error", Param: path, Message: m}
}

// openAI is the 400 of both OpenAI wires.
func openAI(rule, param, code, format string, args ...any) *Refusal {
	return &Refusal{Rule: rule, Status: http.StatusBadRequest, Type: "invalid_request_error", Param: param, Code: code,
		Message: fmt.Sprintf(format, args...)}
}

// google is the 400 of Gemini.
func google(rule, path, format string, args ...any) *Refusal {
	return &Refusal{Rule: rule, Status: http.StatusBadRequest, Type: "INVALID_ARGUMENT", Param: path, Message: fmt.Sprintf(format, args...)}
}

func notJSON(wire string) *Refusal {
	switch wire {
	case Anthropic:
		return invalid("json", "", "The request body is not valid JSON")
	case Gemini:
		return google("json", "", "Invalid JSON payload received. Unexpected token.")
	}
	return openAI("json", "", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)")
}

// body is the error body of the wire. Sources: recorded errors (rig__anthropic_error_envelope_*, rig__openai_error_identity_*,
// otel-contrib__…vertexai_*), and the pages "Errors" (Anthropic), "Error codes" (OpenAI), "Troubleshooting" (Gemini API).
func (r *Refusal) body(wire, id string) []byte {
	switch wire {
	case Anthropic:
		return object("type", "error", "error", object("type", r.Type, "message", r.Message), "request_id", id)
	case Gemini:
		return object("error", object("code", r.Status, "message", r.Message, "status", r.Type))
	}
	return object("error", object("message", r.Message, "type", r.Type, "param", null(r.Param), "code", null(r.Code)))
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func writeRefusal(w http.ResponseWriter, wire string, r *Refusal) {
	id := "req_refused"
	head(w, wire, id)
	if wire == Anthropic {
		w.Header().Set("x-should-retry", "false")
	}
	w.Header().Set("Content-Type", contentJSON(wire))
	w.WriteHeader(r.Status)
	w.Write(r.body(wire, id))
}

// head sets the headers that each response of the wire carries, as recorded.
func head(w http.ResponseWriter, wire, id string) {
	switch wire {
	case Anthropic:
		w.Header().Set("request-id", id)
	case OpenAI, OpenAIChat:
		w.Header().Set("x-request-id", id)
		w.Header().Set("openai-version", "2020-10-01")
	}
}

func contentJSON(wire string) string {
	if wire == Gemini {
		return "application/json; charset=UTF-8"
	}
	return "application/json"
}

// checkHTTP looks at the request line and the headers: path, method, content type, key. It fills in what they say.
func checkHTTP(wire, key string, r *http.Request, seen *Seen) *Refusal {
	path := r.URL.EscapedPath()
	if r.Method != http.MethodPost {
		return &Refusal{Rule: "method", Status: http.StatusMethodNotAllowed, Type: "invalid_request_error", Message: "Method Not Allowed"}
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		return &Refusal{Rule: "content_type", Status: http.StatusBadRequest, Type: "invalid_request_error",
			Message: "Unsupported content type: send application/json"}
	}
	notFound := &Refusal{Rule: "path", Status: http.StatusNotFound, Type: "not_found_error",
		Message: fmt.Sprintf("Invalid URL (POST %s)", path)}
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch wire {
	case Anthropic:
		if !strings.HasSuffix(path, "/messages") {
			return notFound
		}
		// "API overview" (Anthropic): anthropic-version is required.
		if r.Header.Get("anthropic-version") == "" {
			return invalid("version", "anthropic-version", "header is required")
		}
		return checkKey(key, &Refusal{Rule: "key", Status: http.StatusUnauthorized, Type: "authentication_error", Message: "invalid x-api-key"},
			r.Header.Get("x-api-key"), bearer)
	case Gemini:
		return googlePath(key, r, seen, bearer)
	}
	suffix := "/responses"
	if wire == OpenAIChat {
		suffix = "/chat/completions"
	}
	if !strings.HasSuffix(path, suffix) {
		return notFound
	}
	// ruby_llm__error_handles_invalid_api_keys_gracefully
	return checkKey(key, &Refusal{Rule: "key", Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key",
		Message: "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys."}, bearer)
}

// googlePath reads …/models/NAME:generateContent or …:streamGenerateContent?alt=sse ("Generate content", Gemini API).
func googlePath(key string, r *http.Request, seen *Seen, bearer string) *Refusal {
	name, method, ok := strings.Cut(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], ":")
	seen.Model = name
	seen.Stream = method == "streamGenerateContent"
	if !ok || name == "" || method != "generateContent" && !seen.Stream {
		return &Refusal{Rule: "path", Status: http.StatusNotFound, Type: "NOT_FOUND",
			Message: fmt.Sprintf("%s is not found for API version v1beta, or is not supported for generateContent.", r.URL.Path)}
	}
	if seen.Stream && r.URL.Query().Get("alt") != "sse" {
		return google("alt", "alt", "this server streams only with alt=sse")
	}
	// langchaingo__llms_googleai_TestGoogleAIErrorHandling, ruby_llm__chat_error_handling_with_gemini_*
	return checkKey(key, google("key", "", "API key not valid. Please pass a valid API key."),
		r.Header.Get("x-goog-api-key"), r.URL.Query().Get("key"), bearer)
}

func checkKey(want string, ref *Refusal, got ...string) *Refusal {
	for _, k := range got {
		if k != "" && (want == "" || k == want) {
			return nil
		}
	}
	return ref
}

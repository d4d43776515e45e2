package fake_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ronda-go/ronda/rondatest/fake"
	"github.com/ronda-go/ronda/rondatest/traffic"
)

var folders = map[string]string{
	fake.Anthropic: "anthropic", fake.OpenAI: "openai-responses", fake.OpenAIChat: "openai-chat", fake.Gemini: "gemini",
}

// TestAcceptsWhatProvidersAccepted gives each recorded request that was answered with 200 to Check. A refusal is a fault of the
// checker, except for what ronda never sends: those are named below with the reason.
func TestAcceptsWhatProvidersAccepted(t *testing.T) {
	for wire, folder := range folders {
		t.Run(wire, func(t *testing.T) {
			table := traffic.NewTable(t, "requests that the provider accepted: "+wire)
			for _, f := range traffic.Load(t, folder) {
				for i := range f.Exchanges {
					x := &f.Exchanges[i]
					if x.Response.Status != 200 || !x.Request.Recorded() || x.Request.Body[0] != '{' {
						continue
					}
					name := fmt.Sprintf("%s[%d]", f.Name, i)
					err := fake.Check(wire, x.Request.Body)
					var ref *fake.Refusal
					switch {
					case err == nil:
						table.Pass(name)
					case errors.As(err, &ref) && leftOut(name, ref) != "":
						table.LeftOut(name, leftOut(name, ref))
					default:
						table.Fail(name, "%v", err)
					}
				}
			}
		})
	}
}

// never are requests that a provider accepted and that ronda never makes, by a part of the file's name and the rule.
var never = []struct{ file, rule, reason string }{
	{"rig__anthropic_empty_end_turn_raw_followup", "first_user", "ronda's first message is always the user's (and its tools stay declared)"},
	{"rig__anthropic_opus_4_8_messages_preserve_system_role_after_server_tool_result", "first_user", "ronda's first message is always the user's"},
	{"rig__copilot_", "item", "the recording replaced Copilot's opaque item ids; OpenAI's have prefixes, and ronda sends ids back as received"},
	{"braintrust-js__mistral-instrumentation_mistral-v1", "schema", "Mistral takes an empty schema; ronda's tools have object schemas"},
	{"perplexity_sonar_supports_json_schema_response_format", "output_schema", "Perplexity takes an output schema without a name; ronda gives one"},
	{"adk-go__agent_llmagent_TestDelegation_09", "content", "a result without a response; ronda always sends one"},
	{"rig__gemini_agent_run_stepping_hand_driven_parallel_tool_calls", "result_order", "results in another order than their calls; ronda keeps the order"},
}

func leftOut(name string, ref *fake.Refusal) string {
	for _, n := range never {
		if strings.Contains(name, n.file) && ref.Rule == n.rule {
			return n.rule + ": " + n.reason
		}
	}
	return ""
}

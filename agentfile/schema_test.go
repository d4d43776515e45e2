package agentfile

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ronda-go/ronda/model/scripted/yamldoc"
)

func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("agent.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("agent.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fits reports what the schema says of a YAML text.
func fits(t testing.TB, s *jsonschema.Schema, yaml []byte) error {
	t.Helper()
	n, err := yamldoc.ParseOne("", yaml)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(n.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

const base = "name: a\nmodel: x/y\n"

// accepted and refused are what the schema and Parse must agree on; each is added to base.
var accepted = []string{
	"", "instructions: hi", "limits: {}", "limits: {rounds: unlimited, tokens: 0, cost_usd: 1e-3, deadline: 0}",
	"limits: {rounds: 5.0}", "limits: {active_time: 1h30m}", "session: {limits: {tokens: 1}}", "session: {}", "on_limit: close",
	"hint_rounds: 0", "nudges: 0", "repairs: 0", "stall: {repeats: 0}", "parallel: none", "finish: true", "finish: false",
	"finish: {type: object}", "finish: false\noutput: {type: object}", "output: {}", "contract: {}",
	"contract: {facts: [a], schema: {}}", "contract: {check: {command: [./a, 1, true]}}", "price: {input: 0, output: 1.5}",
	"price: {input: 0, output: 1.5, cache_read: 1, cache_write: 2}", "allow_unpriced: true", "output_cap: 1", "context_window: 5",
	"model_retries: 0", "fallbacks: []", "fallbacks: [a/b, {model: c/d, base_url: 'http://x', classes: [fatal]}]",
	"compact: {}", "compact: {at: 1, keep: 1, model: a/b}", "compact: {script: [{text: a}], price: {input: 1, output: 2}}", "read_artifact: false",
	"contract: {judge: {model: a/b, instructions: i, calls: 2, price: {input: 1, output: 2}}}", "contract: {judge: {script: [{text: a}]}}", "timeouts: {connect: 0, call: 5s, first_byte: 1m, between_deltas: 1s}",
	"result_cap: 1", "approval_ttl: 1h", "grace: 1s", "closing_time: 500ms", "options: {}", "options: {a: [b, {c: null}]}",
	"base_url: http://localhost:1/v1", "version: v1", "tools: []", "policy: []", "policy: {}",
	"policy: [{verdict: deny}]", "policy: {default: ask, rules: [{tools: a*, labels: [b], destinations: c, agents: d, effects: once, args: {a: 1, /b/c: x}, verdict: allow, reason: r, override: true, name: n}]}",
	"tools: [{name: t, command: [./t]}]",
	"tools: [{name: t, command: [./t], env: {A: 1}, inherit_env: true, check: [./c], effect: read, label: '', approval: ask, on_reject: tell, timeout: 1s, retries: 0, calls_max: 0, poll: {}, result_cap: 9, grounded: [a], description: d, input: {}}]",
	"tools: [{name: t, http: {get: 'http://x/{id}', headers: {A: b}}}]",
	"tools: [{name: t, command: [./t]}, {name: u, http: {delete: 'http://x'}, requires: [t, {tool: t, same: [a]}]}]",
	"tools: [{mcp: {command: [npx], env: {A: b}}, tools: {x: {effect: read}}, only: [x]}]", "tools: [{mcp: {url: 'http://x', headers: {}}}]",
	"tools: [{mcp: {url: 'http://x'}, prefix: x_}]", "tools: [{openapi: {document: a, security: {key: '${K}'}}, prefix: x_}]",
	"tools: [{openapi: ./a.yaml, tools: {}}]", "tools: [{openapi: {document: a, base_url: 'http://x', headers: {A: b}}}]",
	"tools: [{agent: {}, name: c, description: d, input: {type: object}, approval: ask, handoff: false, limits: {rounds: 1}}]",
	"tools: [{name: c, agent: {name: d, model: a/b, tools: [{name: e, command: [./e]}]}}]",
	"script: [{text: a}]", "script: [{text: 5}]", "script: [{fail: {status: 529, retry_after: 2s, message: m}}]",
	"script: [{fail: {cut_after: 0}, text: a}, {fail: {error_event: o}}, {fail: {no_end: true}}, {fail: {timeout: true}}]",
	"script: [{malformed: call}, {raw_arguments: {a: '{'}}, {text: a, usage: none}, {text: a, finish: length, usage: {input: 5, output: 1, reasoning: 1}}]",
	"script: [{calls: [{a: {}}, {a: null}, {call: a}, {call: a, args: {b: c}, id: d}]}, {repeat: {text: a}}, {when: {tools: none, contains: a, system_contains: [b]}, text: a}]",
	"script: [{repeat: {text: a}, when: {tools: allowed}}]", "script: [{thinking: a}, {text: ''}]",
}

var refused = []string{
	"nam: b", "name: ''", "name: 5", "name: a b", "model: x", "model: ''", "model: /x", "instructions: 5", "instructions: [a]",
	"limits: 5", "limits: {round: 1}", "limits: {rounds: -1}", "limits: {rounds: 1.5}", "limits: {rounds: '5'}",
	"limits: {rounds: 99999999999}", "limits: {tokens: unlimited}", "limits: {cost_usd: -1}", "limits: {cost_usd: 1e12}",
	"limits: {active_time: 5}", "limits: {active_time: 5x}", "limits: {active_time: -5s}", "limits: {deadline: 5ns}", "limits:",
	"session: {rounds: 1}", "session: {limits: {rounds: 1}}", "session: {limits: {deadline: 1s}}", "on_limit: end",
	"hint_rounds: -1", "stall: 3", "stall: {}", "parallel: all", "finish: 5", "finish: yes", "finish: {}\noutput: {}",
	"finish: true\noutput: {}", "output: true", "contract: {fact: [a]}", "contract: {facts: a}", "contract: {facts: [5]}",
	"contract: {facts: ['']}", "contract: {check: true}", "contract: {check: {command: []}}", "contract: {check: {}}",
	"price: {}", "price: {input: 1}", "price: {input: -1, output: 1}", "allow_unpriced: 1", "output_cap: 0", "context_window: 0",
	"fallbacks: [a]", "fallbacks: [{classes: [fatal]}]", "fallbacks: [{model: a/b, classes: [error]}]", "compact: {at: 0}",
	"contract: {judge: {}}", "contract: {judge: {model: a/b, calls: 0}}", "contract: {judge: {model: a}}", "compact: {script: 5}", "read_artifact: 1",
	"compact: {at: 1.5}", "compact: {keep: 0}", "timeouts: {connect: 5}", "timeouts: {read: 5s}", "result_cap: 0", "grace: 0",
	"grace: 0s", "approval_ttl: 5", "options: []", "base_url: localhost", "base_url: ftp://x", "version: ''", "tools: {}",
	"tools: [look]", "tools: [{}]", "tools: [{name: t}]", "tools: [{command: [./t]}]", "tools: [{name: t, command: ./t}]",
	"tools: [{name: t, command: []}]", "tools: [{name: t, command: ['']}]", "tools: [{name: a b, command: [./t]}]", "tools: [{name: 5a, command: [./t]}]",
	"tools: [{name: t, command: [./t], effect: reed}]", "tools: [{name: t, command: [./t], check: true}]",
	"tools: [{name: t, command: [./t], input: {type: array}}]", "tools: [{name: t, command: [./t], input: 5}]",
	"tools: [{name: t, command: [./t], approval: yes}]", "tools: [{name: t, command: [./t], timeout: 0}]",
	"tools: [{name: t, command: [./t], retries: -1}]", "tools: [{name: t, command: [./t], poll: true}]",
	"tools: [{name: t, command: [./t], requires: [{same: [a]}]}]", "tools: [{name: t, command: [./t], requires: t}]",
	"tools: [{name: t, command: [./t], http: {get: 'http://x'}}]", "tools: [{name: t, http: {}}]", "tools: [{name: t, http: {get: 'http://x'}, check: 'http://x/'}]",
	"tools: [{name: t, http: {get: 'http://x', post: 'http://x'}}]", "tools: [{name: t, http: {post: x}}]", "tools: [{name: t, http: 'http://x'}]",
	"tools: [{name: t, http: {post: 'http://x'}, env: {A: b}}]", "tools: [{mcp: {}}]", "tools: [{mcp: {command: [a], url: 'http://x'}}]",
	"tools: [{mcp: {url: 'http://x', env: {}}}]", "tools: [{mcp: {command: [a], headers: {}}}]", "tools: [{mcp: {command: [a]}, name: n}]",
	"tools: [{mcp: {command: [a]}, prefix: 'a b'}]", "tools: [{mcp: {command: [a], security: {a: b}}}]", "tools: [{openapi: a, prefix: ''}]",
	"tools: [{mcp: {command: [a]}, tools: [x]}]", "tools: [{openapi: ''}]", "tools: [{openapi: {}}]", "tools: [{agent: {nam: b}}]",
	"tools: [{agent: 5}]", "tools: [{agent: {}, name: c, effect: read}]", "tools: [{agent: {}, name: c, limits: {rounds: -1}}]",
	"policy: deny", "policy: [{}]", "policy: [{verdict: no}]", "policy: [{verdict: ask, tool: x}]", "policy: {rule: []}",
	"policy: [{verdict: ask, args: {'': x}}]", "policy: [{verdict: ask, tools: ''}]",
	"script: []", "script: [{}]", "script: [text]", "script: [{txt: a}]", "script: [{usage: none}]", "script: [{text: a, usage: some}]",
	"script: [{text: a, finish: calls}]", "script: [{text: [a]}]", "script: [{calls: {a: {}}}]", "script: [{calls: [{a: {}, b: {}}]}]", "script: [{calls: [{a: 5}]}]",
	"script: [{calls: [{}]}]", "script: [{calls: [{args: {}, id: a}]}]", "script: [{calls: [{call: '', args: {}}]}]",
	"script: [{fail: {}}]", "script: [{fail: {status: 200}}]", "script: [{fail: {status: 500, timeout: true}}]", "script: [{fail: {timeout: false}}]",
	"script: [{fail: {timeout: true, retry_after: 1s}}]", "script: [{fail: {status: 500}, text: a}]", "script: [{fail: {status: 500}, finish: stop}]",
	"script: [{fail: {no_end: true}, finish: stop}]", "script: [{malformed: text}]", "script: [{malformed: call, calls: [{a: {}}]}]", "script: [{malformed: call, fail: {timeout: true}}]",
	"script: [{raw_arguments: {}}]", "script: [{repeat: {}}]", "script: [{repeat: {text: a}, text: b}]", "script: [{when: {}, text: a}]",
	"script: [{when: {tool: none}, text: a}]", "script: [{when: {tools: some}, text: a}]", "script: [{when: {tools: none}}]", "script: [{repeat: {when: {tools: none}, text: a}}]",
}

func TestSchemaAgrees(t *testing.T) {
	s := compileSchema(t)
	o := makesAll()
	o.Tool = nil
	check := func(extra string, want bool) {
		in := base + extra + "\n"
		for _, key := range []string{"name", "model"} {
			if strings.HasPrefix(extra, key+":") {
				in = strings.Replace(in, map[string]string{"name": "name: a\n", "model": "model: x/y\n"}[key], "", 1)
			}
		}
		_, _, perr := Parse([]byte(in), ".", o)
		serr := fits(t, s, []byte(in))
		if (perr == nil) != want {
			t.Errorf("%s\n  Parse: %v", extra, perr)
		}
		if (serr == nil) != want {
			t.Errorf("%s\n  schema: %v", extra, serr)
		}
	}
	for _, extra := range accepted {
		check(extra, true)
	}
	for _, extra := range refused {
		check(extra, false)
	}
	if _, _, err := Parse([]byte(full), ".", makesAll()); err != nil {
		t.Error(err)
	}
	if err := fits(t, s, []byte(full)); err != nil {
		t.Error(err)
	}
}

// What no schema can say is left to Parse.
func TestBeyondTheSchema(t *testing.T) {
	s := compileSchema(t)
	for _, extra := range []string{
		"instructions: ./missing.md", "output: {type: objet}", "contract: {called: [nothing]}", "script: ./missing.yaml",
		"tools: [{name: t, command: [./t]}, {name: t, command: [./t]}]", "finish: true\ntools: [{name: finish, command: [./t]}]",
		"script: [{repeat: {text: a}}, {text: b}]", "script: [{text: a, usage: {output: 1, reasoning: 2}}]",
		"policy: [{verdict: ask, name: a}, {verdict: deny, name: a}]", "tools: [{agent: {}, name: c}, {agent: {name: c}}]",
		"tools: [{name: t, command: [./t], env: {A: '${'}}]",
	} {
		if _, _, err := Parse([]byte(base+extra), ".", makesAll()); err == nil {
			t.Errorf("%s\n  Parse accepts it", extra)
		}
		if err := fits(t, s, []byte(base+extra)); err != nil {
			t.Errorf("%s\n  schema: %v", extra, err)
		}
	}
}

// FuzzParse looks for panics, and for files that Parse accepts and the schema does not.
func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	for _, extra := range append(accepted, refused...) {
		f.Add([]byte(base + extra))
	}
	s := compileSchema(f)
	o := makesAll()
	o.Tool = nil
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte("/")) && bytes.Contains(data, []byte("..")) {
			return // no reading about the disk
		}
		a, file, err := Parse(data, t.TempDir(), o)
		if err != nil {
			if len(err.Error()) == 0 {
				t.Fatal("an error without words")
			}
			return
		}
		if a.Name == "" || file.Digest == "" {
			t.Fatalf("%+v", a)
		}
		for _, sp := range file.Tools {
			if sp.Def.Input != nil && !json.Valid(sp.Def.Input) {
				t.Fatalf("input %s", sp.Def.Input)
			}
		}
		if err := fits(t, s, data); err != nil {
			t.Fatalf("Parse accepts what the schema does not: %v", err)
		}
	})
}

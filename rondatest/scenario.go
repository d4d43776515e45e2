// Package rondatest tests agents: it runs scenarios, which say in YAML how an agent is set up, what a scripted model answers, how
// tools behave, what people do and when, and what must be true at the end. docs/scenarios.md describes the language.
//
// In a Go test:
//
//	func TestAgent(t *testing.T) { rondatest.Scenarios(t, "scenarios/*.yaml") }
package rondatest

import (
	"encoding/json"
	"time"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/model/scripted/yamldoc"
)

// Scenario is one scenario as it was read. Nobody changes it after that; it may run any number of times.
type Scenario struct {
	Name  string
	About string
	File  string
	Line  int

	dir    string
	only   map[string][]string // dimension of the matrix: values
	raw    bool                // some arguments are no JSON: there is no such answer on gemini
	agent  *yamldoc.Node
	script *scripted.Script // nil: the agent file's own
	tools  map[string][]toolItem
	acts   []act
	expect expect
	always map[string]bool // invariants that are switched off are false
}

// toolItem is what a simulated tool does at one execution.
type toolItem struct {
	line       int
	text       string // what it returns
	facts      map[string]json.RawMessage
	class      loop.Class // an error
	message    string
	retryAfter time.Duration
	timeout    string // before_effect, after_effect
	panics     string
	takes      time.Duration
	echo       bool
	deaf       bool // goes on though it is told to end
}

// act is something that people or the world do.
type act struct {
	line      int
	kind      string // say, approve, reject, edit, always, resolve, extend, restart, wait, cancel, revoke, at, fails
	text      string // say
	supersede bool
	call, id  string
	args      *yamldoc.Node
	by        string
	message   string
	happened  bool
	limits    drive.Limits
	after     time.Duration // wait, at
	agent     *yamldoc.Node // restart: the agent from here on; nil: the scenario's
	inner     *act          // at, fails
	with      string        // fails
}

// expect is what must be true at the end. What is nil is not looked at.
type expect struct {
	line       int
	status     string
	stop       string
	limit      *string
	waiting    []string
	hasWaiting bool
	answer     *textExpect
	executions []countExpect
	counts     []countExpect
	usage      []countExpect
	cost       *loop.Pico
	facts      []yamldoc.Field
	pending    []pendingExpect
	hasPending bool
	requests   []requestExpect
	events     []string
	eventsLine int
	messages   *int64
}

type textExpect struct {
	line     int
	equals   *string
	contains []string
	excludes []string
}

type countExpect struct {
	name string
	n    int64
	line int
}

type pendingExpect struct {
	line     int
	call, id string
	args     *yamldoc.Node
	kind     string
}

type requestExpect struct {
	line       int
	n          int // 0: the last one
	choice     *string
	declared   *bool
	system     []string
	systemNot  []string
	results    []resultExpect
	user       *textExpect
	hasResults bool
}

type resultExpect struct {
	line     int
	call, id string
	contains []string
	excludes []string
	isError  *bool
}

// Invariants that hold in every cell unless a scenario switches them off.
const (
	wellFormed   = "well_formed"   // 1: each call of each prompt has exactly one result, in call order, in its place
	oneEnd       = "one_end"       // 4: exactly one stop, nothing after it
	folds        = "fold"          // 5: the journal folds to the state, whatever it was encoded with
	exactAccount = "exact_account" // 6: counts, usage and cost are the sums over the events of the tree
	prefixStable = "prefix_stable" // 8: the messages of a request begin with those of the request before it
)

var invariants = []string{wellFormed, oneEnd, folds, exactAccount, prefixStable}

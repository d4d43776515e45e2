package traffic

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Table counts what a test did with each recorded file and prints it at the end of the test (go test -v).
type Table struct {
	t      testing.TB
	title  string
	passed map[string]int
	failed map[string]int
	left   map[string][]string // reason: what
}

// NewTable makes a table that is printed when t ends.
func NewTable(t testing.TB, title string) *Table {
	tb := &Table{t: t, title: title, passed: map[string]int{}, failed: map[string]int{}, left: map[string][]string{}}
	t.Cleanup(tb.print)
	return tb
}

// Pass counts a check of what (a file, or file#exchange) that held.
func (tb *Table) Pass(what string) { tb.passed[what]++ }

// Fail counts a check that did not hold and fails the test.
func (tb *Table) Fail(what, format string, args ...any) {
	tb.t.Helper()
	tb.failed[what]++
	tb.t.Errorf("%s: %s", what, fmt.Sprintf(format, args...))
}

// LeftOut names what was not tried, and why: something that the project does not offer.
func (tb *Table) LeftOut(what, reason string) { tb.left[reason] = append(tb.left[reason], what) }

func (tb *Table) print() {
	for what := range tb.failed {
		delete(tb.passed, what)
	}
	n := 0
	for _, l := range tb.left {
		n += len(l)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: tried %d, passed %d, failed %d, left out %d\n", tb.title,
		len(tb.passed)+len(tb.failed), len(tb.passed), len(tb.failed), n)
	var reasons []string
	for r := range tb.left {
		reasons = append(reasons, r)
	}
	slices.Sort(reasons)
	for _, r := range reasons {
		fmt.Fprintf(&b, "  left out: %s\n", r)
		for _, what := range tb.left[r] {
			fmt.Fprintf(&b, "    %s\n", what)
		}
	}
	tb.t.Log(b.String())
}

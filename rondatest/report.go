package rondatest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ronda-go/ronda/loop"
)

// Report is what came of running scenarios.
type Report struct {
	Results []Result `json:"results"`
	Passed  int      `json:"passed"`
	Failed  int      `json:"failed"`
	Left    []string `json:"left_out,omitempty"` // what was asked for and does not exist in this build: not counted as passed
}

// Result is one scenario in one cell.
type Result struct {
	Scenario string    `json:"scenario"`
	About    string    `json:"about,omitempty"`
	File     string    `json:"file"`
	Line     int       `json:"line"`
	Cell     Cell      `json:"cell"`
	Passed   bool      `json:"passed"`
	Kills    int       `json:"kills,omitempty"`  // crash: everywhere: how often the process was killed
	Killed   string    `json:"killed,omitempty"` // where it died in the performance that failed
	Failures []Failure `json:"failures,omitempty"`
	Journal  string    `json:"journal,omitempty"` // of a failure, for people
	Seconds  float64   `json:"seconds"`
}

// Failure is something that did not happen as expected.
type Failure struct {
	File string `json:"file"`
	Line int    `json:"line"` // of the expectation or act
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

func (r *Report) add(x Result) {
	r.Results = append(r.Results, x)
	if x.Passed {
		r.Passed++
	} else {
		r.Failed++
	}
}

// OK says that nothing failed, and that not everything asked for was left out.
func (r Report) OK() bool { return r.Failed == 0 && (len(r.Results) > 0 || len(r.Left) == 0) }

// Add takes the results of another report.
func (r *Report) Add(other Report) {
	for _, x := range other.Results {
		r.add(x)
	}
	for _, l := range other.Left {
		if !strings.Contains("\n"+strings.Join(r.Left, "\n")+"\n", "\n"+l+"\n") {
			r.Left = append(r.Left, l)
		}
	}
}

func (f Failure) String() string {
	return fmt.Sprintf("%s:%d: %s\n  want %s\n  got  %s", f.File, f.Line, f.What, indented(f.Want), indented(f.Got))
}

func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n       ") }

// String is the line of the result, with what failed below it.
func (r Result) String() string {
	var b strings.Builder
	word := "ok  "
	if !r.Passed {
		word = "FAIL"
	}
	fmt.Fprintf(&b, "%s %s [%s]", word, r.Scenario, r.Cell)
	if r.Kills > 0 {
		fmt.Fprintf(&b, " %d kills", r.Kills)
	}
	fmt.Fprintf(&b, " %.3fs", r.Seconds)
	if r.Passed {
		return b.String()
	}
	if r.Killed != "" {
		fmt.Fprintf(&b, "\n  killed at %s", r.Killed)
	}
	for _, f := range r.Failures {
		b.WriteString("\n  " + strings.ReplaceAll(f.String(), "\n", "\n  "))
	}
	if r.Journal != "" {
		b.WriteString("\n  the journal:\n    " + strings.ReplaceAll(strings.TrimRight(r.Journal, "\n"), "\n", "\n    "))
	}
	return b.String()
}

// Summary is the last line of the text output, with a line for what was left out before it.
func (r Report) Summary() string {
	s := ""
	for _, l := range r.Left {
		s += "left out: " + l + " does not exist in this build\n"
	}
	return s + fmt.Sprintf("%d passed, %d failed", r.Passed, r.Failed)
}

// Text writes a line for each result, what failed, and the summary.
func (r Report) Text(w io.Writer) error {
	for _, x := range r.Results {
		if _, err := fmt.Fprintln(w, x); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, r.Summary())
	return err
}

// JSON writes the report as one JSON object.
func (r Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    string        `xml:"time,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes the report in the XML that continuous integration reads: a suite for each file, a case for each scenario and cell.
func (r Report) JUnit(w io.Writer) error {
	all := junitSuites{Tests: len(r.Results), Failures: r.Failed}
	index := map[string]int{}
	total := map[string]float64{}
	for _, x := range r.Results {
		i, ok := index[x.File]
		if !ok {
			i = len(all.Suites)
			index[x.File] = i
			all.Suites = append(all.Suites, junitSuite{Name: x.File})
		}
		s := &all.Suites[i]
		c := junitCase{Name: x.Scenario + " [" + x.Cell.String() + "]", Class: x.File, Time: seconds(x.Seconds), File: x.File, Line: x.Line}
		if !x.Passed {
			s.Failures++
			c.Failure = &junitFailure{Message: x.Failures[0].What, Text: x.String()}
		}
		s.Tests++
		total[x.File] += x.Seconds
		s.Cases = append(s.Cases, c)
		s.Time = seconds(total[x.File])
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

// shownEvents is how many events of a run a failure shows.
const shownEvents = 60

// journalText shows the runs of the session for people: a line for each event.
func (w *world) journalText() string {
	var b strings.Builder
	for _, run := range w.runs {
		w.journalOf(&b, run, "")
	}
	if b.Len() == 0 {
		return "(no run was started)"
	}
	return b.String()
}

func (w *world) journalOf(b *strings.Builder, run, indent string) {
	fmt.Fprintf(b, "%s%s\n", indent, run)
	var lines []string
	var children []string
	err := w.events(run, func(ev loop.Event) error {
		body, _ := json.Marshal(ev.Body)
		text := string(body)
		if ev.Kind() == "RunStarted" {
			started := ev.Body.(loop.RunStarted)
			input, _ := json.Marshal(started.Input)
			text = string(input)
		}
		at := time.UnixMicro(int64(ev.Time)).Sub(start)
		if len(text) > 220 {
			text = strings.ToValidUTF8(text[:220], "") + "…"
		}
		lines = append(lines, fmt.Sprintf("%3d %8v %-16s %s", ev.Seq, at, ev.Kind(), text))
		if c, ok := ev.Body.(loop.ChildStarted); ok {
			children = append(children, c.Run)
		}
		return nil
	})
	if err != nil {
		lines = append(lines, "(it cannot be read further: "+err.Error()+")")
	}
	if n := len(lines) - shownEvents; n > 0 {
		lines = append([]string{fmt.Sprintf("(%d earlier events)", n)}, lines[n:]...)
	}
	for _, l := range lines {
		fmt.Fprintf(b, "%s  %s\n", indent, l)
	}
	for _, c := range children {
		w.journalOf(b, c, indent+"  ")
	}
}

package support

import (
	"bytes"
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ronda-go/ronda/model/scripted"
)

//go:embed scripts/*.yaml
var scriptFiles embed.FS

// ScriptInfo says what a script is about.
type ScriptInfo struct {
	Case  int64
	Name  string // support-4812: what the scripted model is called
	About string
}

// Scripts lists the cases that have a script, by number.
func Scripts() []ScriptInfo {
	entries, err := scriptFiles.ReadDir("scripts")
	if err != nil {
		return nil
	}
	var list []ScriptInfo
	for _, e := range entries {
		number, err := strconv.ParseInt(strings.TrimSuffix(e.Name(), ".yaml"), 10, 64)
		if err != nil {
			continue
		}
		b, _ := scriptFiles.ReadFile("scripts/" + e.Name())
		first, _, _ := bytes.Cut(b, []byte("\n"))
		list = append(list, ScriptInfo{Case: number, Name: fmt.Sprintf("support-%d", number),
			About: strings.TrimSpace(strings.TrimPrefix(string(first), "# about:"))})
	}
	return list
}

var numberIn = regexp.MustCompile(`[0-9]+`)

// Script picks the script for an input by the number of the case in it: the first number that has one. name is what to call
// the scripted model (scripted.Options.Name), so that whoever sees its answers sees that they were written beforehand. Where
// there is no script, the error lists the cases that have one.
func Script(input string) (s *scripted.Script, name string, err error) {
	for _, n := range numberIn.FindAllString(input, -1) {
		for _, info := range Scripts() {
			if n != strconv.FormatInt(info.Case, 10) {
				continue
			}
			file := "scripts/" + n + ".yaml"
			b, err := scriptFiles.ReadFile(file)
			if err != nil {
				return nil, "", fmt.Errorf("support: %w", err)
			}
			s, err := scripted.ParseFile(file, b)
			if err != nil {
				return nil, "", fmt.Errorf("support: %w", err)
			}
			return s, info.Name, nil
		}
	}
	return nil, "", noScript(input)
}

func noScript(input string) error {
	var b strings.Builder
	if numbers := numberIn.FindAllString(input, -1); len(numbers) > 0 {
		fmt.Fprintf(&b, "support: no script answers case %s.", strings.Join(numbers, ", "))
	} else {
		b.WriteString("support: the input names no case, and scripts are chosen by the number of the case.")
	}
	b.WriteString(" Scripted cases are:")
	for _, info := range Scripts() {
		fmt.Fprintf(&b, "\n  %d  %s", info.Case, info.About)
	}
	b.WriteString("\nAsk for one of them, such as \"Answer case 4812\", or use a real model for any other case.")
	return fmt.Errorf("%s", b.String())
}

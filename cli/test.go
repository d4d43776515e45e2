package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ronda-go/ronda/rondatest"
)

func (c *command) testCommand() *cobra.Command {
	var o rondatest.Options
	var junit, wire, stream, store string
	var quiet bool
	cmd := &cobra.Command{Use: "test FILE…", Short: "Run scenarios", Args: cobra.MinimumNArgs(1),
		Long: "Each FILE is a file of scenarios or a folder of such files. A scenario runs in every cell of the matrix that the flags name (docs/scenarios.md).",
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := scenarioFiles(args)
			if err != nil {
				return err
			}
			o.Wire, o.Stream, o.Store = words(wire), words(stream), words(store)
			if !c.json {
				o.Watch = func(r rondatest.Result) {
					if !quiet || !r.Passed {
						fmt.Fprintln(c.Out, strings.TrimRight(r.String(), "\n"))
					}
				}
			}
			var report rondatest.Report
			var broken []error
			for _, f := range files {
				r, err := rondatest.RunFile(cmd.Context(), f, o)
				if err != nil {
					broken = append(broken, err)
					continue
				}
				report.Add(r)
			}
			if err := errors.Join(broken...); err != nil {
				return usagef("%w", err)
			}
			return c.scenarioReport(report, junit)
		}}
	cmd.Flags().StringVar(&wire, "wire", "", "direct, anthropic, openai, openaichat, gemini (default: all)")
	cmd.Flags().StringVar(&stream, "stream", "", "on, off (default: both)")
	cmd.Flags().StringVar(&o.Crash, "crash", "none", "none or everywhere")
	cmd.Flags().StringVar(&store, "store", "memory", "memory, sqlite")
	cmd.Flags().StringVar(&o.Engine, "engine", "local", "local")
	cmd.Flags().StringVar(&o.Run, "run", "", "only scenarios whose name contains this")
	cmd.Flags().StringVar(&junit, "junit", "", "also write a JUnit report to this file")
	cmd.Flags().BoolVar(&c.json, "json", false, "print one JSON object")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only what failed")
	return cmd
}

func (c *command) scenarioReport(report rondatest.Report, junit string) error {
	if junit != "" {
		f, err := os.Create(junit)
		if err != nil {
			return err
		}
		if err := errors.Join(report.JUnit(f), f.Close()); err != nil {
			return err
		}
	}
	if c.json {
		if err := report.JSON(c.Out); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(c.Out, report.Summary())
	}
	if !report.OK() {
		return &exitError{code: ExitFailed}
	}
	return nil
}

func words(s string) []string {
	if s == "" || s == "all" {
		return nil
	}
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == '|' })
}

// scenarioFiles expands folders.
func scenarioFiles(args []string) ([]string, error) {
	var files []string
	for _, a := range args {
		info, err := os.Stat(a)
		if err != nil {
			return nil, usagef("test: %w. Name a YAML file of scenarios or a folder", err)
		}
		if !info.IsDir() {
			files = append(files, a)
			continue
		}
		n := len(files)
		err = filepath.WalkDir(a, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml")) {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(files) == n {
			return nil, usagef("test: %s holds no .yaml files", a)
		}
	}
	return files, nil
}

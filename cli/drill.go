package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ronda-go/ronda/agentfile"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/model/scripted"
	"github.com/ronda-go/ronda/rondatest/drill"
)

func (c *command) drillCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "drill AGENT", Short: "Run the five exits on an agent with scripted answers and pretended tools", Args: cobra.ExactArgs(1),
		Long: "Completion, limit, approval pause, denied action and tool failure: each must leave a clear state, and resume must keep the work and the allowance.\n" +
			"No model is called and none of the agent's tools runs: each is replaced by one with the same definition that only pretends.",
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.drilled(cmd, args[0])
			if err != nil {
				return err
			}
			exits, err := drill.Run(cmd.Context(), a)
			if err != nil {
				return err
			}
			failed := 0
			for _, x := range exits {
				if !x.Passed {
					failed++
				}
			}
			if c.json {
				if err := c.printJSON(map[string]any{"agent": a.Name, "exits": exits, "passed": failed == 0}); err != nil {
					return err
				}
			} else {
				for _, x := range exits {
					mark := "ok  "
					switch {
					case !x.Passed:
						mark = "FAIL"
					case x.Skipped != "":
						mark = "skip"
					}
					fmt.Fprintf(c.Out, "%s %-15s %s%s\n", mark, x.Name, x.State, suffix(": ", x.Skipped))
					for _, f := range x.Faults {
						fmt.Fprintf(c.Out, "     want %s; %s\n", x.Want, f)
					}
				}
			}
			if failed > 0 {
				return &exitError{code: ExitFailed}
			}
			return nil
		}}
	cmd.Flags().BoolVar(&c.json, "json", false, "print one JSON object")
	return cmd
}

// drilled makes the agent that is to be drilled. Its model is never called, so no key is needed: an empty script stands in for it.
func (c *command) drilled(cmd *cobra.Command, name string) (*drive.Agent, error) {
	script, err := scripted.Parse([]byte("- {text: \"A drill brings its own answers.\"}\n"))
	if err != nil {
		return nil, err
	}
	for _, b := range c.Builtins {
		if b.Name == name {
			return c.builtin(cmd.Context(), b, origin{Agent: name}, script)
		}
	}
	for _, a := range c.Agents {
		if a.Name == name {
			return (*drive.Agent)(a), nil
		}
	}
	a, _, err := agentfile.Load(name, agentfile.Options{NoModel: true, Scripted: true, Script: script, MCP: c.servers.MCP, Note: c.noted})
	if err != nil {
		return nil, usagef("%w", err)
	}
	return a, nil
}

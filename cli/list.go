package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ronda-go/ronda/agentfile"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/recording"
)

func (c *command) runsCommand() *cobra.Command {
	var q journal.Query
	var stop string
	cmd := &cobra.Command{Use: "runs", Short: "List runs, newest first", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, args []string) error {
		h, err := c.open()
		if err != nil {
			return err
		}
		q.Stop = loop.Reason(stop)
		page, err := h.Store().List(cmd.Context(), q)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(rowsJSON(page))
		}
		if len(page.Runs) == 0 {
			fmt.Fprintf(c.Out, "no runs. %s run AGENT INPUT starts one\n", c.Name)
			return nil
		}
		w := tabwriter.NewWriter(c.Out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "RUN\tAGENT\tSTATUS\tSTARTED\tTASK")
		for _, r := range page.Runs {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.Agent, rowStatus(r), time.UnixMicro(int64(r.Created)).Format("2006-01-02 15:04"), short(r.Title, 50))
		}
		_ = w.Flush()
		if page.Next != "" {
			fmt.Fprintf(c.Out, "more: --cursor %s\n", page.Next)
		}
		return nil
	}}
	cmd.Flags().StringVar(&q.Status, "status", "", "running, waiting or stopped")
	cmd.Flags().StringVar(&q.Agent, "agent", "", "of this agent")
	cmd.Flags().StringVar(&q.Session, "session", "", "of this session")
	cmd.Flags().StringVar(&stop, "stop", "", "stopped for this reason")
	cmd.Flags().IntVar(&q.Limit, "limit", 50, "how many at most")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "go on after an earlier page")
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	return cmd
}

func rowStatus(r journal.Run) string {
	switch r.Status {
	case loop.StatusWaiting:
		return "waiting: " + strings.Join(r.Waiting, ", ")
	case loop.StatusStopped:
		s := string(r.Stop)
		if r.Limit != "" {
			s += " (" + r.Limit + ")"
		}
		return s
	}
	return r.Status
}

type rowJSON struct {
	Run     string          `json:"run"`
	Session string          `json:"session,omitempty"`
	Parent  string          `json:"parent,omitempty"`
	Agent   string          `json:"agent"`
	Model   string          `json:"model"`
	Status  string          `json:"status"`
	Waiting []string        `json:"waiting,omitempty"`
	Stop    string          `json:"stop,omitempty"`
	Limit   string          `json:"limit,omitempty"`
	Created string          `json:"created"`
	Title   string          `json:"title,omitempty"`
	Summary json.RawMessage `json:"summary,omitempty"`
}

func rowsJSON(page journal.Page) any {
	rows := make([]rowJSON, len(page.Runs))
	for i, r := range page.Runs {
		rows[i] = rowJSON{r.ID, r.Session, r.Parent, r.Agent, r.Model, r.Status, r.Waiting, string(r.Stop), r.Limit, clock(r.Created), r.Title, r.Summary}
	}
	return struct {
		Runs []rowJSON `json:"runs"`
		Next string    `json:"next,omitempty"`
	}{rows, page.Next}
}

func (c *command) eventsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{Use: "events RUN", Short: "Print the journal of a run, readable or as JSON lines", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		h, err := c.open()
		if err != nil {
			return err
		}
		id, err := c.find(cmd.Context(), h, args[0])
		if err != nil {
			return err
		}
		var start loop.Micros
		for it, err := range h.Events(cmd.Context(), id, 0, follow) {
			if err != nil {
				if cmd.Context().Err() != nil {
					return nil
				}
				return err
			}
			if it.Delta != nil {
				continue
			}
			line, err := loop.Encode(it.Event)
			if err != nil {
				return err
			}
			if !c.json {
				if start == 0 {
					start = it.Event.Time
				}
				line = readable(it.Event, start)
			}
			if _, err := fmt.Fprintf(c.Out, "%s\n", line); err != nil {
				return err
			}
		}
		return nil
	}}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens next")
	cmd.Flags().BoolVar(&c.json, "json", false, "print the events as they are stored")
	return cmd
}

// readable is an event in one line: its number, its time since the start, its kind and its members.
func readable(ev loop.Event, start loop.Micros) []byte {
	body, err := json.Marshal(ev.Body)
	if err != nil {
		body = []byte("{}")
	}
	at := time.Duration(ev.Time-start) * time.Microsecond
	return fmt.Appendf(nil, "%4d %9s %-16s %s", ev.Seq, at.Round(time.Millisecond), ev.Kind(), short(string(body), 300))
}

func (c *command) schemaCommand() *cobra.Command {
	return &cobra.Command{Use: "schema agent|recording|openapi", Short: "Print a JSON Schema, or the server's OpenAPI document", Args: cobra.ExactArgs(1), ValidArgs: []string{"agent", "recording", "openapi"}, RunE: func(cmd *cobra.Command, args []string) error {
		switch args[0] {
		case "agent":
			_, err := c.Out.Write(agentfile.Schema())
			return err
		case "recording":
			_, err := c.Out.Write(recording.Schema())
			return err
		case "openapi":
			doc, err := c.openAPI()
			if err != nil {
				return err
			}
			_, err = c.Out.Write(append(doc, '\n'))
			return err
		}
		return usagef("schema %s: there is no such schema. Use agent, recording or openapi", args[0])
	}}
}

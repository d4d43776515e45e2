package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ronda-go/ronda/console"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/server"
)

func (c *command) serveCommand() *cobra.Command {
	var addr string
	var files []string
	var scriptedToo, demo bool
	cmd := &cobra.Command{Use: "serve [AGENT…]", Short: "HTTP API, event streams and console on 127.0.0.1:7117",
		Long: "Serves the agents that this program knows, and those given: files or folders with agent.yaml.\n" +
			"On a loopback address nobody needs a token; any other address needs tokens (ronda token create).\n" +
			"--demo shows all of it without a key: the examples with scripted responses, their runs, an approval that waits. Nothing of it is kept.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			var pace time.Duration
			if demo {
				scriptedToo, pace = true, demoPace
				if err := c.demoStore(); err != nil {
					return err
				}
			}
			h, err := c.open()
			if err != nil {
				return err
			}
			files = args
			agents, origins, err := c.served(files, origin{Scripted: scriptedToo, Pace: pace})
			if err != nil {
				return err
			}
			if demo {
				if err := c.demoRuns(ctx, h.Host); err != nil {
					return err
				}
			}
			srv, err := server.New(ctx, server.Options{Host: h.Host, Agents: agents, Addr: addr, Version: c.Version, Log: c.logger(), Console: console.Handler(),
				Started: func(ctx context.Context, run, agent, input string) error {
					o := origins[agent]
					o.Input = input
					return c.keepOrigin(ctx, h.Store(), run, o)
				}})
			if errors.Is(err, server.ErrNeedsTokens) {
				return usagef("%w", err)
			}
			if err != nil {
				return err
			}
			ln, err := net.Listen("tcp", addr)
			if err != nil {
				srv.Close()
				return fmt.Errorf("listen on %s: %w. Is another ronda serving there? --addr names another address", addr, err)
			}
			fmt.Fprintf(c.Err, "ronda serves on http://%s\n", ln.Addr())
			return srv.Serve(ctx, ln)
		}}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:7117", "address to listen on")
	cmd.Flags().BoolVar(&scriptedToo, "scripted", false, "serve agents with their scripted responses")
	cmd.Flags().BoolVar(&demo, "demo", false, "serve the examples with scripted responses and some runs of them, from a store that is gone at the end")
	return cmd
}

// served lists the agents that a server offers; each is made anew for a run, as its input may choose its script.
func (c *command) served(files []string, as origin) ([]server.Agent, map[string]origin, error) {
	var out []server.Agent
	origins := map[string]origin{}
	add := func(name, about, model string, o origin) {
		origins[name] = o
		out = append(out, server.Agent{Name: name, About: about, Model: model, Scripted: o.Scripted, Make: func(ctx context.Context, input string) (*drive.Agent, error) {
			o := o
			o.Input = input
			return c.make(ctx, o)
		}})
	}
	for _, a := range c.Agents {
		add(a.Name, "", a.Model.Info().Ref(), origin{Agent: a.Name})
	}
	for _, b := range c.Builtins {
		model := b.Model
		if as.Scripted {
			model = "scripted"
		}
		o := as
		o.Agent = b.Name
		add(b.Name, b.About, model, o)
	}
	for _, f := range files {
		o := as
		o.Agent = c.absolute(f)
		a, err := c.make(context.Background(), o)
		if err != nil {
			return nil, nil, err
		}
		add(a.Name, "", a.Model.Info().Ref(), o)
	}
	return out, origins, nil
}

func (c *command) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Make, list and revoke tokens of the server"}
	var role, name string
	var ttl time.Duration
	create := &cobra.Command{Use: "create --role viewer|operator|approver|admin", Short: "Make a token; it is shown once", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, args []string) error {
		h, err := c.open()
		if err != nil {
			return err
		}
		if name == "" {
			name = c.by
		}
		secret, err := server.CreateToken(cmd.Context(), h.Store(), name, server.Role(role), ttl)
		if err != nil {
			return usagef("%w", err)
		}
		fmt.Fprintln(c.Out, secret)
		fmt.Fprintf(c.Err, "token of %s with the role %s: it is not shown again\n", name, role)
		return nil
	}}
	create.Flags().StringVar(&role, "role", "", "viewer, operator, approver or admin")
	create.Flags().StringVar(&name, "name", "", "who holds it: on record in what they decide (default: --by)")
	create.Flags().DurationVar(&ttl, "for", 0, "how long it is valid (default: until it is revoked)")
	_ = create.MarkFlagRequired("role")
	list := &cobra.Command{Use: "list", Short: "List tokens", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, args []string) error {
		h, err := c.open()
		if err != nil {
			return err
		}
		tokens, err := server.Tokens(cmd.Context(), h.Store())
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.Out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tROLE\tCREATED\tEXPIRES")
		for _, t := range tokens {
			expires := "never"
			if !t.Expires.IsZero() {
				expires = t.Expires.Format(time.RFC3339)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, t.Role, t.Created.Format(time.RFC3339), expires)
		}
		return w.Flush()
	}}
	revoke := &cobra.Command{Use: "revoke NAME", Short: "End a token", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		h, err := c.open()
		if err != nil {
			return err
		}
		return server.RevokeToken(cmd.Context(), h.Store(), args[0])
	}}
	cmd.AddCommand(create, list, revoke)
	return cmd
}

// openAPI is the document that describes the server.
func (c *command) openAPI() ([]byte, error) { return server.OpenAPI(c.Version) }

// Command cases is an MCP server on its standard streams: the support assistant's tools but for the policies, on a database
// whose path is its one argument (the example's own place if there is none).
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ronda-go/ronda/examples/support"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
	"github.com/ronda-go/ronda/tool/mcp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, strings.Join(os.Args[1:], " ")); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "cases:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, path string) error {
	db, err := support.Open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	s := sdk.NewServer(&sdk.Implementation{Name: "alameda-cases", Version: "1"}, nil)
	for _, t := range support.Tools(db) {
		if t.Def().Name != "find_policy" {
			s.AddTool(declare(t.Def()), handle(t))
		}
	}
	return s.Run(ctx, &sdk.StdioTransport{})
}

func declare(d tool.Def) *sdk.Tool {
	adds := false
	a := &sdk.ToolAnnotations{ReadOnlyHint: d.Effect == loop.Read, IdempotentHint: d.Effect == loop.Idempotent}
	if d.Effect == loop.Idempotent {
		a.DestructiveHint = &adds
	}
	return &sdk.Tool{Name: d.Name, Description: d.Description, InputSchema: d.Input, Annotations: a}
}

// handle runs a tool under the idempotency key that the call brings. Facts go beside the result, as ronda reads them.
func handle(t tool.Tool) sdk.ToolHandler {
	return func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		key, _ := r.Params.Meta[mcp.KeyMeta].(string)
		res, err := t.Run(ctx, tool.Call{Run: "mcp", Name: t.Def().Name, Key: key, Attempt: 1, Args: r.Params.Arguments})
		if err != nil {
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}}, nil
		}
		text := res.Text
		if len(res.Facts) > 0 {
			b, err := json.Marshal(map[string]any{"result": json.RawMessage(res.Text), "facts": res.Facts})
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	}
}

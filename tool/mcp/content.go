package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// maxMessage bounds the message of an error.
const maxMessage = 16 << 10

// result makes a result of a server's answer: text, then media and further text in the server's order. A result that is only
// structured is its JSON. A single text of the form {"result", "facts"} is split as that of other tools is.
func (r *remote) result(ss *session, answer *sdk.CallToolResult) (tool.Result, error) {
	if answer.NeedsInput() {
		return tool.Result{}, &tool.Error{Class: loop.ClassError, Message: "the MCP server asks for further input to this call, which is not given"}
	}
	c := collector{left: r.server.spec.MaxResult, hide: ss.hide}
	for _, part := range answer.Content {
		c.add(part)
	}
	structured := structuredJSON(answer.StructuredContent)
	if structured != nil && !c.says(structured) {
		c.text(string(structured))
	}
	if answer.IsError {
		text := strings.TrimSpace(c.all())
		if text == "" {
			text = "the MCP server says that the call failed, and not why"
		}
		return tool.Result{}, &tool.Error{Class: loop.ClassError, Message: shorten(text, maxMessage)}
	}
	if r.output != nil && structured != nil {
		if err := r.output.Validate(structured); err != nil {
			c.text("[The server's result does not fit what it declares: " + shorten(err.Error(), 500) + "]")
		}
	}
	if c.cut {
		c.say("[The result was cut: more than the " + fmt.Sprint(r.server.spec.MaxResult) + " bytes that are kept.]")
	}
	res := c.res
	if len(res.More) == 0 && c.texts == 1 {
		split := tool.ParseOutput([]byte(res.Text))
		res.Text, res.Facts = split.Text, split.Facts
	}
	return res, nil
}

// structuredJSON is the structured part of an answer; nil where there is none.
func structuredJSON(v any) []byte {
	if v == nil {
		return nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return nil
	}
	return bytes.TrimRight(buf.Bytes(), "\n")
}

// collector puts parts of an answer together, up to a number of bytes.
type collector struct {
	res   tool.Result
	hide  *secrets
	left  int
	texts int
	cut   bool
}

func (c *collector) add(part sdk.Content) {
	switch p := part.(type) {
	case *sdk.TextContent:
		c.text(p.Text)
	case *sdk.ImageContent:
		c.media(p.MIMEType, "", p.Data)
	case *sdk.AudioContent:
		c.media(p.MIMEType, "", p.Data)
	case *sdk.ResourceLink:
		line := "[Resource " + strings.TrimSpace(p.Name+" "+p.URI)
		if p.MIMEType != "" {
			line += ", " + p.MIMEType
		}
		if p.Description != "" {
			line += ": " + p.Description
		}
		c.text(line + "]")
	case *sdk.EmbeddedResource:
		switch {
		case p.Resource == nil:
		case len(p.Resource.Blob) > 0:
			c.media(p.Resource.MIMEType, name(p.Resource.URI), p.Resource.Blob)
		default:
			c.text("[Resource " + p.Resource.URI + "]\n" + p.Resource.Text)
		}
	default:
		c.text(fmt.Sprintf("[A part of the result is of a kind that is not known: %T]", part))
	}
}

// name is the last part of a resource's address.
func name(uri string) string {
	if n := path.Base(uri); n != "." && n != "/" {
		return shorten(valid(n), 100)
	}
	return ""
}

func (c *collector) text(s string) {
	s = c.hide.text(valid(s))
	if len(s) > c.left {
		s, c.cut = strings.ToValidUTF8(s[:max(c.left, 0)], ""), true
		if s == "" {
			return
		}
	}
	c.left -= len(s)
	c.texts++
	c.say(s)
}

// say adds a text without counting it.
func (c *collector) say(s string) {
	if n := len(c.res.More); n > 0 {
		if last := &c.res.More[n-1]; last.Kind == loop.BlockText {
			last.Text += "\n" + s
			return
		}
		c.res.More = append(c.res.More, loop.Block{Kind: loop.BlockText, Text: s})
		return
	}
	if c.res.Text != "" {
		s = c.res.Text + "\n" + s
	}
	c.res.Text = s
}

func (c *collector) media(mime, name string, data []byte) {
	if mime == "" {
		mime = "application/octet-stream"
	}
	if len(data) > c.left {
		c.say(fmt.Sprintf("[%s of %d bytes is left out: the result is too large.]", shorten(valid(mime), 100), len(data)))
		return
	}
	c.left -= len(data)
	c.res.More = append(c.res.More, loop.Block{Kind: loop.BlockMedia, Media: &loop.Media{MIME: shorten(valid(mime), 100), Name: name, Data: data}})
}

// says reports whether one of the texts is the same JSON already.
func (c *collector) says(structured []byte) bool {
	want, err := loop.Canonical(structured)
	if err != nil {
		return false
	}
	same := func(s string) bool {
		got, err := loop.Canonical([]byte(s))
		return err == nil && bytes.Equal(got, want)
	}
	if same(c.res.Text) {
		return true
	}
	for _, b := range c.res.More {
		if b.Kind == loop.BlockText && same(b.Text) {
			return true
		}
	}
	return false
}

// all is every text of the answer.
func (c *collector) all() string {
	s := c.res.Text
	for _, b := range c.res.More {
		if b.Kind == loop.BlockText {
			s += "\n" + b.Text
		}
	}
	return s
}

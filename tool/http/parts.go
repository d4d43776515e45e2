package http

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// arranged makes a request whose parts the tool's own rule fills.
func (r *request) arranged(ctx context.Context, u *url.URL, args map[string]json.RawMessage) (*nethttp.Request, error) {
	parts, err := r.arrange(args)
	if err != nil {
		return nil, err
	}
	if parts.Query != "" && u.RawQuery != "" {
		u.RawQuery += "&" + parts.Query
	} else if parts.Query != "" {
		u.RawQuery = parts.Query
	}
	var body io.Reader
	if parts.Body != nil {
		body = bytes.NewReader(parts.Body)
	}
	req, err := nethttp.NewRequestWithContext(ctx, r.method, u.String(), body)
	if err != nil {
		return nil, err
	}
	if !r.reads {
		req.GetBody = nil // so that nobody below sends it a second time
	}
	if parts.Body != nil {
		if parts.Type == "" {
			parts.Type = "application/json"
		}
		req.Header.Set("Content-Type", parts.Type)
	}
	for name, v := range parts.Headers {
		if v = strings.TrimSpace(v); !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v) {
			return nil, fmt.Errorf("%s: the value holds characters that a header cannot", name)
		}
		req.Header.Set(name, v)
	}
	return req, nil
}

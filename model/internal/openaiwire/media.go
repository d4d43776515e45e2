package openaiwire

import (
	"encoding/base64"
	"strings"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model/wire"
)

// Address appends, as a JSON string, where the provider finds a medium: its URL, else its bytes as a data URL. ok is false where
// there are neither (the artifact was not loaded).
func Address(dst []byte, m *loop.Media) (out []byte, ok bool) {
	switch {
	case m == nil:
		return dst, false
	case m.URL != "":
		return wire.AppendString(dst, m.URL), true
	case len(m.Data) == 0:
		return dst, false
	}
	dst = append(dst, `"data:`...)
	dst = append(dst, wire.AppendString(nil, m.MIME)[1:]...)
	dst = append(dst[:len(dst)-1], ";base64,"...)
	dst = base64.StdEncoding.AppendEncode(dst, m.Data)
	return append(dst, '"'), true
}

// FromDataURL reads the bytes and type of a data URL.
func FromDataURL(s string) (m *loop.Media, ok bool) {
	head, data, ok := strings.Cut(strings.TrimPrefix(s, "data:"), ",")
	if !ok || !strings.HasPrefix(s, "data:") {
		return nil, false
	}
	mime, isBase64 := strings.CutSuffix(head, ";base64")
	if !isBase64 {
		return nil, false
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, false
	}
	return &loop.Media{MIME: mime, Data: b}, true
}

// IsImage reports whether a medium is to be sent as an image.
func IsImage(m *loop.Media) bool { return strings.HasPrefix(m.MIME, "image/") }

// Missing is the text that stands for a medium whose bytes are not there.
func Missing(m *loop.Media) string {
	name := "a file"
	if m != nil && m.Name != "" {
		name = m.Name
	} else if m != nil && m.MIME != "" {
		name = m.MIME
	}
	return "[" + name + " is not available]"
}

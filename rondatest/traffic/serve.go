package traffic

import (
	"io"
	"net/http"
	"strconv"
	"sync"
)

// Server is an http.Handler that answers every request with the response that Next gave last and keeps the request's body. It is
// safe for concurrent use, but one Next stands for all requests that follow.
type Server struct {
	mu     sync.Mutex
	status int
	header map[string]string
	typ    string
	pieces [][]byte
	body   []byte
	req    *http.Request
}

// Next sets what is answered from now on: the recorded status and headers, and the body in the given pieces, each flushed on its
// own (nil: as a whole with its length).
func (s *Server) Next(r *Response, pieces [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.header, s.typ = r.Status, r.Headers, r.ContentType()
	s.pieces = pieces
	if pieces == nil {
		s.pieces = [][]byte{r.Bytes()}
	}
	s.body, s.req = nil, nil
}

// Last is the last request and its body.
func (s *Server) Last() (*http.Request, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.req, s.body
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.body, s.req = body, r
	status, header, typ, pieces := s.status, s.header, s.typ, s.pieces
	s.mu.Unlock()
	for k, v := range header {
		switch http.CanonicalHeaderKey(k) {
		case "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection":
		default:
			w.Header().Set(k, v)
		}
	}
	w.Header().Set("Content-Type", typ)
	if len(pieces) == 1 {
		w.Header().Set("Content-Length", strconv.Itoa(len(pieces[0])))
	}
	w.WriteHeader(status)
	for _, p := range pieces {
		if _, err := w.Write(p); err != nil {
			return
		}
		if len(pieces) > 1 {
			if f, ok := w.(http.Flusher); ok {
				f.Flush()
			}
		}
	}
}

// Cuts returns ways to cut a body into pieces that cover each kind of place: within a line, a field name, an escape and a
// character, between the CR and the LF of a line end, and between events. The first way is the whole body.
func Cuts(body []byte) [][][]byte {
	ways := [][][]byte{{body}}
	for _, size := range []int{1, 7, 61, 509, 4093} {
		if size < len(body) && len(body)/size <= 6000 {
			ways = append(ways, every(body, size))
		}
	}
	return append(ways, atPlaces(body))
}

func every(body []byte, size int) [][]byte {
	var ps [][]byte
	for len(body) > size {
		ps = append(ps, body[:size])
		body = body[size:]
	}
	return append(ps, body)
}

// atPlaces cuts before and after each line feed, and in the middle of each character of more than one byte.
func atPlaces(body []byte) [][]byte {
	var ps [][]byte
	from := 0
	for i, c := range body {
		if i > from && (c == '\n' || body[i-1] == '\n' || c >= 0x80 && c < 0xc0) {
			ps = append(ps, body[from:i])
			from = i
		}
	}
	return append(ps, body[from:])
}

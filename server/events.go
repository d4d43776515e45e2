package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
)

// streamIdle is how often a quiet stream says that it is alive; writeTime is how long a reader may hold up one write before it is cut off. A
// reader that comes back names the last event it saw and misses nothing.
const (
	streamIdle = 15 * time.Second
	writeTime  = 20 * time.Second
)

func (s *Server) eventRoutes(api huma.API) {
	o := op(http.MethodGet, "/v1/runs/{id}/events", "run-events", "The events of a run: a stream (Accept: text/event-stream), or JSON of what there is", 404)
	o.Description = "As a stream: the id of an event is its seq, that of a delta seq.offset. Last-Event-ID goes on after an event on any replica, without loss or repeat " +
		"(deltas of a call that is under way are repeated from its beginning only where this replica drives it). The stream ends after RunStopped."
	huma.Register(api, o, s.events)
}

func (s *Server) events(ctx context.Context, in *struct {
	RunPath
	After  int64  `query:"after" minimum:"0" doc:"Only events with a larger seq"`
	Last   string `header:"Last-Event-ID"`
	Accept string `header:"Accept"`
	Limit  int    `query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"JSON only"`
}) (*huma.StreamResponse, error) {
	if err := need(ctx, Viewer); err != nil {
		return nil, err
	}
	if _, err := s.store.Get(ctx, in.ID); err != nil {
		return nil, problem(err)
	}
	after := in.After
	if in.Last != "" {
		seq, _, _ := strings.Cut(in.Last, ".")
		n, err := strconv.ParseInt(seq, 10, 64)
		if err != nil || n < 0 {
			return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("Last-Event-ID %q: want the id of an event, such as 12 or 12.3", in.Last))
		}
		after = max(after, n)
	}
	if !strings.Contains(in.Accept, "text/event-stream") {
		return s.eventsJSON(ctx, in.ID, after, in.Limit)
	}
	select {
	case s.streams <- struct{}{}:
	default:
		return nil, huma.Error503ServiceUnavailable("too many streams are open: come back later")
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer func() { <-s.streams }()
		_, w := humago.Unwrap(hc)
		s.stream(hc.Context(), w, in.ID, after)
	}}, nil
}

func (s *Server) eventsJSON(ctx context.Context, run string, after int64, limit int) (*huma.StreamResponse, error) {
	list := []json.RawMessage{}
	last := after
	for it, err := range s.h.Events(ctx, run, after, false) {
		if err != nil {
			return nil, problem(err)
		}
		line, err := loop.Encode(it.Event)
		if err != nil {
			return nil, problem(err)
		}
		list, last = append(list, line), it.Seq
		if len(list) == limit {
			break
		}
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "application/json")
		_ = json.NewEncoder(hc.BodyWriter()).Encode(map[string]any{"events": list, "last": last})
	}}, nil
}

// stream writes events and deltas as they come. Each write has a deadline: a reader that does not read is cut off and holds nobody up.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, run string, after int64) {
	s.metrics.streams.Add(1)
	defer s.metrics.streams.Add(-1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(s.closing, cancel)
	defer stop()
	rc := http.NewResponseController(w)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	out := &sseWriter{w: w, rc: rc}
	if out.comment("ronda") != nil {
		return
	}
	items := make(chan drive.Item)
	errs := make(chan error, 1)
	go func() {
		defer close(items)
		for it, err := range s.h.Events(ctx, run, after, true) {
			if err != nil {
				errs <- err
				return
			}
			select {
			case items <- it:
			case <-ctx.Done():
				return
			}
		}
	}()
	idle := time.NewTicker(streamIdle)
	defer idle.Stop()
	for {
		select {
		case it, ok := <-items:
			if !ok {
				select {
				case err := <-errs:
					if !errors.Is(err, context.Canceled) {
						s.log.Error("an event stream failed", "run", run, "error", err)
					}
				default:
				}
				return
			}
			if out.item(it) != nil {
				return
			}
		case <-idle.C:
			if out.comment("alive") != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

type sseWriter struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf []byte
}

func (o *sseWriter) flush() error {
	_ = o.rc.SetWriteDeadline(time.Now().Add(writeTime)) // not every writer has one; those of net/http do
	if _, err := o.w.Write(o.buf); err != nil {
		return err
	}
	return o.rc.Flush()
}

func (o *sseWriter) comment(text string) error {
	o.buf = append(append(append(o.buf[:0], ": "...), text...), "\n\n"...)
	return o.flush()
}

type deltaView struct {
	Channel string `json:"channel"`
	Block   int    `json:"block"`
	Text    string `json:"text,omitempty"`
	Name    string `json:"name,omitempty"`
	ID      string `json:"id,omitempty"`
}

func (o *sseWriter) item(it drive.Item) error {
	if it.Delta != nil {
		data, err := json.Marshal(deltaView{string(it.Delta.Channel), it.Delta.Block, it.Delta.Text, it.Delta.Name, it.Delta.ID})
		if err != nil {
			return err
		}
		o.buf = fmt.Appendf(o.buf[:0], "id: %d.%d\nevent: delta\ndata: %s\n\n", it.Seq, it.Offset, data)
		return o.flush()
	}
	data, err := loop.Encode(it.Event)
	if err != nil {
		return err
	}
	o.buf = fmt.Appendf(o.buf[:0], "id: %d\nevent: event\ndata: %s\n\n", it.Seq, data)
	return o.flush()
}

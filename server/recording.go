package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/recording"
)

type meView struct {
	Name string `json:"name" doc:"On record in what the caller decides"`
	Role Role   `json:"role" enum:"viewer,operator,approver,admin"`
}

// recordingRoutes are what can be said of a run after the fact: they read the journal and ask no model and no tool.
func (s *Server) recordingRoutes(api huma.API) {
	huma.Register(api, op(http.MethodGet, "/v1/me", "who-am-i", "Whose token it is and what it may do"), func(ctx context.Context, _ *struct{}) (*struct{ Body meView }, error) {
		id := identity(ctx)
		return &struct{ Body meView }{meView(id)}, nil
	})
	huma.Register(api, op(http.MethodGet, "/v1/runs/{id}/explain", "explain-run", "Why a run took what it took; each claim names its events", 404), func(ctx context.Context, in *RunPath) (*struct{ Body recording.Explanation }, error) {
		rec, err := s.recording(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return &struct{ Body recording.Explanation }{recording.Explain(rec.Root().Events)}, nil
	})
	huma.Register(api, op(http.MethodGet, "/v1/runs/{id}/diff/{other}", "diff-runs", "Two runs aligned round by round", 404), func(ctx context.Context, in *struct {
		RunPath
		Other string `path:"other" maxLength:"200"`
	}) (*struct{ Body recording.Comparison }, error) {
		a, err := s.recording(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		b, err := s.recording(ctx, in.Other)
		if err != nil {
			return nil, err
		}
		return &struct{ Body recording.Comparison }{recording.Diff(a.Root().Events, b.Root().Events)}, nil
	})
	o := op(http.MethodGet, "/v1/runs/{id}/recording", "record-run", "The run as a recording with its children, the times of its deltas and its artifacts", 404)
	o.Description = "form=jsonl is one JSON object a line (.ronda.jsonl), form=zip the same in pieces with an index (.ronda). A run that has not stopped is recorded as far as it is."
	huma.Register(api, o, func(ctx context.Context, in *struct {
		RunPath
		Form string `query:"form" enum:"jsonl,zip" default:"jsonl"`
	}) (*huma.StreamResponse, error) {
		rec, err := s.recording(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		form, mime, ext := recording.Lines, "application/jsonl", recording.LineExt
		if in.Form == "zip" {
			form, mime, ext = recording.Zipped, "application/zip", recording.ZipExt
		}
		return &huma.StreamResponse{Body: func(hc huma.Context) {
			hc.SetHeader("Content-Type", mime)
			hc.SetHeader("Content-Disposition", `attachment; filename="`+fileName(in.ID)+ext+`"`)
			if err := rec.Write(hc.BodyWriter(), form, recording.WriteOptions{}); err != nil {
				s.log.Error("a recording could not be sent whole", "run", in.ID, "error", err)
			}
		}}, nil
	})
}

func (s *Server) recording(ctx context.Context, run string) (*recording.Recording, error) {
	if err := need(ctx, Viewer); err != nil {
		return nil, err
	}
	rec, err := s.h.Recording(ctx, run)
	if err != nil {
		return nil, problem(err)
	}
	return rec, nil
}

// fileName is a run's id as a name of a file: ids come from clients too.
func fileName(id string) string {
	out := []byte(id)
	for i, c := range out {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			out[i] = '_'
		}
	}
	return string(out)
}

// schemaOf is the schema of a pending call's arguments, from the definition that the run recorded; nil where that is not to be had.
func (s *Server) schemaOf(ctx context.Context, r *drive.Run, p drive.Pending) json.RawMessage {
	if p.Run != r.ID {
		child, err := s.h.Show(ctx, p.Run)
		if err != nil {
			return nil
		}
		r = child
	}
	if r.State.Config == nil || r.State.Config.Digest == "" {
		return nil
	}
	a, err := s.store.Artifact(ctx, r.State.Config.Digest)
	if err != nil {
		return nil
	}
	var def drive.Definition
	if json.Unmarshal(a.Data, &def) != nil {
		return nil
	}
	for _, t := range def.Tools {
		if t.Name == p.Tool {
			return t.Input
		}
	}
	return nil
}

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// LimitsBody are limits as clients write them; what is left out is not limited (or not changed), zero means zero.
type LimitsBody struct {
	Rounds     *int64   `json:"rounds,omitempty" minimum:"0"`
	ModelCalls *int64   `json:"model_calls,omitempty" minimum:"0"`
	ToolCalls  *int64   `json:"tool_calls,omitempty" minimum:"0"`
	Tokens     *int64   `json:"tokens,omitempty" minimum:"0"`
	CostUSD    *float64 `json:"cost_usd,omitempty" minimum:"0" maximum:"9000000"`
	ActiveTime *string  `json:"active_time,omitempty" doc:"A length of time, such as 90s or 2m"`
	Deadline   *string  `json:"deadline,omitempty" doc:"A length of time, such as 90s or 2m"`
}

func (b *LimitsBody) limits() (*drive.Limits, error) {
	if b == nil {
		return nil, nil
	}
	var l drive.Limits
	count := func(to *int, v *int64) {
		if v != nil {
			if *to = int(min(*v, drive.Unlimited)); *v == 0 {
				*to = drive.Zero
			}
		}
	}
	count(&l.Rounds, b.Rounds)
	count(&l.ModelCalls, b.ModelCalls)
	count(&l.ToolCalls, b.ToolCalls)
	if b.Tokens != nil {
		if l.Tokens = *b.Tokens; l.Tokens == 0 {
			l.Tokens = drive.Zero
		}
	}
	if b.CostUSD != nil {
		if l.CostUSD = *b.CostUSD; l.CostUSD == 0 {
			l.CostUSD = drive.ZeroUSD
		}
	}
	for _, d := range []struct {
		name string
		from *string
		to   *time.Duration
	}{{"active_time", b.ActiveTime, &l.ActiveTime}, {"deadline", b.Deadline, &l.Deadline}} {
		if d.from == nil {
			continue
		}
		v, err := time.ParseDuration(*d.from)
		if err != nil || v < 0 {
			return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("limits.%s: %q is no length of time, such as 90s or 2m", d.name, *d.from))
		}
		if v == 0 {
			v = drive.Zero
		}
		*d.to = v
	}
	return &l, nil
}

type startInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"The same key again returns the run that the first request made"`
	Body struct {
		Agent   string      `json:"agent" minLength:"1"`
		Input   string      `json:"input" minLength:"1"`
		Session string      `json:"session,omitempty" maxLength:"200"`
		Limits  *LimitsBody `json:"limits,omitempty"`
	}
}

type runOutput struct {
	Location string `header:"Location"`
	Body     RunView
}

// RunPath names the run in a path. It is exported because operations embed it, and fields of types that are not are not filled in.
type RunPath struct {
	ID string `path:"id" maxLength:"200"`
}

type listInput struct {
	Status  string `query:"status" enum:"running,waiting,stopped"`
	Agent   string `query:"agent"`
	Stop    string `query:"stop"`
	Session string `query:"session"`
	Waiting string `query:"waiting"`
	Parent  string `query:"parent"`
	Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Cursor  string `query:"cursor"`
}

type listOutput struct {
	Body struct {
		Runs []RowView `json:"runs"`
		Next string    `json:"next,omitempty" doc:"Cursor of the next page; absent at the end"`
	}
}

type acceptedOutput struct {
	Body struct {
		Accepted bool `json:"accepted"`
	}
}

func accepted() *acceptedOutput {
	out := &acceptedOutput{}
	out.Body.Accepted = true
	return out
}

func op(method, path, id, summary string, errs ...int) huma.Operation {
	return huma.Operation{Method: method, Path: path, OperationID: id, Summary: summary, Errors: append([]int{401, 403}, errs...), Security: []map[string][]string{{"token": {}}}}
}

// need refuses who may not.
func need(ctx context.Context, role Role) error {
	if id := identity(ctx); !id.Role.may(role) {
		return huma.Error403Forbidden(fmt.Sprintf("%s has the role %q; this needs %q", id.Name, id.Role, role))
	}
	return nil
}

func (s *Server) runRoutes(api huma.API) {
	start := op(http.MethodPost, "/v1/runs", "start-run", "Start a run", 404, 409, 422)
	start.DefaultStatus = http.StatusCreated
	huma.Register(api, start, s.startRun)
	huma.Register(api, op(http.MethodGet, "/v1/runs", "list-runs", "List runs, newest first"), s.listRuns)
	huma.Register(api, op(http.MethodGet, "/v1/runs/{id}", "get-run", "One run", 404), func(ctx context.Context, in *RunPath) (*runOutput, error) {
		if err := need(ctx, Viewer); err != nil {
			return nil, err
		}
		r, err := s.h.Show(ctx, in.ID)
		if err != nil {
			return nil, problem(err)
		}
		v := View(r)
		for i, p := range r.Pending {
			v.Pending[i].Schema = s.schemaOf(ctx, r, p)
		}
		return &runOutput{Body: v}, nil
	})
	huma.Register(api, op(http.MethodPost, "/v1/runs/{id}/cancel", "cancel-run", "Ask a run to end", 404, 409), func(ctx context.Context, in *struct {
		RunPath
		Body struct {
			Reason string `json:"reason,omitempty"`
		} `required:"false"`
	}) (*acceptedOutput, error) {
		if err := need(ctx, Operator); err != nil {
			return nil, err
		}
		return s.accept(s.h.Cancel(ctx, in.ID, identity(ctx).Name, in.Body.Reason), in.ID)
	})
	huma.Register(api, op(http.MethodPost, "/v1/runs/{id}/extend", "extend-run", "Raise limits: amounts are added", 404, 409, 422), func(ctx context.Context, in *struct {
		RunPath
		Body LimitsBody
	}) (*acceptedOutput, error) {
		if err := need(ctx, Operator); err != nil {
			return nil, err
		}
		l, err := in.Body.limits()
		if err != nil {
			return nil, err
		}
		return s.accept(s.h.Extend(ctx, in.ID, *l, identity(ctx).Name), in.ID)
	})
	huma.Register(api, op(http.MethodPost, "/v1/runs/{id}/messages", "say", "Say something to a live run", 404, 409, 422), func(ctx context.Context, in *struct {
		RunPath
		Body struct {
			Text      string `json:"text" minLength:"1"`
			Supersede bool   `json:"supersede,omitempty" doc:"What waits for an approval is answered: not run"`
		}
	}) (*acceptedOutput, error) {
		if err := need(ctx, Operator); err != nil {
			return nil, err
		}
		return s.accept(s.h.Message(ctx, in.ID, drive.Text(in.Body.Text), identity(ctx).Name, in.Body.Supersede), in.ID)
	})
	s.eventRoutes(api)
}

// accept goes on with the run after an input was put on record.
func (s *Server) accept(err error, run string) (*acceptedOutput, error) {
	if err != nil {
		return nil, problem(err)
	}
	s.goOn(run)
	return accepted(), nil
}

func (s *Server) goOn(run string) {
	if !s.h.Driving(run) {
		s.h.ResumeInBackground(run)
	}
}

func (s *Server) startRun(ctx context.Context, in *startInput) (*runOutput, error) {
	if err := need(ctx, Operator); err != nil {
		return nil, err
	}
	a, ok := s.agents[in.Body.Agent]
	if !ok {
		return nil, huma.Error404NotFound(fmt.Sprintf("agent %q: there is no such agent. GET /v1/agents lists them", in.Body.Agent))
	}
	limits, err := in.Body.Limits.limits()
	if err != nil {
		return nil, err
	}
	id := "run_" + uuid.Must(uuid.NewV7()).String()
	if in.Key != "" {
		stored, err := s.store.Idempotent(ctx, "start/"+identity(ctx).Name+"/"+in.Key, id)
		if err != nil {
			return nil, problem(err)
		}
		if stored != id {
			r, err := s.h.Show(ctx, stored)
			if err == nil {
				return &runOutput{Location: "/v1/runs/" + stored, Body: View(r)}, nil
			}
			if !errors.Is(err, drive.ErrNotFound) {
				return nil, problem(err)
			}
			id = stored // the first request died before the run was there: this one makes it
		}
	}
	agent, err := a.Make(ctx, in.Body.Input)
	if err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	if s.o.Started != nil {
		if err := s.o.Started(ctx, id, in.Body.Agent, in.Body.Input); err != nil {
			return nil, problem(err)
		}
	}
	if err := agent.Validate(); err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	run, _, err := s.h.Begin(ctx, drive.Start{Agent: agent, Input: drive.Text(in.Body.Input), ID: id, Session: in.Body.Session, Limits: limits, By: identity(ctx).Name})
	if err != nil {
		return nil, problem(err)
	}
	r, err := s.h.Show(ctx, run)
	if err != nil {
		return nil, problem(err)
	}
	return &runOutput{Location: "/v1/runs/" + run, Body: View(r)}, nil
}

func (s *Server) listRuns(ctx context.Context, in *listInput) (*listOutput, error) {
	if err := need(ctx, Viewer); err != nil {
		return nil, err
	}
	page, err := s.store.List(ctx, journal.Query{Status: in.Status, Agent: in.Agent, Stop: loop.Reason(in.Stop), Session: in.Session, Waiting: in.Waiting, Parent: in.Parent, Roots: in.Parent == "", Limit: in.Limit, Cursor: in.Cursor})
	if err != nil {
		return nil, problem(err)
	}
	out := &listOutput{}
	out.Body.Runs = make([]RowView, len(page.Runs))
	for i, r := range page.Runs {
		out.Body.Runs[i] = viewRow(r)
	}
	out.Body.Next = page.Next
	return out, nil
}

type approvalBody struct {
	Decision string            `json:"decision" enum:"approve,edit,reject,happened,did_not_happen" doc:"happened and did_not_happen answer a resolution"`
	Args     json.RawMessage   `json:"args,omitempty" doc:"edit: the new arguments"`
	Message  string            `json:"message,omitempty" maxLength:"4000"`
	Digest   string            `json:"digest,omitempty" doc:"approve and edit need the digest that was shown"`
	Always   map[string]string `json:"always,omitempty" doc:"approve: also approve later calls of the run whose arguments match these patterns"`
}

func (s *Server) approvalRoutes(api huma.API) {
	huma.Register(api, op(http.MethodGet, "/v1/approvals", "list-approvals", "What waits for a person"), s.listApprovals)
	huma.Register(api, op(http.MethodPost, "/v1/approvals/{id}", "decide", "Answer what waits, once", 404, 409, 422), func(ctx context.Context, in *struct {
		ID   string `path:"id" maxLength:"400"`
		Body approvalBody
	}) (*acceptedOutput, error) {
		if err := need(ctx, Approver); err != nil {
			return nil, err
		}
		run, call, ok := splitApprovalID(in.ID)
		if !ok {
			return nil, huma.Error404NotFound(fmt.Sprintf("approval %q: there is no such approval", in.ID))
		}
		who, b := identity(ctx).Name, in.Body
		switch b.Decision {
		case "happened", "did_not_happen":
			return s.accept(s.h.Resolve(ctx, run, call, b.Decision == "happened", who, b.Message, nil), run)
		case loop.Approve, loop.Edit:
			if b.Digest == "" {
				return nil, huma.Error422UnprocessableEntity("digest is missing: send the digest of the call that you looked at")
			}
		}
		dec := drive.Decision{Decision: b.Decision, By: who, Message: b.Message, Args: b.Args, Digest: b.Digest}
		if b.Always != nil {
			dec.Always = &drive.Scope{Args: b.Always}
		}
		return s.accept(s.h.Decide(ctx, run, call, dec), run)
	})
}

type approvalsOutput struct {
	Body struct {
		Approvals []PendingView `json:"approvals"`
		Next      string        `json:"next,omitempty"`
	}
}

func (s *Server) listApprovals(ctx context.Context, in *struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor string `query:"cursor"`
}) (*approvalsOutput, error) {
	if err := need(ctx, Viewer); err != nil {
		return nil, err
	}
	page, err := s.store.List(ctx, journal.Query{Status: loop.StatusWaiting, Roots: true, Limit: in.Limit, Cursor: in.Cursor})
	if err != nil {
		return nil, problem(err)
	}
	out := &approvalsOutput{}
	out.Body.Approvals, out.Body.Next = []PendingView{}, page.Next
	for _, row := range page.Runs {
		r, err := s.h.Show(ctx, row.ID)
		if err != nil {
			return nil, problem(err)
		}
		for _, p := range r.Pending {
			v := ViewPending(r, p)
			v.Schema = s.schemaOf(ctx, r, p)
			out.Body.Approvals = append(out.Body.Approvals, v)
		}
	}
	return out, nil
}

type agentView struct {
	Name     string `json:"name"`
	About    string `json:"about,omitempty"`
	Model    string `json:"model,omitempty"`
	Scripted bool   `json:"scripted,omitempty"`
}

func (s *Server) plainRoutes(api huma.API) {
	huma.Register(api, op(http.MethodGet, "/v1/agents", "list-agents", "Agents that can be started"), func(ctx context.Context, _ *struct{}) (*struct {
		Body struct {
			Agents []agentView `json:"agents"`
		}
	}, error) {
		if err := need(ctx, Viewer); err != nil {
			return nil, err
		}
		out := &struct {
			Body struct {
				Agents []agentView `json:"agents"`
			}
		}{}
		out.Body.Agents = []agentView{}
		for _, a := range s.o.Agents {
			out.Body.Agents = append(out.Body.Agents, agentView{a.Name, a.About, a.Model, a.Scripted})
		}
		return out, nil
	})
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "ok") })
	s.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if !s.ready.get() {
			refuse(w, http.StatusServiceUnavailable, "the server is starting or shutting down")
			return
		}
		if _, err := s.store.List(r.Context(), journal.Query{Limit: 1}); err != nil {
			refuse(w, http.StatusServiceUnavailable, "the store does not answer")
			return
		}
		fmt.Fprintln(w, "ok")
	})
	s.mux.HandleFunc("GET /metrics", s.serveMetrics)
}

package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/journal"
	"github.com/ronda-go/ronda/loop"
)

// RunView is what clients see of a run.
type RunView struct {
	Run       string                     `json:"run" doc:"Id of the run"`
	Session   string                     `json:"session,omitempty"`
	Agent     string                     `json:"agent"`
	Model     string                     `json:"model"`
	Scripted  bool                       `json:"scripted,omitempty" doc:"The answers come from a script, not from a model"`
	Status    string                     `json:"status" enum:"running,waiting,stopped"`
	Waiting   []string                   `json:"waiting,omitempty"`
	Stop      string                     `json:"stop,omitempty" doc:"Why it ended"`
	Limit     string                     `json:"limit,omitempty"`
	Whose     string                     `json:"whose,omitempty"`
	Declined  bool                       `json:"declined,omitempty"`
	Message   string                     `json:"message,omitempty"`
	Missing   []string                   `json:"missing,omitempty"`
	Unknown   []string                   `json:"unknown,omitempty" doc:"Calls whose outcome nobody knows"`
	NotRun    []string                   `json:"not_run,omitempty"`
	Answer    string                     `json:"answer"`
	Title     string                     `json:"title,omitempty"`
	Created   time.Time                  `json:"created"`
	Updated   time.Time                  `json:"updated"`
	LastEvent int64                      `json:"last_event"`
	Counts    Counts                     `json:"counts"`
	Usage     Usage                      `json:"usage"`
	Limits    []LimitView                `json:"limits"`
	Facts     map[string]json.RawMessage `json:"facts"`
	Pending   []PendingView              `json:"pending"`
}

// Counts are counters of a run and its children.
type Counts struct {
	Rounds        int64 `json:"rounds"`
	ModelCalls    int64 `json:"model_calls"`
	ModelAttempts int64 `json:"model_attempts"`
	ToolCalls     int64 `json:"tool_calls"`
	ToolAttempts  int64 `json:"tool_attempts"`
}

// Usage is what was billed.
type Usage struct {
	Input      int64       `json:"input"`
	CacheRead  int64       `json:"cache_read"`
	CacheWrite int64       `json:"cache_write"`
	Output     int64       `json:"output"`
	Reasoning  int64       `json:"reasoning"`
	Estimated  int64       `json:"estimated,omitempty" doc:"Tokens booked at their reserve because the end of an attempt was lost"`
	CostUSD    json.Number `json:"cost_usd" doc:"Exact decimal"`
}

// LimitView is a limit with what is used of it.
type LimitView struct {
	Limit string `json:"limit"`
	Used  int64  `json:"used"`
	Of    int64  `json:"of"`
	Unit  string `json:"unit" enum:"count,tokens,pico_usd,microseconds"`
}

// PendingView is something that waits for a person.
type PendingView struct {
	ID          string          `json:"id,omitempty" doc:"What POST /v1/approvals/{id} takes"`
	Run         string          `json:"run"`
	Call        string          `json:"call,omitempty"`
	Kind        string          `json:"kind" enum:"approval,resolution,extension"`
	Agent       string          `json:"agent,omitempty"`
	Path        []string        `json:"path,omitempty"`
	Tool        string          `json:"tool,omitempty"`
	Args        json.RawMessage `json:"args,omitempty" doc:"Exactly what would run"`
	Digest      string          `json:"digest,omitempty"`
	Destination string          `json:"destination,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	Thought     string          `json:"thought,omitempty" doc:"The model's last words before it asked"`
	Expires     *time.Time      `json:"expires,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty" doc:"JSON Schema of the arguments, for who edits them"`
}

// ExactUSD writes 10⁻¹² USD as a decimal number without rounding.
func ExactUSD(p loop.Pico) json.Number {
	s := fmt.Sprintf("%d.%012d", p/loop.USD, p%loop.USD)
	return json.Number(strings.TrimSuffix(strings.TrimRight(s, "0"), "."))
}

func at(m loop.Micros) time.Time { return time.UnixMicro(int64(m)).UTC() }

// View is a run as clients see it.
func View(r *drive.Run) RunView {
	t := r.Total
	v := RunView{Run: r.ID, Session: r.Session, Agent: r.Agent, Model: r.Model, Scripted: strings.HasPrefix(r.Model, "scripted/"), Status: r.Status,
		Waiting: r.Waiting, Stop: string(r.Stop), Limit: r.Limit, Answer: r.Answer, Title: r.Row.Title, Created: at(r.State.Started), Updated: at(r.State.Time), LastEvent: r.State.Seq,
		Counts: Counts{t.Rounds, t.ModelCalls, t.ModelAttempts, t.ToolCalls, t.ToolAttempts},
		Usage:  Usage{t.Usage.Input, t.Usage.CacheRead, t.Usage.CacheWrite, t.Usage.Output, t.Usage.Reasoning, t.Estimated, ExactUSD(r.Cost)},
		Facts:  map[string]json.RawMessage{}, Pending: []PendingView{}, Limits: limitViews(r)}
	if s := r.Stopped; s != nil {
		v.Whose, v.Declined, v.Message, v.Missing, v.Unknown, v.NotRun = s.Whose, s.Declined, s.Message, s.Missing, s.Unknown, s.NotRun
	}
	for name, f := range r.Facts {
		v.Facts[name] = f.Value
	}
	for _, p := range r.Pending {
		v.Pending = append(v.Pending, ViewPending(r, p))
	}
	return v
}

// ViewPending is something that waits, as clients see it.
func ViewPending(r *drive.Run, p drive.Pending) PendingView {
	v := PendingView{Run: r.ID, Call: p.Call, Kind: p.Kind, Agent: r.Agent, Path: p.Path, Tool: p.Tool, Args: p.Args, Digest: p.Digest, Destination: p.Dest, Reason: p.Reason, Thought: p.Thought}
	if p.Call != "" {
		v.ID = ApprovalID(r.ID, p.Call)
	}
	if p.Expires > 0 {
		t := at(p.Expires)
		v.Expires = &t
	}
	return v
}

// ApprovalID names a pending call in a path of the API. Clients take it as it is.
func ApprovalID(run, call string) string { return run + ":" + strings.ReplaceAll(call, "/", ",") }

func splitApprovalID(id string) (run, call string, ok bool) {
	run, call, ok = strings.Cut(id, ":")
	return run, strings.ReplaceAll(call, ",", "/"), ok && run != "" && call != ""
}

func limitViews(r *drive.Run) []LimitView {
	l, t := r.State.Limits(), r.Total
	out := []LimitView{}
	add := func(name, unit string, limit *int64, used int64) {
		if limit != nil {
			out = append(out, LimitView{name, used, *limit, unit})
		}
	}
	add(loop.LimitRounds, "count", l.Rounds, t.Rounds)
	add(loop.LimitModelCalls, "count", l.ModelCalls, t.ModelCalls)
	add(loop.LimitToolCalls, "count", l.ToolCalls, t.ToolCalls)
	add(loop.LimitTokens, "tokens", l.Tokens, t.Usage.Total())
	add(loop.LimitCost, "pico_usd", (*int64)(l.Cost), int64(r.Cost))
	add(loop.LimitActiveTime, "microseconds", (*int64)(l.ActiveTime), int64(r.Active))
	add(loop.LimitDeadline, "microseconds", (*int64)(l.Deadline), int64(r.State.Time-r.State.Started))
	return out
}

// RowView is a run in a list.
type RowView struct {
	Run      string          `json:"run"`
	Session  string          `json:"session,omitempty"`
	Parent   string          `json:"parent,omitempty"`
	Agent    string          `json:"agent"`
	Model    string          `json:"model"`
	Scripted bool            `json:"scripted,omitempty"`
	Status   string          `json:"status"`
	Waiting  []string        `json:"waiting,omitempty"`
	Stop     string          `json:"stop,omitempty"`
	Limit    string          `json:"limit,omitempty"`
	Created  time.Time       `json:"created"`
	Updated  time.Time       `json:"updated"`
	Title    string          `json:"title,omitempty"`
	Summary  json.RawMessage `json:"summary,omitempty" doc:"rounds, model_calls, tool_calls, tokens, cost (10⁻¹² USD)"`
}

func viewRow(r journal.Run) RowView {
	return RowView{r.ID, r.Session, r.Parent, r.Agent, r.Model, strings.HasPrefix(r.Model, "scripted/"), r.Status, r.Waiting, string(r.Stop), r.Limit, at(r.Created), at(r.Updated), r.Title, r.Summary}
}

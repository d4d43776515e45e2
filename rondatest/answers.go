package rondatest

import (
	"context"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/model/scripted"
)

// answers is the model of one agent in one life of the process: it deals from the deck, directly or through a fake provider.
type answers struct {
	w     *world
	g     *generation
	d     *deck
	wire  model.Model // nil: direct
	serve *provider   // beside wire
}

var _ model.Estimator = (*answers)(nil)

// Info describes the model; its answers are scripted on every wire.
func (a *answers) Info() model.Info {
	if a.wire == nil {
		return model.Info{Wire: "scripted", Name: "script", Scripted: true}
	}
	info := a.wire.Info()
	info.Scripted = true
	return info
}

// Estimate is exact, as the script knows what it will report.
func (a *answers) Estimate(req *model.Request) (int64, bool) { return a.d.estimate(req) }

// Generate serves the item that the request gets.
func (a *answers) Generate(ctx context.Context, req *model.Request, sink func(model.Delta)) (*model.Response, error) {
	if a.g.dead.Load() {
		return nil, &model.Error{Class: loop.ClassTransient, Lost: true, Message: "the process died"}
	}
	item, s, err := a.d.take(req)
	if err != nil {
		a.w.problem(err.Error())
		return nil, &model.Error{Class: loop.ClassFatal, Code: "script", Message: err.Error()}
	}
	if a.wire != nil {
		return a.serve.generate(ctx, a.wire, item, s, req, sink)
	}
	item.When, item.Repeat = nil, true
	one := scripted.New(&scripted.Script{Items: []scripted.Item{*item}}, scripted.Options{
		Sleep: a.w.clock.Sleep, Position: func(*model.Request) int { return 0 }})
	return one.Generate(ctx, req, sink)
}

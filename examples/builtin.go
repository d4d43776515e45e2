// Package examples lists the systems that are built into the ronda command.
package examples

import (
	"context"

	"github.com/ronda-go/ronda/cli"
	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/examples/coach"
	"github.com/ronda-go/ronda/examples/support"
	"github.com/ronda-go/ronda/model"
)

// Builtins are the built-in examples.
func Builtins() []cli.Builtin {
	return []cli.Builtin{{
		Name: support.Name, About: "drafts replies to support cases and asks before it sends them", Model: "anthropic/claude-sonnet-4-5",
		Make: func(ctx context.Context, m model.Model) (*drive.Agent, func() error, error) {
			db, err := support.Open("")
			if err != nil {
				return nil, nil, err
			}
			return support.Agent(m, db), db.Close, nil
		},
		Script: support.Script,
	}, {
		Name: coach.Name, About: "answers questions about a year of strength training, and asks before it saves goals and workouts", Model: "anthropic/claude-sonnet-4-5",
		Make: func(ctx context.Context, m model.Model) (*drive.Agent, func() error, error) {
			db, err := coach.Open("", coach.Options{})
			if err != nil {
				return nil, nil, err
			}
			return coach.Agent(m, db), db.Close, nil
		},
		Script: coach.Script,
	}}
}

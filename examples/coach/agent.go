package coach

import (
	_ "embed"
	"strings"
	"time"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/model"
)

// Name is the agent's name.
const Name = "coach"

// Version is the agent's definition: it changes with the tools' meaning or the contract's.
const Version = "coach/1"

//go:embed instructions.md
var instructions string

// Agent is the coach on a database. Its answers are plain text; each message of a session is a run with an allowance of its own.
//
// The cost limit holds where the model has a price. Rounds, tokens and time bound the run with models that have none, such as
// a script or one that runs at home.
func Agent(m model.Model, db *DB) *drive.Agent {
	return &drive.Agent{
		Name:          Name,
		Model:         m,
		Instructions:  strings.ReplaceAll(instructions, "{{today}}", db.Today()),
		Tools:         Tools(db),
		Limits:        drive.Limits{Rounds: 6, Tokens: 200_000, CostUSD: 0.50, ActiveTime: 2 * time.Minute},
		AllowUnpriced: true,
		HintRounds:    2,
		Parallel:      "read",
		Contract:      Contract(db),
		Definition:    Version,
	}
}

package support

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/model"
	"github.com/ronda-go/ronda/tool"
)

// Name is the agent's name.
const Name = "support"

// Version is the agent's definition: it changes with the tools' meaning or the contract's.
const Version = "support/1"

//go:embed instructions.md
var instructions string

// Agent is the support assistant on a database. Each run that ends as done has written down a draft that the database accepts
// and has sent exactly that draft.
//
// The cost limit holds where the model has a price. Rounds, tokens and time bound the run with models that have none, such as
// a script or one that runs at home.
func Agent(m model.Model, db *DB) *drive.Agent {
	return &drive.Agent{
		Name:          Name,
		Model:         m,
		Instructions:  instructions,
		Tools:         Tools(db),
		Limits:        drive.Limits{Rounds: 8, Tokens: 200_000, CostUSD: 0.50, ActiveTime: 2 * time.Minute},
		AllowUnpriced: true,
		HintRounds:    2,
		Parallel:      "read",
		Finish:        true,
		Contract:      Contract(db),
		Definition:    Version,
	}
}

// Contract is what done means: the facts draft and receipt exist, and the database confirms them.
func Contract(db *DB) *drive.Contract {
	return &drive.Contract{
		Facts:     []string{"draft", "receipt"},
		CheckName: Version,
		Check: func(ctx context.Context, e drive.Evidence) (missing []string, undecided bool, err error) {
			var draft Draft
			var sent Receipt
			if ok, missing := readFacts(e.Facts, map[string]any{"draft": &draft, "receipt": &sent}); !ok {
				return missing, false, nil
			}
			missing, err = db.CheckSent(ctx, draft, sent)
			return missing, err != nil, err
		},
	}
}

// readFacts decodes facts and says which are missing or no such thing.
func readFacts(facts map[string]loop.Fact, into map[string]any) (ok bool, missing []string) {
	for _, name := range []string{"draft", "receipt"} {
		f, there := facts[name]
		switch {
		case !there:
			missing = append(missing, name)
		case json.Unmarshal(f.Value, into[name]) != nil:
			missing = append(missing, fmt.Sprintf("a readable fact %q", name))
		}
	}
	return len(missing) == 0, missing
}

// CheckSent confirms a draft and its receipt: the draft is in the database as the fact says it, cites an existing case and a
// version of a policy that was in force on the day the case was opened, and was sent to that address with that text under that
// receipt. missing is what does not hold, in words for the model and for a person; err is a failure to look.
func (db *DB) CheckSent(ctx context.Context, d Draft, r Receipt) (missing []string, err error) {
	var in DraftInput
	row := db.sql.QueryRowContext(ctx, `SELECT case_id, policy, policy_version, recipient, subject, body FROM drafts WHERE id = ?`, d.ID)
	if err := row.Scan(&in.CaseID, &in.PolicyID, &in.PolicyVersion, &in.To, &in.Subject, &in.Body); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return []string{"draft " + d.ID + " in the database"}, nil
		}
		return nil, failed("look up the draft", err)
	}
	stored, err := db.accept(ctx, db.sql, in)
	var refused *tool.Error
	switch {
	case errors.As(err, &refused) && refused.Class == loop.ClassInvalid:
		return []string{"a draft that holds: " + refused.Message}, nil
	case err != nil:
		return nil, failed("check the draft", err)
	}
	if stored.Draft != d {
		missing = append(missing, fmt.Sprintf("a draft that is as the fact says (%s differs)", d.ID))
	}
	sent, err := receipt(ctx, db.sql, `receipt = ?`, r.Receipt)
	switch {
	case err != nil:
		return nil, failed("look up the receipt", err)
	case sent == nil:
		missing = append(missing, "receipt "+r.Receipt+" in the database")
	case *sent != r:
		missing = append(missing, fmt.Sprintf("a receipt that is as the fact says (%s differs)", r.Receipt))
	case sent.DraftID != d.ID || sent.To != d.To || sent.BodyDigest != d.BodyDigest:
		missing = append(missing, fmt.Sprintf("the sending of draft %s (receipt %s is of %s)", d.ID, r.Receipt, sent.DraftID))
	}
	return missing, nil
}

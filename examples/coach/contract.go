package coach

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ronda-go/ronda/drive"
	"github.com/ronda-go/ronda/loop"
)

// Facts that the writing tools establish.
const (
	factGoal        = "goal"
	factWorkout     = "workout"
	factMeasurement = "measurement"
)

// Contract is what done means for an answer of the coach. Most answers need no write, so it asks for no fact. It asks that an
// answer claims no write that did not happen:
//
//   - what the run has on record as written is in the database, as the fact says it;
//   - each goal, workout or measurement that the answer names by its id is in the database;
//   - an answer that says that something was saved names it, or the run has written something.
//
// The last is told from the words (Claims), in English and Spanish, and errs on the side of letting an answer pass: the first two do
// not depend on words. An answer that does not hold is handed back to the model with what is missing.
func Contract(db *DB) *drive.Contract {
	return &drive.Contract{
		CheckName: Version,
		Check: func(ctx context.Context, e drive.Evidence) (missing []string, undecided bool, err error) {
			missing, err = db.CheckAnswer(ctx, e.Answer, e.Facts)
			return missing, err != nil, err
		},
	}
}

// CheckAnswer says what of the contract does not hold, in words for the model and for a person; err is a failure to look.
func (db *DB) CheckAnswer(ctx context.Context, answer string, facts map[string]loop.Fact) (missing []string, err error) {
	written, missing, err := db.checkFacts(ctx, facts)
	if err != nil {
		return nil, failed("check what was written", err)
	}
	named := false
	for _, id := range idIn.FindAllString(answer, -1) {
		there, err := db.exists(ctx, id)
		switch {
		case err != nil:
			return nil, failed("check what the answer names", err)
		case there:
			named = true
		default:
			missing = append(missing, fmt.Sprintf("%s in the database: nothing was saved under that id, so do not name it", id))
		}
	}
	if claim := Claims(answer); claim != "" && !written && !named {
		missing = append(missing, fmt.Sprintf("the write that %q claims (nothing was saved in answer to this message: say that it was not)", claim))
	}
	return missing, nil
}

// idIn finds ids of goals, workouts and measurements.
var idIn = regexp.MustCompile(`\b[GWM]-[0-9]+\b`)

var tables = map[byte]string{'G': "goals", 'W': "workouts", 'M': "measurements"}

func (db *DB) exists(ctx context.Context, id string) (bool, error) {
	n, ok := number(id, id[:1])
	if !ok {
		return false, nil
	}
	var there bool
	err := db.sql.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM `+tables[id[0]]+` WHERE id = ?)`, n).Scan(&there)
	return there, err
}

// checkFacts confirms what the run has on record as written. written says that there is something.
func (db *DB) checkFacts(ctx context.Context, facts map[string]loop.Fact) (written bool, missing []string, err error) {
	for _, name := range []string{factGoal, factWorkout, factMeasurement} {
		f, ok := facts[name]
		if !ok {
			continue
		}
		written = true
		same, err := db.confirms(ctx, name, f.Value)
		if err != nil {
			return false, nil, err
		}
		if !same {
			missing = append(missing, fmt.Sprintf("the %s in the database as the fact says it", name))
		}
	}
	return written, missing, nil
}

// confirms compares a fact with the row that it is about.
func (db *DB) confirms(ctx context.Context, name string, value json.RawMessage) (bool, error) {
	switch name {
	case factGoal:
		return same(ctx, value, func(g Goal) (*Goal, error) {
			key, err := db.keyOf(ctx, g.ID)
			if key == "" || err != nil {
				return nil, err
			}
			return goal(ctx, db.sql, key)
		})
	case factWorkout:
		return same(ctx, value, func(l Logged) (*Logged, error) {
			key, err := db.keyOf(ctx, l.ID)
			if key == "" || err != nil {
				return nil, err
			}
			return logged(ctx, db.sql, key)
		})
	}
	return same(ctx, value, func(m Measurement) (*Measurement, error) {
		n, _ := number(m.ID, "M")
		return measurement(ctx, db.sql, `id = ?`, n)
	})
}

// same reports whether what find has for a value is that value.
func same[T any](ctx context.Context, value json.RawMessage, find func(T) (*T, error)) (bool, error) {
	var v T
	if json.Unmarshal(value, &v) != nil {
		return false, nil
	}
	found, err := find(v)
	if found == nil || err != nil {
		return false, err
	}
	a, _ := json.Marshal(v) // of texts and finite numbers: cannot fail
	b, _ := json.Marshal(found)
	return string(a) == string(b), nil
}

// keyOf is the idempotency key of the call that wrote a goal or a workout; "" where no call did.
func (db *DB) keyOf(ctx context.Context, id string) (string, error) {
	if id == "" || tables[id[0]] == "" {
		return "", nil
	}
	n, _ := number(id, id[:1])
	var key string
	err := db.sql.QueryRowContext(ctx, `SELECT coalesce(key, '') FROM `+tables[id[0]]+` WHERE id = ?`, n).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return key, err
}

// claims are ways to say that something was saved; denials in the same sentence say that it was not, or not yet.
var (
	claims = regexp.MustCompile(`\b(i(ve| have)?( just| now)? (saved|logged|recorded|stored|written down)|(is|are|has been|have been)( now)? (saved|logged|recorded|stored|written down)` +
		`|(he|hemos) (guardado|registrado|anotado|apuntado)|(esta|queda|quedo|ha quedado|ha sido|fue)( ya)? (guardad|registrad|anotad|apuntad)[oa])\b`)
	denials   = regexp.MustCompile(`\b(not|nothing|never|no|nt|if|when|once|until|after|before|unless|would|will|nada|nunca|ni|si|cuando|hasta|antes|sin)\b`)
	sentences = regexp.MustCompile(`[.!?:;\n]+(\s|$)`)
	asides    = strings.NewReplacer("'", "", "’", "")
)

// Claims returns the first sentence of a text that says that something was saved, logged or written down; "" where none does.
func Claims(text string) string {
	list := sentences.Split(text, -1)
	i := slices.IndexFunc(list, func(s string) bool {
		s = asides.Replace(fold(s))
		return claims.MatchString(s) && !denials.MatchString(s)
	})
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(list[i])
}

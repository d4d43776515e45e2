package coach

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// Origin is the call that a row of the database comes from.
type Origin struct {
	Run string
	Key string // idempotency key of the call: the same in each attempt
}

func (o Origin) valid(doing string) error {
	if o.Run == "" || o.Key == "" {
		return &tool.Error{Class: loop.ClassFatal, NotRun: true, Message: doing + ": the call has no run or no idempotency key"}
	}
	return nil
}

// Goal is something to reach by a day. As a result of save_goal it is the fact "goal".
type Goal struct {
	ID       string  `json:"goal_id"`
	Kind     string  `json:"kind"` // one_rep_max, body_weight
	Exercise string  `json:"exercise,omitempty"`
	Target   float64 `json:"target_kg"`
	By       string  `json:"by"`
	Note     string  `json:"note,omitempty"`
	Status   string  `json:"status"` // open, reached, missed, replaced
	SetOn    string  `json:"set_on"`
	Replaces string  `json:"replaces,omitempty"` // the goal that was open for the same thing
}

// GoalsQuery asks for goals.
type GoalsQuery struct {
	Status string `json:"status,omitempty" jsonschema:"only goals of this status; all if absent"`
}

// Goals are all goals of a status, the latest first.
type Goals struct {
	Today string `json:"today"`
	Goals []Goal `json:"goals"`
}

const maxGoals = 20

// ListGoals lists the latest goals.
func (db *DB) ListGoals(ctx context.Context, in GoalsQuery) (*Goals, error) {
	switch in.Status {
	case "", "open", "reached", "missed", "replaced":
	default:
		return nil, invalid("status: %q is unknown. Use open, reached, missed or replaced", in.Status)
	}
	list, err := rows(ctx, db.sql, scanGoal, `SELECT `+goalColumns+` FROM goals WHERE ?1 = '' OR status = ?1 ORDER BY id DESC LIMIT ?2`, in.Status, maxGoals)
	if err != nil {
		return nil, failed("list the goals", err)
	}
	return &Goals{Today: db.today, Goals: list}, nil
}

const goalColumns = `id, kind, coalesce(exercise, ''), target_g, by_day, note, status, set_on, coalesce(replaces, 0)`

func scanGoal(scan func(...any) error, g *Goal) error {
	var id, grams, replaces int64
	err := scan(&id, &g.Kind, &g.Exercise, &grams, &g.By, &g.Note, &g.Status, &g.SetOn, &replaces)
	g.ID, g.Target = GoalID(id), kilos(grams)
	if replaces > 0 {
		g.Replaces = GoalID(replaces)
	}
	return err
}

// GoalID is how goals are named.
func GoalID(n int64) string { return "G-" + strconv.FormatInt(n, 10) }

// GoalInput is a goal to be saved.
type GoalInput struct {
	Kind     string  `json:"kind" jsonschema:"one_rep_max (of an exercise) or body_weight"`
	Exercise string  `json:"exercise,omitempty" jsonschema:"with one_rep_max: id of the exercise, from a result"`
	Target   float64 `json:"target_kg" jsonschema:"what is to be reached"`
	By       string  `json:"by" jsonschema:"the day by which it is to be reached, YYYY-MM-DD, after today"`
	Note     string  `json:"note,omitempty" jsonschema:"one line, in the athlete's language"`
}

const maxNote = 500 // bytes

// SaveGoal saves a goal. An open goal for the same thing is replaced. The same key again changes nothing and returns the goal of
// the first time.
func (db *DB) SaveGoal(ctx context.Context, by Origin, in GoalInput) (*Goal, error) {
	if err := by.valid("save the goal"); err != nil {
		return nil, err
	}
	var g *Goal
	err := db.write(ctx, func(tx *sql.Tx) (err error) {
		if g, err = goal(ctx, tx, by.Key); g != nil || err != nil {
			return err
		}
		grams, err := db.acceptGoal(ctx, tx, &in)
		if err != nil {
			return err
		}
		var replaces int64
		row := tx.QueryRowContext(ctx, `UPDATE goals SET status = 'replaced' WHERE status = 'open' AND kind = ? AND exercise IS ? RETURNING id`,
			in.Kind, null(in.Exercise))
		if err := row.Scan(&replaces); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO goals (set_on, kind, exercise, target_g, by_day, note, status, replaces, run, key)
			VALUES (?, ?, ?, ?, ?, ?, 'open', ?, ?, ?)`, db.today, in.Kind, null(in.Exercise), grams, in.By, in.Note, null(replaces), by.Run, by.Key); err != nil {
			return err
		}
		g, err = goal(ctx, tx, by.Key)
		return err
	})
	if err != nil {
		return nil, failed("save the goal", err)
	}
	return g, nil
}

// acceptGoal checks a goal, puts the exercise's id in the place of its name, and returns the target in grams.
func (db *DB) acceptGoal(ctx context.Context, q query, in *GoalInput) (int64, error) {
	day, err := parseDay(in.By)
	grams, ok := gramsOf(in.Target)
	switch {
	case err != nil:
		return 0, invalid("by: %q is not a day. Write it as YYYY-MM-DD", in.By)
	case in.By <= db.today:
		return 0, invalid("by: %s is not after today, %s", in.By, db.today)
	case in.By > addDays(db.today, 730):
		return 0, invalid("by: %s is more than two years away. Choose a day in %d or %d", in.By, day.Year()-1, day.Year()-2)
	case !ok || grams == 0:
		return 0, invalid("target_kg: %v is not a weight between 0 and %v kg", in.Target, kilos(maxLoad))
	case len(in.Note) > maxNote:
		return 0, invalid("note: it has %d bytes, at most %d are allowed", len(in.Note), maxNote)
	}
	switch in.Kind {
	case "one_rep_max":
		e, err := db.exercise(ctx, q, "exercise", in.Exercise)
		in.Exercise = e.ID
		return grams, err
	case "body_weight":
		if in.Exercise != "" {
			return 0, invalid("exercise: a goal of body_weight has none. Leave it out")
		}
		if u := units[0]; grams < u.least || grams > u.most {
			return 0, invalid("target_kg: %v is no weight of a person", in.Target)
		}
		return grams, nil
	}
	return 0, invalid("kind: %q is unknown. Use one_rep_max or body_weight", in.Kind)
}

// goal finds the goal that was saved under a key; nil where nothing was.
func goal(ctx context.Context, q query, key string) (*Goal, error) {
	g := &Goal{}
	row := q.QueryRowContext(ctx, `SELECT `+goalColumns+` FROM goals WHERE key = ?`, key)
	switch err := scanGoal(row.Scan, g); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	g.Status = "open" // as it was saved: a later goal may have replaced it
	return g, nil
}

// FindGoal returns the goal that was saved under a key; nil where nothing was. It waits for a saving that is under way.
func (db *DB) FindGoal(ctx context.Context, key string) (g *Goal, err error) {
	err = db.write(ctx, func(tx *sql.Tx) (err error) {
		g, err = goal(ctx, tx, key)
		return err
	})
	if err != nil {
		return nil, failed("look up the goal", err)
	}
	return g, nil
}

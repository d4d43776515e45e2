package coach

import (
	"context"
	"slices"
	"time"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// Tools are the coach's tools on a database, in the order in which they are declared.
func Tools(db *DB) []tool.Tool {
	read := []tool.Option{tool.Read(), tool.Timeout(10 * time.Second), tool.Retries(2)}
	with := func(more ...tool.Option) []tool.Option { return append(slices.Clip(read), more...) }
	ask := []tool.Option{tool.Once(), tool.Ask(), tool.Timeout(10 * time.Second), tool.Retries(2)}
	kinds := tool.Enum("kind", "body_weight", "waist", "body_fat")
	return []tool.Tool{
		tool.Func("list_workouts", "Lists the workouts of a time, in order: day, volume and heaviest set of each exercise; also sessions that"+
			" were missed, and injuries, illnesses and holidays. Without arguments: this month.", db.ListWorkouts, read...),
		tool.Func("read_workout", "Reads one workout with all its sets and the records that were set in it.", db.ReadWorkout, read...),
		tool.Func("one_rep_max", "Estimates a one-repetition maximum by a published formula, of one set or of the best set of an exercise in"+
			" a time, and tells the personal record.", db.OneRepMax, with(tool.Enum("formula", "epley", "brzycki"))...),
		tool.Func("compare_periods", "Compares what was done of an exercise in two times: sessions, volume, best set, estimated one-repetition"+
			" maximum, and the change of each.", db.ComparePeriods, with(tool.Enum("formula", "epley", "brzycki"))...),
		tool.Func("search_exercises", "Finds exercises by name, muscle or equipment, in English or Spanish, and gives their ids.", db.SearchExercises, read...),
		tool.Func("read_measurements", "Reads the body measurements of a time, with the change from its first to its last week.", db.ReadMeasurements, with(kinds)...),
		tool.Func("list_goals", "Lists the athlete's goals, the latest first.", db.ListGoals,
			with(tool.Enum("status", "open", "reached", "missed", "replaced"))...),
		tool.Func("write_measurement", "Writes a body measurement down. A value of the same day is replaced.", db.measureTool,
			tool.Idempotent(), tool.Timeout(10*time.Second), tool.Retries(2), tool.Grounded("value"), kinds),
		tool.Func("save_goal", "Saves a goal. The open goal for the same thing, if there is one, is replaced. A person has to approve it.",
			db.goalTool, append(slices.Clip(ask), tool.Grounded("exercise"), tool.CheckWith(db.checkGoal), tool.Enum("kind", "one_rep_max", "body_weight"))...),
		tool.Func("log_workout", "Logs a workout that the athlete has done, with all its sets. A person has to approve it.", db.logTool,
			append(slices.Clip(ask), tool.Requires("search_exercises"), tool.CheckWith(db.checkWorkout))...),
	}
}

func origin(ctx context.Context) Origin {
	call, _ := tool.CallOf(ctx)
	return Origin{Run: call.Run, Key: call.Key}
}

// The writing tools put what they wrote on record as a fact. A failure to do that must not read as if nothing had been written.

func (db *DB) measureTool(ctx context.Context, in MeasurementInput) (*Measurement, error) {
	m, err := db.WriteMeasurement(ctx, origin(ctx), in)
	if err != nil {
		return nil, err
	}
	return m, tool.Unknown(tool.Fact(ctx, factMeasurement, m))
}

func (db *DB) goalTool(ctx context.Context, in GoalInput) (*Goal, error) {
	g, err := db.SaveGoal(ctx, origin(ctx), in)
	if err != nil {
		return nil, err
	}
	return g, tool.Unknown(tool.Fact(ctx, factGoal, g))
}

func (db *DB) logTool(ctx context.Context, in WorkoutInput) (*Logged, error) {
	l, err := db.LogWorkout(ctx, origin(ctx), in)
	if err != nil {
		return nil, err
	}
	return l, tool.Unknown(tool.Fact(ctx, factWorkout, l))
}

// checkGoal tells whether save_goal saved something under the call's key.
func (db *DB) checkGoal(ctx context.Context, _ GoalInput) (happened string, g *Goal, err error) {
	return checked(ctx, factGoal, db.FindGoal)
}

// checkWorkout tells whether log_workout logged something under the call's key.
func (db *DB) checkWorkout(ctx context.Context, _ WorkoutInput) (happened string, l *Logged, err error) {
	return checked(ctx, factWorkout, db.FindWorkout)
}

func checked[T any](ctx context.Context, fact string, find func(context.Context, string) (*T, error)) (happened string, v *T, err error) {
	v, err = find(ctx, origin(ctx).Key)
	switch {
	case err != nil:
		return loop.HappenedUnknown, nil, err
	case v == nil:
		return loop.HappenedNo, nil, nil
	}
	return loop.HappenedYes, v, tool.Fact(ctx, fact, v)
}

// Package coach is the strength coach, an example of ronda on a real database: it reads a year of training, estimates
// one-repetition maxima by published formulas, compares periods, and writes goals, workouts and measurements down: the first two
// only after a person has approved them.
//
// Exercises, workouts, records, measurements and goals live in a SQLite database (DB) that is made and filled at first use by a
// program in this package (year.go says what it does). The athlete is made up. "Today" is the last day of the data, 2026-11-30,
// unless Options says otherwise, so that "this month" means the same whenever the example runs.
//
// It is an agent for conversations: each message is a run of the same session, answers are plain text, and its contract
// (Contract) checks that an answer claims no write that the database does not have.
package coach

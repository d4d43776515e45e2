// Package support is the support assistant, an example of ronda on a real database: it reads a customer's case, looks up the
// policy that was in force on the day of the request, drafts a reply that cites both, and asks before it sends exactly that
// reply to exactly that person.
//
// Cases, orders, policies, drafts and sent replies live in a SQLite database (DB) that is made and filled at first use. The
// shop, its customers and its cases are made up; addresses are in domains reserved for examples, and sending a reply is a row
// in the table of sent replies.
//
// What the task has reached is kept as facts, apart from the transcript: request, policy and draft once a draft is written
// down, receipt once it was sent. That it may be sent is on record as the run's approval.
package support

package support

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

// Origin is the call that a row of the database comes from.
type Origin struct {
	Run string
	Key string // idempotency key of the call: the same in each attempt
}

// DraftInput is a reply as the model wrote it.
type DraftInput struct {
	CaseID        int64  `json:"case_id" jsonschema:"number of the case that is answered"`
	PolicyID      string `json:"policy_id" jsonschema:"the policy that the reply rests on, from find_policy"`
	PolicyVersion int64  `json:"policy_version" jsonschema:"its version in force on the day the case was opened"`
	To            string `json:"to" jsonschema:"e-mail address of the case's customer"`
	Subject       string `json:"subject" jsonschema:"one line, in the customer's language"`
	Body          string `json:"body" jsonschema:"the whole reply, in the customer's language; names the case number and the policy's ref, such as RET-3"`
}

// Draft is a reply that was written down and not sent.
type Draft struct {
	ID            string `json:"draft_id"`
	CaseID        int64  `json:"case_id"`
	PolicyID      string `json:"policy_id"`
	PolicyVersion int64  `json:"policy_version"`
	PolicyRef     string `json:"policy_ref"`
	To            string `json:"to"`
	Subject       string `json:"subject"`
	BodyDigest    string `json:"body_digest"` // sha256:…
}

// Request is what the customer of a draft's case asked for: the fact "request".
type Request struct {
	CaseID   int64  `json:"case_id"`
	Customer string `json:"customer"`
	Day      string `json:"day"` // on which it reached us
	Topic    string `json:"topic"`
	Subject  string `json:"subject"`
	Language string `json:"language"`
}

// Accepted is the policy that a draft rests on: the fact "policy".
type Accepted struct {
	Ref     string `json:"ref"`
	ID      string `json:"policy_id"`
	Version int64  `json:"policy_version"`
	From    string `json:"valid_from"`
	To      string `json:"valid_to,omitempty"`
}

// Drafted is what DraftReply establishes.
type Drafted struct {
	Draft   Draft
	Request Request
	Policy  Accepted
}

const maxBody = 8000 // bytes

// DraftReply writes a draft down. The draft must cite an existing case and a version of a policy that was in force on the day
// the case was opened, go to the case's customer, and name case and policy in its text; else the error is invalid and says
// what is wrong. The id comes from the content: the same draft again is the same row.
func (db *DB) DraftReply(ctx context.Context, by Origin, in DraftInput) (*Drafted, error) {
	var d *Drafted
	err := db.write(ctx, func(tx *sql.Tx) (err error) {
		if d, err = db.accept(ctx, tx, in); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO drafts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
			d.Draft.ID, in.CaseID, in.PolicyID, in.PolicyVersion, in.To, in.Subject, in.Body, d.Draft.BodyDigest,
			by.Run, by.Key, db.stamp())
		return err
	})
	if err != nil {
		return nil, failed("write the draft", err)
	}
	return d, nil
}

// accept checks a draft against the database.
func (db *DB) accept(ctx context.Context, q query, in DraftInput) (*Drafted, error) {
	r := Request{CaseID: in.CaseID}
	var email string
	row := q.QueryRowContext(ctx, `SELECT c.customer, c.opened, c.topic, c.subject, c.language, p.email
		FROM cases c JOIN customers p ON p.id = c.customer WHERE c.id = ?`, in.CaseID)
	switch err := row.Scan(&r.Customer, &r.Day, &r.Topic, &r.Subject, &r.Language, &email); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, invalid("case_id: there is no case %d", in.CaseID)
	case err != nil:
		return nil, err
	}
	p, linked, err := policyOn(ctx, q, in.PolicyID, in.PolicyVersion, r.Day)
	if err != nil {
		return nil, err
	}
	if in.To != email {
		return nil, invalid("to: the customer of case %d has the address %s, not %q", in.CaseID, email, in.To)
	}
	if err := checkText(in, p.Ref); err != nil {
		return nil, err
	}
	if err := checkLinked(ctx, q, in, p.Ref, linked); err != nil {
		return nil, err
	}
	return &Drafted{Request: r, Policy: p, Draft: Draft{
		ID: draftID(in), CaseID: in.CaseID, PolicyID: in.PolicyID, PolicyVersion: in.PolicyVersion, PolicyRef: p.Ref,
		To: in.To, Subject: in.Subject, BodyDigest: digest(in.Body),
	}}, nil
}

// policyOn finds a version of a policy and sees whether it was in force on the day. linked is how many linked cases a reply
// under it must name.
func policyOn(ctx context.Context, q query, id string, version int64, day string) (p Accepted, linked int, err error) {
	p = Accepted{Ref: PolicyRef(id, version), ID: id, Version: version}
	row := q.QueryRowContext(ctx, `SELECT v.valid_from, coalesce(v.valid_to, ''), p.linked
		FROM policy_versions v JOIN policies p ON p.id = v.policy WHERE v.policy = ? AND v.version = ?`, id, version)
	switch err := row.Scan(&p.From, &p.To, &linked); {
	case errors.Is(err, sql.ErrNoRows):
		return p, 0, invalid("policy_id, policy_version: there is no policy %s. find_policy says what there is", p.Ref)
	case err != nil:
		return p, 0, err
	case day < p.From:
		return p, 0, invalid("policy_version: %s is in force from %s, but the case was opened on %s. Use the version of that day", p.Ref, p.From, day)
	case p.To != "" && day > p.To:
		return p, 0, invalid("policy_version: %s was in force until %s, but the case was opened on %s. Use the version of that day", p.Ref, p.To, day)
	}
	return p, linked, nil
}

// checkText looks at what the customer will read.
func checkText(in DraftInput, ref string) error {
	number := strconv.FormatInt(in.CaseID, 10)
	switch {
	case strings.TrimSpace(in.Subject) == "" || strings.ContainsAny(in.Subject, "\r\n"):
		return invalid("subject: it must be one line of text")
	case strings.TrimSpace(in.Body) == "":
		return invalid("body: it is empty")
	case len(in.Body) > maxBody:
		return invalid("body: it has %d bytes, at most %d are allowed", len(in.Body), maxBody)
	case !names(in.Body, number) && !names(in.Subject, number):
		return invalid("body: it does not name the case. Say that this is about case %s", number)
	case !names(in.Body, ref):
		return invalid("body: it does not cite the policy. Name %s where you explain the decision", ref)
	}
	return nil
}

// checkLinked sees whether a reply names as many of the case's linked cases as its policy asks for.
func checkLinked(ctx context.Context, q query, in DraftInput, ref string, linked int) error {
	if linked == 0 {
		return nil
	}
	others, err := rows(ctx, q, func(scan func(...any) error, n *int64) error { return scan(n) },
		`SELECT other FROM case_links WHERE case_id = ? ORDER BY other`, in.CaseID)
	if err != nil {
		return err
	}
	named := 0
	for _, n := range others {
		if names(in.Body, strconv.FormatInt(n, 10)) {
			named++
		}
	}
	switch {
	case len(others) < linked:
		return invalid("policy_id: %s needs %d earlier cases, case %d has %d linked ones. Another policy applies", ref, linked, in.CaseID, len(others))
	case named < linked:
		return invalid("body: under %s it must name at least %d of the earlier cases %v; it names %d", ref, linked, others, named)
	}
	return nil
}

// names reports whether word occurs in text on its own, not as a part of a longer word or number.
func names(text, word string) bool {
	inner := func(r rune, size int) bool { return size > 0 && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	for rest := text; ; {
		i := strings.Index(rest, word)
		if i < 0 {
			return false
		}
		after := rest[i+len(word):]
		before := text[:len(text)-len(after)-len(word)]
		if !inner(utf8.DecodeLastRuneInString(before)) && !inner(utf8.DecodeRuneInString(after)) {
			return true
		}
		rest = after
	}
}

// draftID is the same for the same content: D-case-digest.
func draftID(in DraftInput) string {
	b, _ := json.Marshal(in) // of strings and integers: cannot fail
	sum := sha256.Sum256(b)
	return fmt.Sprintf("D-%d-%s", in.CaseID, hex.EncodeToString(sum[:4]))
}

func digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (db *DB) stamp() string { return db.now().UTC().Format(time.RFC3339) }

// SendInput is a draft as it is to be sent: what a person approves is this text to this address.
type SendInput struct {
	DraftID string `json:"draft_id" jsonschema:"id of the draft, from draft_reply"`
	To      string `json:"to" jsonschema:"the draft's address"`
	Body    string `json:"body" jsonschema:"the draft's whole body, unchanged"`
}

// Receipt says that a reply was sent.
type Receipt struct {
	Receipt    string `json:"receipt"` // M-case-n: the n-th reply of that case
	DraftID    string `json:"draft_id"`
	CaseID     int64  `json:"case_id"`
	To         string `json:"to"`
	BodyDigest string `json:"body_digest"`
	SentAt     string `json:"sent_at"` // RFC 3339, UTC
}

// SendReply sends exactly the draft: another address or text than the draft's is invalid, and so is a draft that this run has
// sent under another key. Sending is the row in the table of sent replies, written in one transaction with the case's new
// status. The same key again changes nothing and returns the receipt of the first time.
func (db *DB) SendReply(ctx context.Context, by Origin, in SendInput) (*Receipt, error) {
	if by.Key == "" || by.Run == "" {
		return nil, &tool.Error{Class: loop.ClassFatal, NotRun: true, Message: "send the reply: the call has no run or no idempotency key"}
	}
	var r *Receipt
	err := db.write(ctx, func(tx *sql.Tx) (err error) {
		if r, err = receipt(ctx, tx, `key = ?`, by.Key); r != nil || err != nil {
			return err
		}
		subject, caseID, err := sendable(ctx, tx, by.Run, in)
		if err != nil {
			return err
		}
		r = &Receipt{DraftID: in.DraftID, CaseID: caseID, To: in.To, BodyDigest: digest(in.Body), SentAt: db.stamp()}
		var before int64
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sent WHERE case_id = ?`, caseID).Scan(&before); err != nil {
			return err
		}
		r.Receipt = fmt.Sprintf("M-%d-%d", caseID, before+1)
		if _, err := tx.ExecContext(ctx, `INSERT INTO sent VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, by.Key, r.Receipt, by.Run,
			in.DraftID, caseID, in.To, subject, in.Body, r.BodyDigest, r.SentAt); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE cases SET status = 'answered' WHERE id = ? AND status = 'open'`, caseID)
		return err
	})
	if err != nil {
		return nil, failed("send the reply", err)
	}
	return r, nil
}

// sendable sees whether what is to be sent is the draft, and returns what the draft says beside it.
func sendable(ctx context.Context, q query, run string, in SendInput) (subject string, caseID int64, err error) {
	var to, body, email string
	row := q.QueryRowContext(ctx, `SELECT d.recipient, d.subject, d.body, d.case_id, p.email FROM drafts d
		JOIN cases c ON c.id = d.case_id JOIN customers p ON p.id = c.customer WHERE d.id = ?`, in.DraftID)
	switch err := row.Scan(&to, &subject, &body, &caseID, &email); {
	case errors.Is(err, sql.ErrNoRows):
		return "", 0, invalid("draft_id: there is no draft %q. Write one with draft_reply first", in.DraftID)
	case err != nil:
		return "", 0, err
	case in.To != to:
		return "", 0, invalid("to: draft %s goes to %s, not to %q. Nothing was sent", in.DraftID, to, in.To)
	case in.Body != body:
		return "", 0, invalid("body: it is not the text of draft %s. Nothing was sent. Write the text that is wanted with draft_reply,"+
			" then send that draft", in.DraftID)
	case email != to:
		return "", 0, invalid("to: the customer's address has changed to %s since draft %s was written. Write a new draft", email, in.DraftID)
	}
	earlier, err := receipt(ctx, q, `run = ? AND draft = ?`, run, in.DraftID)
	if err == nil && earlier != nil {
		err = invalid("draft_id: draft %s was sent already at %s, receipt %s. It is not sent again", in.DraftID, earlier.SentAt, earlier.Receipt)
	}
	return subject, caseID, err
}

// FindReceipt returns the receipt of what was sent under a key; nil where nothing was. It waits for a sending that is under
// way.
func (db *DB) FindReceipt(ctx context.Context, key string) (*Receipt, error) {
	var r *Receipt
	err := db.write(ctx, func(tx *sql.Tx) (err error) {
		r, err = receipt(ctx, tx, `key = ?`, key)
		return err
	})
	if err != nil {
		return nil, failed("look up the receipt", err)
	}
	return r, nil
}

// receipt finds one row of the sent replies; nil where there is none.
func receipt(ctx context.Context, q query, where string, args ...any) (*Receipt, error) {
	r := &Receipt{}
	row := q.QueryRowContext(ctx, `SELECT receipt, draft, case_id, recipient, body_digest, sent_at FROM sent WHERE `+where, args...)
	switch err := row.Scan(&r.Receipt, &r.DraftID, &r.CaseID, &r.To, &r.BodyDigest, &r.SentAt); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return r, nil
}

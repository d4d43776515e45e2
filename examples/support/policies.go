package support

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// PolicyQuery asks which policies apply.
type PolicyQuery struct {
	Topic string `json:"topic" jsonschema:"what the customer asks about, in a word or two, in English or Spanish"`
	Day   string `json:"day" jsonschema:"YYYY-MM-DD: the day on which the customer's request reached us"`
	Lang  string `json:"lang,omitempty" jsonschema:"en or es: language of the texts; en if absent"`
}

// Policy is one version of a policy.
type Policy struct {
	Ref     string `json:"ref"` // how replies cite it: id-version
	ID      string `json:"policy_id"`
	Version int64  `json:"policy_version"`
	Topic   string `json:"topic"`
	Title   string `json:"title"`
	From    string `json:"valid_from"`
	To      string `json:"valid_to,omitempty"` // the last day; absent: still in force
	Text    string `json:"text"`
}

// PolicyResult lists the versions that were in force on the day. Where there is none, Note says so and Topics what exists.
type PolicyResult struct {
	Day      string   `json:"day"`
	Policies []Policy `json:"policies"`
	Note     string   `json:"note,omitempty"`
	Topics   []string `json:"topics,omitempty"`
}

// PolicyRef is how a reply cites a version of a policy.
func PolicyRef(id string, version int64) string { return fmt.Sprintf("%s-%d", id, version) }

// FindPolicy finds the versions of the policies on a topic that were in force on a day.
func (db *DB) FindPolicy(ctx context.Context, in PolicyQuery) (*PolicyResult, error) {
	if _, err := time.Parse(time.DateOnly, in.Day); err != nil {
		return nil, invalid("day: %q is not a day. Write it as YYYY-MM-DD, such as 2026-11-12", in.Day)
	}
	if in.Lang == "" {
		in.Lang = "en"
	}
	if in.Lang != "en" && in.Lang != "es" {
		return nil, invalid("lang: %q. Policies exist in en and es", in.Lang)
	}
	if strings.TrimSpace(in.Topic) == "" {
		return nil, invalid("topic: it is empty. Say what the customer asks about")
	}
	res, err := db.findPolicy(ctx, in)
	return res, failed("find the policy", err)
}

func (db *DB) findPolicy(ctx context.Context, in PolicyQuery) (*PolicyResult, error) {
	valid, err := rows(ctx, db.sql, func(scan func(...any) error, p *Policy) error {
		err := scan(&p.ID, &p.Version, &p.Topic, &p.Title, &p.From, &p.To, &p.Text)
		p.Ref = PolicyRef(p.ID, p.Version)
		return err
	}, `SELECT v.policy, v.version, p.topic, t.title, v.valid_from, coalesce(v.valid_to, ''), t.text
		FROM policy_versions v JOIN policies p ON p.id = v.policy
		JOIN policy_texts t ON t.policy = v.policy AND t.version = v.version AND t.language = ?2
		WHERE v.valid_from <= ?1 AND (v.valid_to IS NULL OR ?1 <= v.valid_to) ORDER BY v.policy`, in.Day, in.Lang)
	if err != nil {
		return nil, err
	}
	words, err := db.policyWords(ctx)
	if err != nil {
		return nil, err
	}
	res := &PolicyResult{Day: in.Day, Policies: []Policy{}}
	for _, p := range valid {
		if onTopic(p, words[p.ID], in.Topic) {
			res.Policies = append(res.Policies, p)
		}
		res.Topics = append(res.Topics, p.Topic)
	}
	if len(res.Policies) > 0 {
		res.Topics = nil
		return res, nil
	}
	slices.Sort(res.Topics)
	res.Note = fmt.Sprintf("No policy on %q was in force on %s. Topics lists what there was a policy on that day. Do not stretch one of"+
		" them: a request that none covers is for a person to decide.", in.Topic, in.Day)
	return res, nil
}

func (db *DB) policyWords(ctx context.Context) (map[string][]string, error) {
	type pair struct{ policy, word string }
	pairs, err := rows(ctx, db.sql, func(scan func(...any) error, p *pair) error { return scan(&p.policy, &p.word) },
		`SELECT policy, word FROM policy_words`)
	words := map[string][]string{}
	for _, p := range pairs {
		words[p.policy] = append(words[p.policy], p.word)
	}
	return words, err
}

// onTopic reports whether a question about topic is about the policy: its id or topic, or one of its words among the
// question's.
func onTopic(p Policy, words []string, topic string) bool {
	q := fold(topic)
	if strings.EqualFold(topic, p.ID) || strings.EqualFold(topic, p.Ref) {
		return true
	}
	asked := strings.FieldsFunc(q, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if strings.Join(asked, "_") == p.Topic {
		return true
	}
	return slices.ContainsFunc(asked, func(w string) bool { return slices.Contains(words, w) })
}

var accents = strings.NewReplacer("á", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ü", "u", "ñ", "n")

// fold makes words comparable that differ in case or in Spanish accents only.
func fold(s string) string { return accents.Replace(strings.ToLower(strings.TrimSpace(s))) }

package support

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"fmt"

	"github.com/goccy/go-yaml"
)

//go:embed data/*.yaml
var dataFiles embed.FS

// data is the content of a new database. Days are written YYYY-MM-DD, money in cents.
type data struct {
	Customers []customerData
	Orders    []orderData
	Policies  []policyData
	Archived  []struct {
		ID    int64
		Moved string
	}
	Cases []caseData
}

type customerData struct{ ID, Name, Email, Language, Country, Since string }

type orderData struct {
	ID, Customer, Placed, Promised, Shipped, Delivered, Currency string
	Shipping                                                     int64
	Payment                                                      string
	Items                                                        []struct {
		SKU, Name       string
		Quantity, Cents int64
	}
	Facts []struct{ Day, Fact string }
}

type policyData struct {
	ID, Topic string
	Linked    int64
	Words     []string
	Title     map[string]string
	Versions  []struct {
		Version  int64
		From, To string
		EN, ES   string
	}
}

type caseData struct {
	ID                                                                 int64
	Customer, Order, Opened, Closed, Channel, Language, Topic, Subject string
	Links                                                              []struct {
		Case int64
		Why  string
	}
	Messages []struct{ Day, Staff, Text string }
}

// loadData reads the embedded files. Unknown keys are errors.
func loadData() (*data, error) {
	var d data
	for _, name := range []string{"orders", "policies", "cases"} {
		file := "data/" + name + ".yaml"
		b, err := dataFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()).Decode(&d); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return &d, nil
}

// inserter runs statements until the first one fails.
type inserter struct {
	ctx context.Context
	tx  *sql.Tx
	err error
}

func (in *inserter) exec(what any, text string, args ...any) {
	if in.err != nil {
		return
	}
	if _, err := in.tx.ExecContext(in.ctx, text, args...); err != nil {
		in.err = fmt.Errorf("%v: %w", what, err)
	}
}

// null is NULL for the empty string.
func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (d *data) insert(ctx context.Context, tx *sql.Tx) error {
	in := &inserter{ctx: ctx, tx: tx}
	for _, c := range d.Customers {
		in.exec(c.ID, `INSERT INTO customers VALUES (?, ?, ?, ?, ?, ?)`, c.ID, c.Name, c.Email, c.Language, c.Country, c.Since)
	}
	for _, o := range d.Orders {
		in.order(o)
	}
	for _, p := range d.Policies {
		in.policy(p)
	}
	for _, a := range d.Archived {
		in.exec(a.ID, `INSERT INTO archived_cases VALUES (?, ?)`, a.ID, a.Moved)
	}
	for _, c := range d.Cases {
		in.supportCase(c)
	}
	return in.err
}

func (in *inserter) order(o orderData) {
	in.exec(o.ID, `INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, o.ID, o.Customer, o.Placed, o.Promised,
		null(o.Shipped), null(o.Delivered), o.Currency, o.Shipping, o.Payment)
	for n, i := range o.Items {
		in.exec(o.ID, `INSERT INTO order_items VALUES (?, ?, ?, ?, ?, ?)`, o.ID, n+1, i.SKU, i.Name, i.Quantity, i.Cents)
	}
	for n, f := range o.Facts {
		in.exec(o.ID, `INSERT INTO order_facts VALUES (?, ?, ?, ?)`, o.ID, n+1, f.Day, f.Fact)
	}
}

func (in *inserter) policy(p policyData) {
	in.exec(p.ID, `INSERT INTO policies VALUES (?, ?, ?)`, p.ID, p.Topic, p.Linked)
	for _, w := range p.Words {
		in.exec(p.ID, `INSERT INTO policy_words VALUES (?, ?)`, p.ID, fold(w))
	}
	for _, v := range p.Versions {
		in.exec(p.ID, `INSERT INTO policy_versions VALUES (?, ?, ?, ?)`, p.ID, v.Version, v.From, null(v.To))
		for _, t := range [][2]string{{"en", v.EN}, {"es", v.ES}} {
			in.exec(p.ID, `INSERT INTO policy_texts VALUES (?, ?, ?, ?, ?)`, p.ID, v.Version, t[0], p.Title[t[0]], t[1])
		}
	}
}

func (in *inserter) supportCase(c caseData) {
	status := "open"
	if c.Closed != "" {
		status = "closed"
	}
	in.exec(c.ID, `INSERT INTO cases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, c.ID, c.Customer, null(c.Order), c.Opened,
		null(c.Closed), c.Channel, c.Language, c.Topic, c.Subject, status)
	for _, l := range c.Links {
		in.exec(c.ID, `INSERT INTO case_links VALUES (?, ?, ?)`, c.ID, l.Case, l.Why)
	}
	words := ""
	for n, m := range c.Messages {
		day, author := c.Opened, "customer"
		switch {
		case m.Staff != "":
			day, author = m.Staff, "staff"
		case m.Day != "":
			day = m.Day
		}
		in.exec(c.ID, `INSERT INTO messages VALUES (?, ?, ?, ?, ?)`, c.ID, n+1, day, author, m.Text)
		words += m.Text + "\n"
	}
	in.exec(c.ID, `INSERT INTO case_words (rowid, subject, topic, body) VALUES (?, ?, ?, ?)`, c.ID, c.Subject, c.Topic, words)
}

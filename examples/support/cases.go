package support

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// CaseQuery names a case.
type CaseQuery struct {
	CaseID int64 `json:"case_id" jsonschema:"number of the case, such as 4812"`
}

// Case is a support case with all that the desk knows of it. Days are YYYY-MM-DD.
type Case struct {
	ID       int64     `json:"case_id"`
	Status   string    `json:"status"` // open, answered, closed
	Opened   string    `json:"opened"` // the day that decides which version of a policy applies
	Closed   string    `json:"closed,omitempty"`
	Channel  string    `json:"channel"`
	Language string    `json:"language"` // of the customer: en, es
	Topic    string    `json:"topic"`    // as noted at the desk
	Subject  string    `json:"subject"`
	Customer Customer  `json:"customer"`
	Order    *Order    `json:"order,omitempty"`
	Messages []Message `json:"messages"`
	Links    []Link    `json:"linked_cases"`
	Replies  []Reply   `json:"replies_sent"` // by this assistant
}

// Customer is who wrote.
type Customer struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Email    string `json:"email"`
	Language string `json:"language"`
	Country  string `json:"country"`
	Since    string `json:"customer_since"`
}

// Order is an order with what our own systems know of it.
type Order struct {
	ID        string `json:"id"`
	Placed    string `json:"placed"`
	Promised  string `json:"promised"` // the day of delivery that the customer was told
	Shipped   string `json:"shipped,omitempty"`
	Delivered string `json:"delivered,omitempty"`
	Items     []Item `json:"items"`
	Shipping  string `json:"delivery_charge"`
	Total     string `json:"total"`
	Payment   string `json:"payment"`
	Facts     []Fact `json:"facts"`
}

// Item is a line of an order. Price is of one piece.
type Item struct {
	SKU      string `json:"sku"`
	Name     string `json:"name"`
	Quantity int64  `json:"quantity"`
	Price    string `json:"price"`
}

// Fact is what one of our systems recorded of an order.
type Fact struct {
	Day  string `json:"day"`
	Fact string `json:"fact"`
}

// Message is one message of a case.
type Message struct {
	Day    string `json:"day"`
	Author string `json:"author"` // customer, staff
	Body   string `json:"body"`
}

// Link is another case that this one has to do with.
type Link struct {
	CaseID int64  `json:"case_id"`
	Reason string `json:"reason"`
}

// Reply is a reply that was sent.
type Reply struct {
	Receipt string `json:"receipt"`
	SentAt  string `json:"sent_at"`
	Subject string `json:"subject"`
}

// ReadCase reads a case. A number that does not exist is invalid; a case that was moved to the archive is an ordinary error.
func (db *DB) ReadCase(ctx context.Context, in CaseQuery) (*Case, error) {
	c, err := db.readCase(ctx, in.CaseID)
	return c, failed("read the case", err)
}

func (db *DB) readCase(ctx context.Context, id int64) (*Case, error) {
	c := &Case{ID: id}
	var order, closed sql.NullString
	row := db.sql.QueryRowContext(ctx, `SELECT c.status, c.opened, c.closed, c.channel, c.language, c.topic, c.subject, c.order_id,
		p.id, p.name, p.email, p.language, p.country, p.since
		FROM cases c JOIN customers p ON p.id = c.customer WHERE c.id = ?`, id)
	err := row.Scan(&c.Status, &c.Opened, &closed, &c.Channel, &c.Language, &c.Topic, &c.Subject, &order,
		&c.Customer.ID, &c.Customer.Name, &c.Customer.Email, &c.Customer.Language, &c.Customer.Country, &c.Customer.Since)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, db.noCase(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	c.Closed = closed.String
	if order.Valid {
		if c.Order, err = db.readOrder(ctx, order.String); err != nil {
			return nil, err
		}
	}
	return c, db.readParts(ctx, c)
}

// noCase says why there is no such case.
func (db *DB) noCase(ctx context.Context, id int64) error {
	var moved string
	switch err := db.sql.QueryRowContext(ctx, `SELECT moved FROM archived_cases WHERE id = ?`, id).Scan(&moved); {
	case err == nil:
		return ordinary("case %d was moved to the archive on %s and cannot be read from here. Only the back office can look it up", id, moved)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	var first, last int64
	if err := db.sql.QueryRowContext(ctx, `SELECT min(id), max(id) FROM cases`).Scan(&first, &last); err != nil {
		return err
	}
	return invalid("there is no case %d. Cases here are numbered %d to %d; search_cases finds one by its words or its customer", id, first, last)
}

func (db *DB) readOrder(ctx context.Context, id string) (*Order, error) {
	o := &Order{ID: id}
	var shipped, delivered sql.NullString
	var currency string
	var total int64
	row := db.sql.QueryRowContext(ctx, `SELECT placed, promised, shipped, delivered, currency, shipping_cents, payment FROM orders
		WHERE id = ?`, id)
	if err := row.Scan(&o.Placed, &o.Promised, &shipped, &delivered, &currency, &total, &o.Payment); err != nil {
		return nil, err
	}
	o.Shipped, o.Delivered, o.Shipping = shipped.String, delivered.String, money(total, currency)
	var err error
	o.Items, err = rows(ctx, db.sql, func(scan func(...any) error, i *Item) error {
		var cents int64
		err := scan(&i.SKU, &i.Name, &i.Quantity, &cents)
		i.Price = money(cents, currency)
		total += cents * i.Quantity
		return err
	}, `SELECT sku, name, quantity, price_cents FROM order_items WHERE order_id = ? ORDER BY line`, id)
	if err != nil {
		return nil, err
	}
	o.Total = money(total, currency)
	o.Facts, err = rows(ctx, db.sql, func(scan func(...any) error, f *Fact) error { return scan(&f.Day, &f.Fact) },
		`SELECT day, fact FROM order_facts WHERE order_id = ? ORDER BY n`, id)
	return o, err
}

// readParts fills the lists of a case.
func (db *DB) readParts(ctx context.Context, c *Case) (err error) {
	c.Messages, err = rows(ctx, db.sql, func(scan func(...any) error, m *Message) error { return scan(&m.Day, &m.Author, &m.Body) },
		`SELECT day, author, body FROM messages WHERE case_id = ? ORDER BY n`, c.ID)
	if err != nil {
		return err
	}
	c.Links, err = rows(ctx, db.sql, func(scan func(...any) error, l *Link) error { return scan(&l.CaseID, &l.Reason) },
		`SELECT other, reason FROM case_links WHERE case_id = ? ORDER BY other`, c.ID)
	if err != nil {
		return err
	}
	c.Replies, err = rows(ctx, db.sql, func(scan func(...any) error, r *Reply) error { return scan(&r.Receipt, &r.SentAt, &r.Subject) },
		`SELECT receipt, sent_at, subject FROM sent WHERE case_id = ? ORDER BY sent_at, receipt`, c.ID)
	return err
}

func money(cents int64, currency string) string {
	return fmt.Sprintf("%d.%02d %s", cents/100, cents%100, currency)
}

// SearchQuery says which cases to look for. At least one of its fields must be set.
type SearchQuery struct {
	Query    string `json:"query,omitempty" jsonschema:"words that occur in the case: a product, an order number, a topic"`
	Customer string `json:"customer,omitempty" jsonschema:"the customer's id, e-mail address, or a part of the name"`
}

// Found is a case that a search found.
type Found struct {
	ID       int64  `json:"case_id"`
	Status   string `json:"status"`
	Opened   string `json:"opened"`
	Topic    string `json:"topic"`
	Subject  string `json:"subject"`
	Customer string `json:"customer"`
	Order    string `json:"order,omitempty"`
}

// SearchResult lists the best matches first.
type SearchResult struct {
	Cases []Found `json:"cases"`
	More  int     `json:"more,omitempty"` // matches that were left out
}

const maxFound = 10

// SearchCases finds cases by their words, their order or their customer.
func (db *DB) SearchCases(ctx context.Context, in SearchQuery) (*SearchResult, error) {
	match, customer := matchAny(in.Query), strings.TrimSpace(in.Customer)
	if match == "" && customer == "" {
		return nil, invalid("query and customer: at least one must say something to look for")
	}
	found, err := rows(ctx, db.sql, func(scan func(...any) error, f *Found) error {
		return scan(&f.ID, &f.Status, &f.Opened, &f.Topic, &f.Subject, &f.Customer, &f.Order)
	}, `SELECT c.id, c.status, c.opened, c.topic, c.subject, p.name, coalesce(c.order_id, '')
		FROM cases c JOIN customers p ON p.id = c.customer
		LEFT JOIN (SELECT rowid AS id, rank FROM case_words WHERE case_words MATCH ?4) w ON w.id = c.id
		WHERE (?1 = '' OR w.id IS NOT NULL OR instr(upper(?3), c.order_id) > 0)
		AND (?2 = '' OR p.id = ?2 OR p.email = ?2 COLLATE NOCASE OR instr(lower(p.name), lower(?2)) > 0)
		ORDER BY coalesce(w.rank, 0), c.id DESC`, match, customer, in.Query, cmp.Or(match, `""`)) // an empty phrase matches nothing
	if err != nil {
		return nil, failed("search the cases", err)
	}
	res := &SearchResult{Cases: found}
	if n := len(found) - maxFound; n > 0 {
		res.Cases, res.More = found[:maxFound], n
	}
	return res, nil
}

// matchAny is a full-text expression for any of the words of a text: quoted, so that nothing in it is an operator. What a
// hyphen joins, such as an order number, is one word.
func matchAny(text string) string {
	var words []string
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' }) {
		if w = strings.Trim(w, "-"); len(w) > 1 {
			words = append(words, `"`+w+`"`)
		}
	}
	return strings.Join(words, " OR ")
}

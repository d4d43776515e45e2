package support

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ronda-go/ronda/loop"
	"github.com/ronda-go/ronda/tool"
)

func wantClass(t *testing.T, err error, class loop.Class, contains string) {
	t.Helper()
	var e *tool.Error
	if !errors.As(err, &e) || e.Class != class || !strings.Contains(e.Message, contains) {
		t.Errorf("error %v (%T), want class %s with %q", err, err, class, contains)
	}
}

func draft4812() DraftInput {
	return DraftInput{CaseID: 4812, PolicyID: "RET", PolicyVersion: 3, To: "ana@example.com", Subject: "Su lámpara",
		Body: "Hola, Ana:\n\nPuede devolverla (caso 4812, política RET-3)."}
}

func TestReadCase(t *testing.T) {
	db := open(t)
	got, err := db.ReadCase(t.Context(), CaseQuery{CaseID: 4812})
	if err != nil {
		t.Fatal(err)
	}
	got.Messages[0].Body = got.Messages[0].Body[:4]
	want := &Case{
		ID: 4812, Status: "open", Opened: "2026-11-12", Channel: "email", Language: "es", Topic: "refund", Subject: "Devolver la lámpara Nogal",
		Customer: Customer{ID: "C-1031", Name: "Ana Beltrán Ruiz", Email: "ana@example.com", Language: "es", Country: "ES", Since: "2024-11-18"},
		Order: &Order{ID: "A-20931", Placed: "2026-10-30", Promised: "2026-11-09", Shipped: "2026-11-02", Delivered: "2026-11-05",
			Items:    []Item{{SKU: "ILU-204", Name: "Lámpara de pie Nogal", Quantity: 1, Price: "89.90 EUR"}},
			Shipping: "4.95 EUR", Total: "94.85 EUR", Payment: "card ending 4421",
			Facts: []Fact{{Day: "2026-10-30", Fact: "Payment captured once: 94.85 EUR"}, {Day: "2026-11-05", Fact: "Carrier: delivered"}}},
		Messages: []Message{{Day: "2026-11-12", Author: "customer", Body: "Hola"}},
		Links:    []Link{}, Replies: []Reply{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadCaseRefuses(t *testing.T) {
	db := open(t)
	_, err := db.ReadCase(t.Context(), CaseQuery{CaseID: 9999})
	wantClass(t, err, loop.ClassInvalid, "4780 to 4825")
	_, err = db.ReadCase(t.Context(), CaseQuery{CaseID: 3977})
	wantClass(t, err, loop.ClassError, "archive on 2026-06-30")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = db.ReadCase(gone, CaseQuery{CaseID: 4812})
	wantClass(t, err, loop.ClassError, "context canceled")
}

func TestSearchCases(t *testing.T) {
	db := open(t)
	for _, c := range []struct {
		in   SearchQuery
		want []int64
		more int
	}{
		{SearchQuery{Customer: "MARTA.olmedo@example.com"}, []int64{4821, 4799, 4783}, 0},
		{SearchQuery{Customer: "C-1076"}, []int64{4815, 4802}, 0},
		{SearchQuery{Query: "a-20799"}, []int64{4815}, 0},
		{SearchQuery{Query: "dueño OR (\"", Customer: "olmedo"}, []int64{}, 0},
		{SearchQuery{Query: "cafetera calienta", Customer: "Marta"}, []int64{4821, 4799, 4783}, 0},
		{SearchQuery{Query: "lampara nogal devolver"}, []int64{4812}, -1},
		{SearchQuery{Query: "préstamo"}, []int64{4818}, 0},
		{SearchQuery{Query: "caso"}, nil, 1},
	} {
		got, err := db.SearchCases(t.Context(), c.in)
		if err != nil {
			t.Fatalf("%+v: %v", c.in, err)
		}
		ids := []int64{}
		for _, f := range got.Cases {
			ids = append(ids, f.ID)
		}
		switch {
		case c.more < 0:
			ids = ids[:1]
		case c.more > 0:
			if len(ids) != maxFound || got.More < c.more {
				t.Errorf("%+v: %d found, %d more", c.in, len(ids), got.More)
			}
			continue
		}
		if !cmp.Equal(ids, c.want) {
			t.Errorf("%+v: found %v, want %v", c.in, ids, c.want)
		}
	}
	_, err := db.SearchCases(t.Context(), SearchQuery{Query: " ?! "})
	wantClass(t, err, loop.ClassInvalid, "at least one")
}

func TestFindPolicy(t *testing.T) {
	db := open(t)
	for _, c := range []struct {
		topic, day string
		want       []string
	}{
		{"refund", "2026-10-31", []string{"RET-2"}},
		{"refund", "2026-11-01", []string{"RET-3"}},
		{"Devolución", "2024-03-01", []string{"RET-1"}},
		{"devolución", "2024-02-29", nil},
		{"late delivery", "2026-10-14", []string{"LAT-1"}},
		{"late_delivery", "2026-10-15", []string{"LAT-2"}},
		{"price match", "2026-10-31", []string{"PRM-1"}},
		{"price match", "2026-11-01", nil},
		{"warranty, repeated failure", "2026-11-24", []string{"RPT-1", "WAR-2"}},
		{"WAR", "2025-12-31", []string{"WAR-1"}},
		{"cobro duplicado", "2026-11-09", []string{"DBL-2"}},
		{"gift card", "2026-11-16", []string{"GFT-2"}},
		{"préstamo de muebles", "2026-11-19", nil},
		{"loan", "2026-11-19", nil},
		{"alquiler", "2026-11-19", nil},
	} {
		res, err := db.FindPolicy(t.Context(), PolicyQuery{Topic: c.topic, Day: c.day})
		if err != nil {
			t.Fatalf("%s on %s: %v", c.topic, c.day, err)
		}
		var refs []string
		for _, p := range res.Policies {
			refs = append(refs, p.Ref)
		}
		if !cmp.Equal(refs, c.want) || (res.Note == "") != (len(c.want) > 0) {
			t.Errorf("%s on %s: %v with note %q, want %v", c.topic, c.day, refs, res.Note, c.want)
		}
	}
	es, err := db.FindPolicy(t.Context(), PolicyQuery{Topic: "refund", Day: "2026-11-12", Lang: "es"})
	if err != nil || es.Policies[0].Title != "Devoluciones y reembolsos" || es.Policies[0].From != "2026-11-01" {
		t.Errorf("in Spanish: %+v, %v", es, err)
	}
	for _, c := range []struct {
		in   PolicyQuery
		want string
	}{
		{PolicyQuery{Topic: "refund", Day: "12/11/2026"}, "day:"},
		{PolicyQuery{Topic: " ", Day: "2026-11-12"}, "topic:"},
		{PolicyQuery{Topic: "refund", Day: "2026-11-12", Lang: "fr"}, "lang:"},
	} {
		_, err := db.FindPolicy(t.Context(), c.in)
		wantClass(t, err, loop.ClassInvalid, c.want)
	}
}

func TestDraftReply(t *testing.T) {
	db := open(t)
	got, err := db.DraftReply(t.Context(), Origin{Run: "r1", Key: "k1"}, draft4812())
	if err != nil {
		t.Fatal(err)
	}
	want := &Drafted{
		Draft: Draft{ID: draftID(draft4812()), CaseID: 4812, PolicyID: "RET", PolicyVersion: 3, PolicyRef: "RET-3",
			To: "ana@example.com", Subject: "Su lámpara", BodyDigest: digest(draft4812().Body)},
		Request: Request{CaseID: 4812, Customer: "C-1031", Day: "2026-11-12", Topic: "refund", Subject: "Devolver la lámpara Nogal", Language: "es"},
		Policy:  Accepted{Ref: "RET-3", ID: "RET", Version: 3, From: "2026-11-01"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	again, err := db.DraftReply(t.Context(), Origin{Run: "r2", Key: "k2"}, draft4812())
	if err != nil || !cmp.Equal(again, got) {
		t.Errorf("the same draft again: %+v, %v", again, err)
	}
	if n := count(t, db, `SELECT count(*) FROM drafts`); n != 1 {
		t.Errorf("%d drafts, want 1", n)
	}
	if _, err := db.sql.Exec(`UPDATE drafts SET body = 'x'`); err == nil {
		t.Error("a draft could be changed")
	}
}

func TestDraftReplyRefuses(t *testing.T) {
	repeat := DraftInput{CaseID: 4821, PolicyID: "RPT", PolicyVersion: 1, To: "marta.olmedo@example.com", Subject: "s",
		Body: "caso 4821, RPT-1, casos 4783 y 4799"}
	for name, c := range map[string]struct {
		from DraftInput
		edit func(*DraftInput)
		want string
	}{
		"no such case":           {draft4812(), func(d *DraftInput) { d.CaseID = 1 }, "case_id:"},
		"no such policy":         {draft4812(), func(d *DraftInput) { d.PolicyID = "XYZ" }, "no policy XYZ-3"},
		"no such version":        {draft4812(), func(d *DraftInput) { d.PolicyVersion = 7 }, "no policy RET-7"},
		"superseded version":     {draft4812(), func(d *DraftInput) { d.PolicyVersion = 2 }, "until 2026-10-31"},
		"version of later":       {draft4812(), func(d *DraftInput) { d.CaseID, d.To = 4792, "rosa.tellez@example.com" }, "from 2026-11-01"},
		"withdrawn policy":       {draft4812(), func(d *DraftInput) { d.PolicyID, d.PolicyVersion = "PRM", 1 }, "until 2026-10-31"},
		"somebody else":          {draft4812(), func(d *DraftInput) { d.To = "marta.olmedo@example.com" }, "to:"},
		"other spelling":         {draft4812(), func(d *DraftInput) { d.To = "Ana@example.com" }, "to:"},
		"empty subject":          {draft4812(), func(d *DraftInput) { d.Subject = " " }, "subject:"},
		"two headers":            {draft4812(), func(d *DraftInput) { d.Subject = "a\r\nBcc: b@example.com" }, "subject:"},
		"empty body":             {draft4812(), func(d *DraftInput) { d.Body = "\n" }, "body:"},
		"case not named":         {draft4812(), func(d *DraftInput) { d.Body = "RET-3 48120 A-4812x" }, "case 4812"},
		"policy not cited":       {draft4812(), func(d *DraftInput) { d.Body = "caso 4812, RET-33" }, "Name RET-3"},
		"too long":               {draft4812(), func(d *DraftInput) { d.Body += strings.Repeat("a", maxBody) }, "body:"},
		"one older case only":    {repeat, func(d *DraftInput) { d.Body = "caso 4821, RPT-1, caso 4783" }, "it names 1"},
		"policy of another kind": {repeat, func(d *DraftInput) { d.CaseID, d.To, d.Body = 4812, "ana@example.com", "4812 RPT-1" }, "has 0 linked"},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			if _, err := db.DraftReply(t.Context(), Origin{}, c.from); err != nil {
				t.Fatalf("unedited: %v", err)
			}
			c.edit(&c.from)
			_, err := db.DraftReply(t.Context(), Origin{}, c.from)
			wantClass(t, err, loop.ClassInvalid, c.want)
			if n := count(t, db, `SELECT count(*) FROM drafts`); n != 1 {
				t.Errorf("%d drafts, want only the first", n)
			}
		})
	}
}

func drafted(t *testing.T, db *DB) SendInput {
	t.Helper()
	d, err := db.DraftReply(t.Context(), Origin{Run: "r1", Key: "k1"}, draft4812())
	if err != nil {
		t.Fatal(err)
	}
	return SendInput{DraftID: d.Draft.ID, To: "ana@example.com", Body: draft4812().Body}
}

func TestSendReplyOnce(t *testing.T) {
	db := open(t)
	in := drafted(t, db)
	by := Origin{Run: "r1", Key: "k2"}
	if r, err := db.FindReceipt(t.Context(), by.Key); r != nil || err != nil {
		t.Errorf("before: %+v, %v", r, err)
	}
	want := &Receipt{Receipt: "M-4812-1", DraftID: in.DraftID, CaseID: 4812, To: in.To, BodyDigest: digest(in.Body), SentAt: "2026-11-30T09:30:00Z"}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got, err := db.SendReply(context.Background(), by, in); err != nil || !cmp.Equal(got, want) {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		})
	}
	wg.Wait()
	if got, err := db.FindReceipt(t.Context(), by.Key); err != nil || !cmp.Equal(got, want) {
		t.Errorf("after: %+v, %v", got, err)
	}
	if n := count(t, db, `SELECT count(*) FROM sent`); n != 1 {
		t.Fatalf("%d sent replies, want 1", n)
	}
	for _, s := range []string{`UPDATE sent SET body = 'x'`, `DELETE FROM sent`} {
		if _, err := db.sql.Exec(s); err == nil {
			t.Errorf("%s was possible", s)
		}
	}
	c, err := db.ReadCase(t.Context(), CaseQuery{CaseID: 4812})
	if err != nil || c.Status != "answered" || !cmp.Equal(c.Replies, []Reply{{"M-4812-1", "2026-11-30T09:30:00Z", "Su lámpara"}}) {
		t.Errorf("the case after it: %+v, %v", c, err)
	}
	if _, err := db.SendReply(t.Context(), Origin{Run: "r1", Key: "k3"}, in); true {
		wantClass(t, err, loop.ClassInvalid, "M-4812-1")
	}
	second, err := db.SendReply(t.Context(), Origin{Run: "r2", Key: "k4"}, in)
	if err != nil || second.Receipt != "M-4812-2" {
		t.Errorf("another run, approved anew: %+v, %v", second, err)
	}
}

func TestSendReplyRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		by    Origin
		edit  func(*SendInput)
		class loop.Class
		want  string
	}{
		"altered body":  {Origin{"r1", "k2"}, func(s *SendInput) { s.Body += "\n\nP.D. Y un vale." }, loop.ClassInvalid, "not the text of draft"},
		"other address": {Origin{"r1", "k2"}, func(s *SendInput) { s.To = "eve@example.com" }, loop.ClassInvalid, "goes to ana@example.com"},
		"no such draft": {Origin{"r1", "k2"}, func(s *SendInput) { s.DraftID = "D-4812-00000000" }, loop.ClassInvalid, "no draft"},
		"no key":        {Origin{"r1", ""}, func(*SendInput) {}, loop.ClassFatal, "idempotency key"},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			in := drafted(t, db)
			c.edit(&in)
			_, err := db.SendReply(t.Context(), c.by, in)
			wantClass(t, err, c.class, c.want)
			if n := count(t, db, `SELECT count(*) FROM sent`); n != 0 {
				t.Errorf("%d sent replies", n)
			}
		})
	}
}

func TestSendReplyChangedAddress(t *testing.T) {
	db := open(t)
	in := drafted(t, db)
	if _, err := db.sql.Exec(`UPDATE customers SET email = 'ana.beltran@example.com' WHERE id = 'C-1031'`); err != nil {
		t.Fatal(err)
	}
	_, err := db.SendReply(t.Context(), Origin{"r1", "k2"}, in)
	wantClass(t, err, loop.ClassInvalid, "ana.beltran@example.com")
}

func TestSendReplyTransaction(t *testing.T) {
	db := open(t)
	in := drafted(t, db)
	if _, err := db.sql.Exec(`CREATE TRIGGER full BEFORE UPDATE ON cases BEGIN SELECT RAISE(ABORT, 'disk full'); END`); err != nil {
		t.Fatal(err)
	}
	_, err := db.SendReply(t.Context(), Origin{"r1", "k2"}, in)
	wantClass(t, err, loop.ClassError, "disk full")
	if n := count(t, db, `SELECT count(*) FROM sent`); n != 0 {
		t.Errorf("%d rows stayed of a sending that failed", n)
	}
}

func TestCheckSent(t *testing.T) {
	db := open(t)
	in := drafted(t, db)
	d, err := db.DraftReply(t.Context(), Origin{}, draft4812())
	if err != nil {
		t.Fatal(err)
	}
	r, err := db.SendReply(t.Context(), Origin{"r1", "k2"}, in)
	if err != nil {
		t.Fatal(err)
	}
	other := draft4812()
	other.Subject = "Otra"
	o, err := db.DraftReply(t.Context(), Origin{}, other)
	if err != nil {
		t.Fatal(err)
	}
	forged, moved := *r, d.Draft
	forged.Receipt = "M-4812-9"
	moved.PolicyVersion = 2
	for name, c := range map[string]struct {
		d    Draft
		r    Receipt
		want string
	}{
		"holds":                {d.Draft, *r, ""},
		"no such draft":        {Draft{ID: "D-1"}, *r, "draft D-1 in the database"},
		"draft differs":        {moved, *r, "as the fact says"},
		"no such receipt":      {d.Draft, forged, "receipt M-4812-9"},
		"receipt differs":      {d.Draft, Receipt{Receipt: r.Receipt}, "as the fact says"},
		"receipt of another":   {o.Draft, *r, "the sending of draft " + o.Draft.ID},
		"nothing at all holds": {Draft{}, Receipt{}, "draft  in the database"},
	} {
		missing, err := db.CheckSent(t.Context(), c.d, c.r)
		if err != nil || (c.want == "") != (len(missing) == 0) ||
			c.want != "" && !slices.ContainsFunc(missing, func(m string) bool { return strings.Contains(m, c.want) }) {
			t.Errorf("%s: missing %q, %v; want %q", name, missing, err, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]bool{
		"RET-3": true, "(RET-3)": true, "según «RET-3», en vigor": true, "RET-3—ya": true, "RET-33 and RET-3": true, "case\nRET-3.": true,
		"RET-33": false, "ARET-3": false, "ñRET-3": false, "RET-3ª": false, "": false, "RET 3": false,
	} {
		if got := names(text, "RET-3"); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzSearchCases(f *testing.F) {
	db, err := Open(Memory)
	if err != nil {
		f.Fatal(err)
	}
	defer db.Close()
	for _, s := range []string{"lámpara", `"`, "a* OR NEAR(b)", "subject:x", "-", "A-20931", "x\x00y", "\xff"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, query, customer string) {
		_, err := db.SearchCases(t.Context(), SearchQuery{Query: query, Customer: customer})
		var e *tool.Error
		if err != nil && (!errors.As(err, &e) || e.Class != loop.ClassInvalid) {
			t.Errorf("%q, %q: %v", query, customer, err)
		}
	})
}

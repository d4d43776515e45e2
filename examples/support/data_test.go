package support

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var exampleDomain = regexp.MustCompile(`@(example\.(com|org|net)|[a-z]+\.example)$`)

// ref is how texts cite a policy; the letters are those of a policy's id.
var ref = regexp.MustCompile(`\b([A-Z]{3})-([0-9]+)\b`)

func load(t *testing.T) *data {
	t.Helper()
	d, err := loadData()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *data) order(id string) *orderData {
	i := slices.IndexFunc(d.Orders, func(o orderData) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return &d.Orders[i]
}

func (d *data) supportCase(id int64) *caseData {
	i := slices.IndexFunc(d.Cases, func(c caseData) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return &d.Cases[i]
}

func TestCustomers(t *testing.T) {
	d := load(t)
	for _, c := range d.Customers {
		if !exampleDomain.MatchString(c.Email) {
			t.Errorf("%s: %s is in no domain for examples", c.ID, c.Email)
		}
		used := slices.ContainsFunc(d.Cases, func(k caseData) bool { return k.Customer == c.ID })
		if !used {
			t.Errorf("%s %s has no case", c.ID, c.Name)
		}
	}
}

func TestPolicyVersions(t *testing.T) {
	for _, p := range load(t).Policies {
		last := ""
		for i, v := range p.Versions {
			if v.Version != int64(i)+1 {
				t.Errorf("%s: version %d is the %dth", p.ID, v.Version, i+1)
			}
			if v.From <= last || v.To != "" && v.To < v.From {
				t.Errorf("%s-%d: from %s to %q after %s", p.ID, v.Version, v.From, v.To, last)
			}
			if i > 0 && v.From != nextDay(t, last) {
				t.Errorf("%s-%d: a gap between %s and %s", p.ID, v.Version, last, v.From)
			}
			if v.To == "" && i < len(p.Versions)-1 {
				t.Errorf("%s-%d: has a successor and no last day", p.ID, v.Version)
			}
			last = v.To
			for lang, text := range map[string]string{"en": v.EN, "es": v.ES} {
				if len(text) < 60 || p.Title[lang] == "" {
					t.Errorf("%s-%d: no text or title in %s", p.ID, v.Version, lang)
				}
			}
			if got, want := figures(v.EN), figures(v.ES); !cmp.Equal(got, want) {
				t.Errorf("%s-%d: the languages differ in their figures: %v, %v", p.ID, v.Version, got, want)
			}
		}
	}
}

var figure = regexp.MustCompile(`[0-9]+([.,][0-9]+)?`)

func figures(text string) []string {
	list := figure.FindAllString(text, -1)
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], ",", ".")
	}
	slices.Sort(list)
	return list
}

func nextDay(t *testing.T, day string) string {
	t.Helper()
	d, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	return d.AddDate(0, 0, 1).Format(time.DateOnly)
}

var lateFact = regexp.MustCompile(`(\d+) working days after the promised day`)

func TestOrders(t *testing.T) {
	for _, o := range load(t).Orders {
		days := []string{o.Placed}
		for _, d := range []string{o.Shipped, o.Delivered} {
			if d != "" {
				days = append(days, d)
			}
		}
		if !slices.IsSorted(days) || o.Promised < o.Placed || len(o.Items) == 0 || len(o.Facts) == 0 {
			t.Errorf("%s: days %v, promised %s, %d items, %d facts", o.ID, days, o.Promised, len(o.Items), len(o.Facts))
		}
		for i, f := range o.Facts {
			if f.Day < o.Placed || i > 0 && f.Day < o.Facts[i-1].Day {
				t.Errorf("%s: the fact %q is out of order", o.ID, f.Fact)
			}
			if m := lateFact.FindStringSubmatch(f.Fact); m != nil && m[1] != strconv.Itoa(workingDays(t, o.Promised, o.Delivered)) {
				t.Errorf("%s: %q, but it is %d", o.ID, f.Fact, workingDays(t, o.Promised, o.Delivered))
			}
		}
	}
}

// workingDays counts Monday to Friday after one day, up to another.
func workingDays(t *testing.T, from, to string) (n int) {
	t.Helper()
	for day := from; day < to; {
		day = nextDay(t, day)
		d, _ := time.Parse(time.DateOnly, day)
		if d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
			n++
		}
	}
	return n
}

func TestCases(t *testing.T) {
	d := load(t)
	byLanguage := map[string]int{}
	lastID, lastDay := int64(0), ""
	for _, c := range d.Cases {
		byLanguage[c.Language]++
		if c.ID <= lastID || c.Opened < lastDay {
			t.Errorf("%d is out of order", c.ID)
		}
		lastID, lastDay = c.ID, c.Opened
		if c.Order != "" && (d.order(c.Order) == nil || d.order(c.Order).Customer != c.Customer) {
			t.Errorf("%d: order %s is not the customer's", c.ID, c.Order)
		}
		if len(c.Messages) == 0 || c.Messages[0].Staff != "" {
			t.Errorf("%d does not begin with the customer", c.ID)
		}
		if c.Language != d.customer(c.Customer).Language {
			t.Errorf("%d: language %s is not the customer's", c.ID, c.Language)
		}
		answered := slices.ContainsFunc(c.Messages, func(m struct{ Day, Staff, Text string }) bool { return m.Staff != "" })
		if answered != (c.Closed != "") {
			t.Errorf("%d: answered %v, closed %q", c.ID, answered, c.Closed)
		}
	}
	if want := map[string]int{"en": 22, "es": 24}; !cmp.Equal(byLanguage, want) {
		t.Errorf("cases by language: %v, want %v", byLanguage, want)
	}
}

func (d *data) customer(id string) customerData {
	i := slices.IndexFunc(d.Customers, func(c customerData) bool { return c.ID == id })
	if i < 0 {
		return customerData{}
	}
	return d.Customers[i]
}

// What the desk answered earlier cites policies that were in force on the day of the request.
func TestOldAnswersCiteValidPolicies(t *testing.T) {
	d, db := load(t), open(t)
	for _, c := range d.Cases {
		cited := 0
		for _, m := range c.Messages {
			for _, r := range ref.FindAllStringSubmatch(m.Text, -1) {
				if r[1] == "ALM" {
					continue // a tracking number
				}
				cited++
				version, _ := strconv.ParseInt(r[2], 10, 64)
				if _, _, err := policyOn(t.Context(), db.sql, r[1], version, c.Opened); err != nil {
					t.Errorf("%d: %s: %v", c.ID, r[0], err)
				}
			}
		}
		if c.Closed != "" && cited == 0 {
			t.Errorf("%d is closed and no answer cites a policy", c.ID)
		}
	}
}

// refsOn are the policies that find_policy gives for the topic noted at the desk, on the case's day.
func refsOn(t *testing.T, db *DB, c *caseData) []string {
	t.Helper()
	res, err := db.FindPolicy(t.Context(), PolicyQuery{Topic: c.Topic, Day: c.Opened})
	if err != nil {
		t.Fatalf("%d: %v", c.ID, err)
	}
	var refs []string
	for _, p := range res.Policies {
		refs = append(refs, p.Ref)
	}
	return refs
}

func TestPolicyOfEachCase(t *testing.T) {
	d, db := load(t), open(t)
	var none []int64
	old := 0 // cases to which a version applies that was superseded later
	for i := range d.Cases {
		c := &d.Cases[i]
		refs := refsOn(t, db, c)
		if len(refs) == 0 {
			none = append(none, c.ID)
		}
		today := *c
		today.Opened = "2026-11-30"
		if len(refs) > 0 && !cmp.Equal(refs, refsOn(t, db, &today)) {
			old++
		}
	}
	if want := []int64{4818}; !cmp.Equal(none, want) {
		t.Errorf("cases that no policy covers: %v, want %v", none, want)
	}
	if old < 10 {
		t.Errorf("only %d cases need a superseded version", old)
	}
}

func TestSpecialCases(t *testing.T) {
	d, db := load(t), open(t)
	for id, want := range map[int64][]string{4792: {"RET-2"}, 4805: {"PRV-2"}, 4812: {"RET-3"}, 4821: {"RPT-1"}} {
		c := d.supportCase(id)
		if got := refsOn(t, db, c); !cmp.Equal(got, want) || c.Closed != "" {
			t.Errorf("%d: policies %v, closed %q; want %v and open", id, got, c.Closed, want)
		}
	}
	if got := d.customer(d.supportCase(4812).Customer).Email; got != "ana@example.com" {
		t.Errorf("4812 is of %s", got)
	}
	repeat := d.supportCase(4821)
	for _, l := range repeat.Links {
		if c := d.supportCase(l.Case); c == nil || c.Closed == "" || c.Order != repeat.Order || c.Topic != "warranty" {
			t.Errorf("4821 is linked to %d, which is no solved failure of the same product", l.Case)
		}
	}
	if len(repeat.Links) != 2 {
		t.Errorf("4821 has %d links", len(repeat.Links))
	}
	if links := d.supportCase(4816).Links; len(links) != 1 || d.supportCase(links[0].Case) != nil || d.Archived[0].ID != links[0].Case {
		t.Errorf("4816 does not hang on an archived case: %v", links)
	}
	dispute := d.order(d.supportCase(4809).Order).Facts
	if !strings.Contains(dispute[len(dispute)-1].Fact, "dispute (chargeback)") {
		t.Error("4809: no dispute is on record")
	}
}

package coach

import "time"

// Days are texts, YYYY-MM-DD: they compare as days do.

func parseDay(s string) (time.Time, error) { return time.Parse(time.DateOnly, s) }

// addDays expects a day that is one.
func addDays(day string, n int) string {
	t, err := parseDay(day)
	if err != nil {
		return day
	}
	return t.AddDate(0, 0, n).Format(time.DateOnly)
}

// firstOfMonth is the first day of a day's month.
func firstOfMonth(day string) string {
	if len(day) < 8 {
		return day
	}
	return day[:8] + "01"
}

// Period is a time from one day to another, both included.
type Period struct {
	From string `json:"from" jsonschema:"first day, YYYY-MM-DD"`
	To   string `json:"to" jsonschema:"last day, YYYY-MM-DD"`
}

// valid names the period in its errors, which the model can mend. It looks at the end first: where only that was given, the beginning
// comes from it.
func (p Period) valid(name string) error {
	for _, d := range []struct{ end, day string }{{"to", p.To}, {"from", p.From}} {
		if _, err := parseDay(d.day); err != nil {
			return invalid("%s%s: %q is not a day. Write it as YYYY-MM-DD, such as 2026-11-30", name, d.end, d.day)
		}
	}
	if p.From > p.To {
		return invalid("%sfrom: %s lies after %s. Swap the two days", name, p.From, p.To)
	}
	return nil
}

// within fills in what a question leaves out: a period that ends today and begins at from.
func (p Period) within(from, today string) Period {
	if p.To == "" {
		p.To = today
	}
	if p.From == "" {
		p.From = min(from, p.To)
	}
	return p
}

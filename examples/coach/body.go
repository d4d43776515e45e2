package coach

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strconv"
)

// units of the kinds of measurement, and what values a person can have, in thousandths.
var units = []struct {
	kind, unit  string
	least, most int64
}{
	{"body_weight", "kg", 30_000, 300_000},
	{"waist", "cm", 40_000, 200_000},
	{"body_fat", "percent", 3_000, 70_000},
}

func unitOf(kind string) (int, error) {
	for i, u := range units {
		if u.kind == kind {
			return i, nil
		}
	}
	return 0, invalid("kind: %q is unknown. Use body_weight (kg), waist (cm) or body_fat (percent)", kind)
}

// MeasurementsQuery asks for measurements of a time.
type MeasurementsQuery struct {
	Kind string `json:"kind" jsonschema:"what was measured"`
	From string `json:"from,omitempty" jsonschema:"first day, YYYY-MM-DD; 90 days before the last day if absent"`
	To   string `json:"to,omitempty" jsonschema:"last day, YYYY-MM-DD; today if absent"`
}

// Measurements are those of a time, in order. The means are of the first and the last seven days of the time that have values:
// single days vary too much to compare.
type Measurements struct {
	Today     string     `json:"today"`
	Kind      string     `json:"kind"`
	Unit      string     `json:"unit"`
	From      string     `json:"from"`
	To        string     `json:"to"`
	Values    []Measured `json:"values"`
	More      int        `json:"more,omitempty"` // left out: the latest ones are listed
	FirstMean *float64   `json:"first_week_mean,omitempty"`
	LastMean  *float64   `json:"last_week_mean,omitempty"`
	Change    *float64   `json:"change_of_means,omitempty"`
}

// Measured is one value.
type Measured struct {
	Day   string  `json:"day"`
	Value float64 `json:"value"`

	milli int64
}

const maxValues = 30

// ReadMeasurements reads the measurements of one kind in a time. Of several values of a day the last one holds.
func (db *DB) ReadMeasurements(ctx context.Context, in MeasurementsQuery) (*Measurements, error) {
	u, err := unitOf(in.Kind)
	if err != nil {
		return nil, err
	}
	p := Period{in.From, in.To}.within("", db.today)
	if in.From == "" {
		p.From = addDays(p.To, -90)
	}
	if err := p.valid(""); err != nil {
		return nil, err
	}
	res := &Measurements{Today: db.today, Kind: in.Kind, Unit: units[u].unit, From: p.From, To: p.To}
	res.Values, err = rows(ctx, db.sql, func(scan func(...any) error, m *Measured) error {
		err := scan(&m.Day, &m.milli)
		m.Value = kilos(m.milli)
		return err
	}, `SELECT day, value FROM measurements m WHERE kind = ?1 AND day BETWEEN ?2 AND ?3 AND NOT EXISTS
		(SELECT 1 FROM measurements l WHERE l.kind = m.kind AND l.day = m.day AND l.id > m.id) ORDER BY day`, in.Kind, p.From, p.To)
	if err != nil {
		return nil, failed("read the measurements", err)
	}
	res.summarize()
	return res, nil
}

func (m *Measurements) summarize() {
	if len(m.Values) == 0 {
		return
	}
	firstWeek, lastWeek := addDays(m.Values[0].Day, 6), addDays(m.Values[len(m.Values)-1].Day, -6)
	first := mean(slices.DeleteFunc(slices.Clone(m.Values), func(v Measured) bool { return v.Day > firstWeek }))
	last := mean(slices.DeleteFunc(slices.Clone(m.Values), func(v Measured) bool { return v.Day < lastWeek }))
	f, l, c := kilos(first), kilos(last), kilos(last-first)
	m.FirstMean, m.LastMean, m.Change = &f, &l, &c
	m.More = max(len(m.Values)-maxValues, 0)
	m.Values = m.Values[m.More:]
}

// mean to a tenth of the unit.
func mean(values []Measured) int64 {
	var sum int64
	for _, v := range values {
		sum += v.milli
	}
	return roundTo(sum/int64(len(values)), 100)
}

// MeasurementInput is a value to be written down.
type MeasurementInput struct {
	Kind  string  `json:"kind" jsonschema:"what was measured: body_weight in kg, waist in cm, body_fat in percent"`
	Value float64 `json:"value" jsonschema:"in the unit of the kind"`
	Day   string  `json:"day,omitempty" jsonschema:"YYYY-MM-DD; today if absent"`
}

// Measurement is a value that was written down: the fact "measurement".
type Measurement struct {
	ID    string  `json:"measurement_id"`
	Kind  string  `json:"kind"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Day   string  `json:"day"`
}

// WriteMeasurement writes a value down. Another value of the same kind and day replaces it in what is read. The same key again
// changes nothing and returns what was written the first time.
func (db *DB) WriteMeasurement(ctx context.Context, by Origin, in MeasurementInput) (*Measurement, error) {
	if err := by.valid("write the measurement"); err != nil {
		return nil, err
	}
	u, err := unitOf(in.Kind)
	if err != nil {
		return nil, err
	}
	milli := int64(math.Round(in.Value * 1000))
	if !(in.Value > 0 && in.Value < 1e6) || milli < units[u].least || milli > units[u].most {
		return nil, invalid("value: %v is no %s of a person: it must be between %v and %v %s", in.Value, in.Kind,
			kilos(units[u].least), kilos(units[u].most), units[u].unit)
	}
	if in.Day, err = db.past(in.Day); err != nil {
		return nil, err
	}
	var m *Measurement
	err = db.write(ctx, func(tx *sql.Tx) (err error) {
		if m, err = measurement(ctx, tx, `key = ?`, by.Key); m != nil || err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, `INSERT INTO measurements (day, kind, value, run, key) VALUES (?, ?, ?, ?, ?)`, in.Day, in.Kind, milli, by.Run, by.Key)
		if err != nil {
			return err
		}
		id, err := res.LastInsertId()
		if err != nil {
			return err
		}
		m, err = measurement(ctx, tx, `id = ?`, id)
		return err
	})
	if err != nil {
		return nil, failed("write the measurement", err)
	}
	return m, nil
}

// past is a day that is not after today; "" is today.
func (db *DB) past(day string) (string, error) {
	if day == "" {
		return db.today, nil
	}
	if _, err := parseDay(day); err != nil {
		return "", invalid("day: %q is not a day. Write it as YYYY-MM-DD, such as %s", day, db.today)
	}
	if day > db.today {
		return "", invalid("day: %s is after today, %s. Only what has happened is written down", day, db.today)
	}
	return day, nil
}

// measurement finds one; nil where there is none.
func measurement(ctx context.Context, q query, where string, args ...any) (*Measurement, error) {
	m := &Measurement{}
	var id, milli int64
	row := q.QueryRowContext(ctx, `SELECT id, kind, value, day FROM measurements WHERE `+where, args...)
	switch err := row.Scan(&id, &m.Kind, &milli, &m.Day); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	u, err := unitOf(m.Kind)
	m.ID, m.Value, m.Unit = "M-"+strconv.FormatInt(id, 10), kilos(milli), units[u].unit
	return m, err
}

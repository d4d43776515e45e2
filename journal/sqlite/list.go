package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/ronda-go/ronda/journal"
)

// filter collects the conditions of a query.
type filter struct {
	where []string
	args  []any
}

func (f *filter) add(cond string, args ...any) {
	f.where = append(f.where, cond)
	f.args = append(f.args, args...)
}

func (f *filter) equal(column, value string) {
	if value != "" {
		f.add(column+" = ?", value)
	}
}

// conditions names the columns as the partial indexes do, so that SQLite uses these.
func conditions(q *journal.Query) *filter {
	f := &filter{}
	f.equal("status", q.Status)
	if q.Status == journal.Running || q.Status == journal.Waiting {
		f.add("live = 1")
	}
	f.equal("agent", q.Agent)
	f.equal("session", q.Session)
	f.equal("parent", q.Parent)
	f.equal("stop", string(q.Stop))
	if q.Root != "" {
		f.add("(root = ? OR run = ? AND root IS NULL)", q.Root, q.Root)
	}
	if q.Waiting != "" {
		f.add("EXISTS (SELECT 1 FROM json_each(waiting) WHERE value = ?)", q.Waiting)
	}
	if q.WakeBy != 0 {
		f.add("wake > 0 AND wake <= ?", int64(q.WakeBy))
	}
	if q.Inputs {
		f.add("inputs > 0")
	}
	if q.Roots {
		f.add("parent IS NULL")
	}
	if q.IDs != "" {
		f.add("(substr(run, 1, length(?)) = ? OR substr(run, -length(?)) = ?)", q.IDs, q.IDs, q.IDs, q.IDs)
	}
	return f
}

// List filters and pages runs.
func (s *Store) List(ctx context.Context, q journal.Query) (journal.Page, error) {
	const op = "list runs"
	from, paged, err := journal.ParseCursor(q.Cursor)
	if err != nil {
		return journal.Page{}, s.failed(op, "", err)
	}
	f := conditions(&q)
	if paged {
		f.add("(created < ? OR created = ? AND id < ?)", int64(from.Created), int64(from.Created), from.N)
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	sql := "SELECT " + runColumns + " FROM runs"
	if len(f.where) > 0 {
		sql += " WHERE " + strings.Join(f.where, " AND ")
	}
	sql += " ORDER BY created DESC, id DESC LIMIT ?"
	var page journal.Page
	var last journal.Cursor
	err = s.reading(ctx, func(c *conn) error {
		return c.query(sql, func(r []driver.Value) error {
			run, id, err := scanRun(r)
			if err != nil {
				return err
			}
			if len(page.Runs) == limit {
				page.Next = last.String()
				return nil
			}
			page.Runs = append(page.Runs, run)
			last = journal.Cursor{Created: run.Created, N: id}
			return nil
		}, append(f.args, int64(limit)+1)...)
	})
	if err != nil {
		return journal.Page{}, s.failed(op, "", err)
	}
	return page, nil
}

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	modernc "modernc.org/sqlite"
)

// conn is one connection with its prepared statements. It is for one goroutine at a time. It uses the driver without
// database/sql: an append is two small statements, and the pool's bookkeeping would cost as much as they do.
type conn struct {
	c     driver.Conn
	stmts map[string]statement
	args  []driver.NamedValue
	row   []driver.Value
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// maxStatements bounds the statements kept: lists make their own text.
const maxStatements = 200

func dsn(path string, query url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

func connect(dsn string) (*conn, error) {
	c, err := (&modernc.Driver{}).Open(dsn)
	if err != nil {
		return nil, &dbError{err}
	}
	return &conn{c: c, stmts: map[string]statement{}}, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.Close()
	}
	return c.c.Close()
}

func (c *conn) prepare(sql string) (statement, error) {
	if s, ok := c.stmts[sql]; ok {
		return s, nil
	}
	s, err := c.c.Prepare(sql)
	if err != nil {
		return nil, &dbError{err}
	}
	st, ok := s.(statement)
	if !ok {
		return nil, errors.New("the driver's statements take no context")
	}
	if len(c.stmts) >= maxStatements {
		for _, old := range c.stmts {
			_ = old.Close()
		}
		clear(c.stmts)
	}
	c.stmts[sql] = st
	return st, nil
}

// bind fills the arguments of the next statement. Values are those of package driver, and nil.
func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec returns the id of the last row inserted, if any.
func (c *conn) exec(sql string, args ...any) (id int64, err error) {
	s, err := c.prepare(sql)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(context.Background(), c.bind(args))
	clear(c.args)
	if err != nil {
		return 0, &dbError{err}
	}
	id, _ = r.LastInsertId()
	return id, nil
}

// query calls fn for each row. fn must not keep row, but may keep the values in it; its error ends the query.
func (c *conn) query(sql string, fn func(row []driver.Value) error, args ...any) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), c.bind(args))
	clear(c.args)
	if err != nil {
		return &dbError{err}
	}
	defer rows.Close()
	n := len(rows.Columns())
	if cap(c.row) < n {
		c.row = make([]driver.Value, n)
	}
	row := c.row[:n]
	defer clear(row)
	for {
		switch err := rows.Next(row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return &dbError{err}
		}
		if err := fn(row); err != nil {
			return err
		}
	}
}

// number returns the one integer that a query yields; found is false where it yields no row.
func (c *conn) number(sql string, args ...any) (n int64, found bool, err error) {
	err = c.query(sql, func(row []driver.Value) error {
		n, found = integer(row[0]), true
		return nil
	}, args...)
	return n, found, err
}

// The columns of rows. A file whose types are not ours yields zero values: what is in them is checked where it matters.

func integer(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}

func text(v driver.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

func blob(v driver.Value) []byte {
	switch v := v.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}

// orNull stores empty text as NULL, which takes no room.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func blobOrNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

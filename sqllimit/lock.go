package sqllimit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirflow/weir/enginekit"
)

// longestName bounds the bytes of a key in the table. A longer key is cut there, and its hash follows. A key of that length
// is always cut, so no key can pass for another.
const longestName = 200

// nameOf returns the name of a row.
func nameOf(key string) []byte {
	if len(key) <= longestName {
		return []byte(key)
	}
	sum := sha256.Sum256([]byte(key))
	return append([]byte(key[:longestName]), sum[:]...)
}

// micros converts an instant of the engine to the microseconds of the table. It rounds up, and keeps what never ends.
func micros(nanos int64) int64 {
	if nanos > math.MaxInt64-1000 {
		return math.MaxInt64
	}
	return (nanos + 999) / 1000
}

// asker runs queries: a database or a connection.
type asker interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Load reads rows without a lock.
func (t *table) Load(ctx context.Context, keys []string) ([]enginekit.Row, int64, error) {
	rows, _, now, err := t.read(ctx, t.db, keys, "")
	if errors.Is(err, errEmptied) {
		if err = t.restore(ctx); err == nil {
			rows, _, now, err = t.read(ctx, t.db, keys, "")
		}
	}
	if err != nil {
		return nil, 0, t.fails(err, false)
	}
	return rows, now, nil
}

// errEmptied reports a table without its first row: somebody has deleted all rows, or a crash has emptied an unlogged table.
var errEmptied = errors.New("the table is empty")

// restore inserts the first row again.
func (t *table) restore(ctx context.Context) error {
	_, err := t.db.ExecContext(ctx, t.firstRow(len(t.versions)))
	return err
}

// read reads rows and the clock. The clock comes with each row, and the row without a name is in every table. A
// transaction that locks rows does not lock that one: all transactions would wait for one another. missing is the keys
// that have no row.
func (t *table) read(ctx context.Context, db asker, keys []string, lock string) (rows []enginekit.Row, missing []string, now int64, err error) {
	d, at := t.dialect, make(map[string]int, len(keys))
	var args []any
	if lock == "" {
		args = []any{[]byte{}}
	}
	for i, key := range keys {
		name := nameOf(key)
		args, at[string(name)] = append(args, name), i
	}
	clock := d.clock
	if clock == "" {
		clock, now = "0", time.Now().UnixNano()
	}
	text := "SELECT name, version, state, " + clock + " FROM " + t.name + d.index + " WHERE name IN " + list(1, len(args)) + lock
	found, err := db.QueryContext(ctx, d.number(text), args...)
	if err != nil {
		return nil, nil, 0, err
	}
	defer found.Close()
	rows, first := make([]enginekit.Row, len(keys)), false
	for found.Next() {
		var name []byte
		var row enginekit.Row
		var told int64
		if err := found.Scan(&name, &row.Version, &row.State, &told); err != nil {
			return nil, nil, 0, err
		}
		if told != 0 {
			now = told * 1000
		}
		first = first || len(name) == 0
		if i, ok := at[string(name)]; ok {
			rows[i] = row
			delete(at, string(name))
		}
	}
	for _, i := range at {
		missing = append(missing, keys[i])
	}
	if err = found.Err(); err == nil && lock == "" && !first {
		err = errEmptied
	}
	return rows, missing, now, err
}

// Lock decides in a transaction that locks the rows. A row cannot be locked before it exists, so an empty one is inserted
// first.
func (t *table) Lock(ctx context.Context, keys []string, decide func([]enginekit.Row, int64) []enginekit.Write) error {
	missing, err := t.transact(ctx, keys, decide)
	if errors.Is(err, errEmptied) {
		if err = t.restore(ctx); err == nil {
			return enginekit.ErrConflict
		}
		return t.fails(err, false)
	}
	if err == nil && len(missing) > 0 {
		if err = t.reserve(ctx, missing); err == nil {
			missing, err = t.transact(ctx, keys, decide)
		}
	}
	if err == nil && len(missing) > 0 {
		return enginekit.ErrConflict
	}
	return err
}

// transact decides in a transaction, unless rows are missing that it could not lock.
func (t *table) transact(ctx context.Context, keys []string, decide func([]enginekit.Row, int64) []enginekit.Write) (missing []string, err error) {
	c, err := t.begin(ctx)
	if err != nil {
		return nil, t.fails(err, false)
	}
	defer c.Close()
	ended := false
	defer func() {
		if !ended {
			t.rollback(c)
		}
	}()
	rows, missing, now, err := t.read(ctx, c, keys, t.dialect.lock)
	switch {
	case err != nil:
		return nil, t.fails(err, false)
	case len(missing) > 0 && t.dialect.shared:
		return missing, nil
	}
	writes := decide(rows, now)
	if len(writes) == 0 {
		return nil, nil
	}
	if err := t.insert(ctx, c, t.dialect.replace, writes); err != nil {
		return nil, t.fails(err, false)
	}
	if _, err = c.ExecContext(ctx, "COMMIT"); err != nil {
		return nil, t.fails(err, true)
	}
	ended = true
	return nil, nil
}

// begin begins a transaction. The server may have ended a connection before it is used.
func (t *table) begin(ctx context.Context) (c *sql.Conn, err error) {
	for range badConnections {
		if c, err = t.db.Conn(ctx); err != nil {
			return nil, err
		}
		if _, err = c.ExecContext(ctx, t.dialect.begin); err == nil {
			return c, nil
		}
		ended := errors.Is(err, driver.ErrBadConn) || unanswered(t.state(err))
		if ended {
			_ = c.Raw(func(any) error { return driver.ErrBadConn }) // closes it
		}
		if _ = c.Close(); !ended {
			return nil, err
		}
	}
	return nil, err
}

// rollbackWithin bounds a rollback, whose context may have ended.
const rollbackWithin = time.Second

// rollback ends a transaction. It closes the connection if that fails.
func (t *table) rollback(c *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), rollbackWithin)
	defer cancel()
	if _, err := c.ExecContext(ctx, "ROLLBACK"); err != nil {
		_ = c.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// execer runs statements: a database or a connection.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// insert inserts or replaces rows.
func (t *table) insert(ctx context.Context, db execer, end string, writes []enginekit.Write) error {
	args := make([]any, 0, 4*len(writes))
	for i := range writes {
		w := &writes[i]
		args = append(args, nameOf(w.Key), w.New, bytesOf(w.State), micros(w.Ends))
	}
	begin := "INSERT INTO "
	if end == t.dialect.keep {
		begin = t.dialect.ignore
	}
	_, err := db.ExecContext(ctx, t.dialect.number(begin+t.name+" (name, version, state, ends) VALUES "+list(len(writes), 4)+end), args...)
	return err
}

// bytesOf returns b, but never nil, which a driver takes for NULL.
func bytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// reserve inserts empty rows, of version 0, which is that of a missing row. It does so in the order of their names, because
// an insert waits for one of the same name in another transaction.
func (t *table) reserve(ctx context.Context, keys []string) error {
	ends := time.Now().Add(time.Hour).UnixNano()
	writes := make([]enginekit.Write, len(keys))
	for i, key := range keys {
		writes[i] = enginekit.Write{Key: key, Ends: ends}
	}
	slices.SortFunc(writes, func(a, b enginekit.Write) int { return bytes.Compare(nameOf(a.Key), nameOf(b.Key)) })
	if err := t.insert(ctx, t.db, t.dialect.keep, writes); err != nil {
		return t.fails(err, false)
	}
	return nil
}

// swept is the number of rows that a sweep reads: some for each new one.
const swept = 256

// Sweep deletes ended rows among those that follow a key. It reads in the order of the primary key, because an index on the
// end would have to change with each decision.
func (t *table) Sweep(ctx context.Context, after string, before int64) (last string, err error) {
	rows, err := t.db.QueryContext(ctx, t.dialect.number("SELECT name, ends FROM "+t.name+" WHERE name > ? ORDER BY name LIMIT ?"), []byte(after), swept)
	if err != nil {
		return after, t.fails(err, false)
	}
	defer rows.Close()
	args, read := []any{before / 1000}, 0
	for rows.Next() {
		var name []byte
		var ends int64
		if err := rows.Scan(&name, &ends); err != nil {
			return after, err
		}
		if last, read = string(name), read+1; ends < before/1000 {
			args = append(args, name)
		}
	}
	if read < swept {
		last = ""
	}
	if len(args) == 1 || rows.Err() != nil {
		return last, rows.Err()
	}
	which := list(1, len(args)-1)
	if t.dialect.skip != "" { // it waits for nobody, and so cannot deadlock
		which = "(SELECT name FROM " + t.name + " WHERE name IN " + which + t.dialect.skip + ")"
	}
	_, err = t.db.ExecContext(ctx, t.dialect.number("DELETE FROM "+t.name+" WHERE ends < ? AND name IN "+which), args...)
	return last, err
}

// firstRow returns the statement that inserts the row without a name.
func (t *table) firstRow(version int) string {
	d := t.dialect
	return fmt.Sprintf("%s%s (name, version, state, ends) VALUES (%s, %d, %s, %d)%s", d.ignore, t.name, d.empty, version, d.empty, int64(math.MaxInt64), d.keep)
}

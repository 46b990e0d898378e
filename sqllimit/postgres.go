package sqllimit

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/weirflow/weir/enginekit"
)

// swapStatement makes changes in one statement. $1 to $5 are the writes: names, old and new versions, states and ends; $6 is
// the change of each, and $7 the least clock. The writes are in the order of their names.
//
// held locks the rows that still have their old version, in that order, so that statements do not deadlock. A LATERAL
// query with a lock is never joined in another way. fits has the changes whose rows are all held, or missing as they
// should be. made then inserts missing rows. If another process was quicker, none is inserted, and the change is not
// in done. A change inserts one row at most: see table.Swap. The answer is the clock, and the present rows of the other
// changes.
const swapStatement = `
WITH i AS MATERIALIZED (
	SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[], $6::int[])
	WITH ORDINALITY AS i(name, old, new, state, ends, change, n)
), held AS MATERIALIZED (
	SELECT i.n, t.at FROM i, LATERAL (SELECT ctid AS at FROM TABLE_ WHERE name = i.name AND version = i.old AND i.new <> 0 FOR UPDATE) t
), fits AS MATERIALIZED (
	SELECT i.change FROM i LEFT JOIN held USING (n) GROUP BY i.change HAVING $7::bigint <= CLOCK_ AND bool_and(
		CASE WHEN i.new = 0 THEN i.old = coalesce((SELECT version FROM TABLE_ WHERE name = i.name), 0) ELSE held.n IS NOT NULL OR i.old = 0 END)
), made AS (
	INSERT INTO TABLE_ (name, version, state, ends)
	SELECT i.name, i.new, i.state, i.ends FROM i JOIN fits USING (change) LEFT JOIN held USING (n) WHERE i.new <> 0 AND held.n IS NULL ORDER BY i.name
	ON CONFLICT DO NOTHING RETURNING name
), done AS MATERIALIZED (
	SELECT i.change FROM i JOIN fits USING (change) LEFT JOIN held USING (n) LEFT JOIN made USING (name)
	GROUP BY i.change HAVING bool_and(i.new = 0 OR held.n IS NOT NULL OR made.name IS NOT NULL)
), changed AS (
	UPDATE TABLE_ t SET version = i.new, state = i.state, ends = i.ends FROM i JOIN done USING (change) JOIN held USING (n) WHERE t.ctid = held.at
)
SELECT 0, NULL, NULL, CLOCK_
UNION ALL
SELECT i.n, t.version, t.state, 0 FROM i LEFT JOIN done USING (change) LEFT JOIN LATERAL (SELECT * FROM TABLE_ WHERE name = i.name OFFSET 0) t ON true WHERE done.change IS NULL`

// oneStatement writes one row, which takes a third of the time of swapStatement.
const oneStatement = `UPDATE TABLE_ SET version = $3, state = $4, ends = $5 WHERE name = $1 AND version = $2 AND $6::bigint <= CLOCK_ RETURNING CLOCK_`

// Swap makes changes: on PostgreSQL in one statement, elsewhere in a transaction.
func (t *table) Swap(ctx context.Context, at int64, changes []enginekit.Change) (now int64, err error) {
	if missing := unheld(changes); len(missing) > 0 {
		if err := t.reserve(ctx, missing); err != nil {
			return 0, err
		}
	}
	if t.swapText == "" {
		return t.swapLocked(ctx, at, changes)
	}
	for range badConnections {
		c, failed := t.db.Conn(ctx)
		if failed != nil {
			return 0, t.fails(failed, false)
		}
		now, err = t.swap(ctx, c, at, changes)
		_ = c.Close()
		if !errors.Is(err, driver.ErrBadConn) {
			break
		}
	}
	if err != nil {
		return 0, t.fails(err, true)
	}
	return now, nil
}

// badConnections bounds the connections that a call tries after a driver has said that one was bad before it was used. If
// it was not, the swap finds the versions that it wrote.
const badConnections = 16

// swap makes changes on a connection.
func (t *table) swap(ctx context.Context, c *sql.Conn, at int64, changes []enginekit.Change) (now int64, err error) {
	if one := &changes[0]; len(changes) == 1 && len(one.Writes) == 1 && one.Writes[0].Old != 0 && one.Writes[0].New != 0 {
		if now, err := t.swapOne(ctx, c, at, one); err != nil || one.Done {
			return now, err
		}
	}
	writes, args := arraysOf(changes)
	rows, err := c.QueryContext(ctx, t.swapText, append(args, micros(at))...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for i := range changes {
		changes[i].Done = true
	}
	for rows.Next() {
		var n, told int64
		var version *int64
		var state []byte
		if err := rows.Scan(&n, &version, &state, &told); err != nil {
			return 0, err
		}
		if n == 0 {
			now = told * 1000
			continue
		}
		w := writes[n-1]
		changes[w.change].Done, w.Found = false, &enginekit.Row{State: state}
		if version != nil {
			w.Found.Version = *version
		}
	}
	return now, rows.Err()
}

// swapOne makes a change of one row, unless the row has another version or the clock is before at.
func (t *table) swapOne(ctx context.Context, c *sql.Conn, at int64, change *enginekit.Change) (now int64, err error) {
	w := &change.Writes[0]
	err = c.QueryRowContext(ctx, t.oneText, nameOf(w.Key), w.Old, w.New, w.State, micros(w.Ends), micros(at)).Scan(&now)
	if change.Done = err == nil; errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return now * 1000, err
}

// unheld returns the missing rows of changes that have several, which a swap could not insert all or none.
func unheld(changes []enginekit.Change) (keys []string) {
	for i := range changes {
		before := len(keys)
		for _, w := range changes[i].Writes {
			if w.Old == 0 && w.New != 0 {
				keys = append(keys, w.Key)
			}
		}
		if len(keys) == before+1 {
			keys = keys[:before]
		}
	}
	return keys
}

// swapWrite is a write, and the index of its change.
type swapWrite struct {
	*enginekit.Write
	name   []byte
	change int
}

// arraysOf returns the writes of all changes in the order of their names, and their arrays as text, which every driver sends
// alike.
func arraysOf(changes []enginekit.Change) (writes []swapWrite, args []any) {
	for i := range changes {
		for j := range changes[i].Writes {
			w := &changes[i].Writes[j]
			writes = append(writes, swapWrite{w, nameOf(w.Key), i})
		}
	}
	slices.SortFunc(writes, func(a, b swapWrite) int { return bytes.Compare(a.name, b.name) })
	var columns [6][]byte
	for i := range writes {
		w, begin := &writes[i], byte(',')
		if i == 0 {
			begin = '{'
		}
		for c := range columns {
			columns[c] = append(columns[c], begin)
		}
		columns[0] = appendBytes(columns[0], w.name)
		columns[1] = strconv.AppendInt(columns[1], w.Old, 10)
		columns[2] = strconv.AppendInt(columns[2], w.New, 10)
		columns[3] = appendBytes(columns[3], w.State)
		columns[4] = strconv.AppendInt(columns[4], micros(w.Ends), 10)
		columns[5] = strconv.AppendInt(columns[5], int64(w.change), 10)
	}
	for _, c := range columns {
		args = append(args, string(append(c, '}')))
	}
	return writes, args
}

// appendBytes appends an element of an array of bytea.
func appendBytes(to, b []byte) []byte {
	return append(hex.AppendEncode(append(to, `"\\x`...), b), '"')
}

// swapLocked makes changes while their rows are locked.
func (t *table) swapLocked(ctx context.Context, at int64, changes []enginekit.Change) (now int64, err error) {
	rows := map[string]*enginekit.Row{}
	for i := range changes {
		for _, w := range changes[i].Writes {
			rows[w.Key] = nil
		}
	}
	keys := slices.Sorted(maps.Keys(rows))
	err = t.Lock(ctx, keys, func(found []enginekit.Row, told int64) (writes []enginekit.Write) {
		now = told
		for i := range keys {
			rows[keys[i]] = &found[i]
		}
		for i := range changes {
			c := &changes[i]
			c.Done = now >= at
			for j := range c.Writes {
				w := &c.Writes[j]
				w.Found = rows[w.Key]
				c.Done = c.Done && w.Found.Version == w.Old
			}
			if c.Done {
				writes = append(writes, slices.DeleteFunc(slices.Clone(c.Writes), func(w enginekit.Write) bool { return w.New == 0 })...)
			}
		}
		return writes
	})
	return now, err
}

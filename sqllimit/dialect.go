package sqllimit

import (
	"strconv"
	"strings"
)

// Dialect is the kind of a database.
type Dialect uint8

// The dialects.
const (
	PostgreSQL Dialect = iota + 1 // 12 or later
	MySQL                         // MySQL 5.7 or later, and MariaDB 10.4 or later
	SQLite                        // 3.24 or later
)

// dialect has the parts of the generic statements that differ between databases.
type dialect struct {
	quote     string // around names
	parameter bool   // parameters have numbers: $1
	clock     string // microseconds since the Unix epoch; "" is the clock of the machine
	begin     string
	empty     string // no bytes
	columns   string // columns of the table
	options   string // options of the table
	index     string // that finds rows by name, before a WHERE
	lock      string // after a SELECT
	skip      string // works like lock, and leaves rows that are locked; "" without it
	ignore    string // begins an INSERT that leaves existing rows
	keep      string // ends such an INSERT
	replace   string // ends an INSERT that replaces existing rows
	shared    bool   // a transaction does not lock the whole database
}

var dialects = [...]dialect{
	PostgreSQL: {
		quote: `"`, parameter: true,
		clock:   "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
		begin:   "BEGIN",
		empty:   "''",
		columns: "name bytea PRIMARY KEY, version bigint NOT NULL, state bytea NOT NULL, ends bigint NOT NULL",
		options: " WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05)",
		lock:    " ORDER BY name FOR UPDATE",
		skip:    " FOR UPDATE SKIP LOCKED",
		ignore:  "INSERT INTO ", keep: " ON CONFLICT DO NOTHING",
		replace: " ON CONFLICT (name) DO UPDATE SET version = excluded.version, state = excluded.state, ends = excluded.ends",
		shared:  true,
	},
	MySQL: {
		quote:   "`",
		clock:   "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
		begin:   "START TRANSACTION",
		empty:   "x''",
		columns: "name varbinary(255) PRIMARY KEY, version bigint NOT NULL, state mediumblob NOT NULL, ends bigint NOT NULL",
		options: " ENGINE = InnoDB",
		index:   " FORCE INDEX (PRIMARY)",
		lock:    " ORDER BY name FOR UPDATE",
		ignore:  "INSERT IGNORE INTO ",
		replace: " ON DUPLICATE KEY UPDATE version = VALUES(version), state = VALUES(state), ends = VALUES(ends)",
		shared:  true,
	},
	SQLite: {
		quote:   `"`,
		begin:   "BEGIN IMMEDIATE",
		empty:   "x''",
		columns: "name BLOB PRIMARY KEY, version INTEGER NOT NULL, state BLOB NOT NULL, ends INTEGER NOT NULL",
		options: " WITHOUT ROWID",
		ignore:  "INSERT OR IGNORE INTO ",
		replace: " ON CONFLICT (name) DO UPDATE SET version = excluded.version, state = excluded.state, ends = excluded.ends",
	},
}

// list returns rows of parameters: (?, ?), (?, ?).
func list(rows, columns int) string {
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	return row + strings.Repeat(", "+row, rows-1)
}

// number replaces each ? of a statement by $1, $2 and so on, if the database wants that.
func (d *dialect) number(statement string) string {
	if !d.parameter {
		return statement
	}
	var b strings.Builder
	n := 0
	for piece := range strings.SplitSeq(statement, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(piece)
		n++
	}
	return b.String()
}

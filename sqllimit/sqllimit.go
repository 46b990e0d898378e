// Package sqllimit is the weir.Engine that keeps its states in a table of an SQL database, so that a limit holds across
// processes without another server. It works over the *sql.DB that a program has, with any driver of PostgreSQL, of MariaDB
// or MySQL, and of SQLite:
//
//	db, err := sql.Open("pgx", "postgres://127.0.0.1/app")
//	engine, err := sqllimit.Open(ctx, db, sqllimit.PostgreSQL, sqllimit.Options{Create: true})
//	d, err := engine.Take(ctx, login.For("alice", 1))
//
// One row holds the states of one key under the rules of one name. On PostgreSQL, one statement decides many callers: it
// compares the versions of their rows and writes the new states (postgres.go). Elsewhere, and for rows that several
// processes change at once, a short transaction locks the rows, in the order of their names, so that no two of them
// deadlock (lock.go). The clock of the server decides; with SQLite, the machine's. Package enginekit does the
// rest: see [enginekit.NewStore].
//
// docs/howto/sql.md says which database to use, what it costs and which permissions it needs.
package sqllimit

import (
	"context"
	"database/sql"
	"errors"
	"regexp"

	"github.com/weirflow/weir/enginekit"
)

// Options configure an Engine. The zero value is ready to use.
type Options struct {
	// Table is the name of the table, perhaps with a schema, such as limits.weir. It has ASCII letters, digits and
	// underscores. Default: weir.
	Table string
	// Create makes Open create the table if it is missing, and migrate one of an earlier version of this package. Otherwise
	// run the statements of [Schema].
	Create bool
	// ConnectLater makes Open return an engine while no server answers, for programs that have a layer.Guard to answer
	// meanwhile. The first calls that reach the server open the table. Other errors, such as a wrong password,
	// are still those of Open.
	ConnectLater bool
	// Unlogged makes Create an unlogged table: decisions cost less, but a crash of the server empties the table, and a
	// replica does not have it. Only PostgreSQL has such tables.
	Unlogged bool
	// SQLState returns the five letters and digits of the SQL standard for an error of the driver, or "". Default: a method
	// SQLState() string of the error, as pgx and pq have it, or a field SQLState, as of go-sql-driver/mysql. The engine
	// also knows the codes of modernc.org/sqlite and mattn's sqlite3.
	SQLState func(error) string
	// Store configures the engine over the table. Its Name is always sqllimit. SQLite and MySQL always lock.
	Store enginekit.StoreOptions
}

// Engine is a weir.Engine over a table. It is safe for concurrent use. The caller keeps ownership of the *sql.DB.
type Engine struct{ *enginekit.StoreEngine }

// Open returns an engine over a table of a database. It reads the version of the table.
func Open(ctx context.Context, db *sql.DB, d Dialect, o Options) (*Engine, error) {
	t, err := newTable(db, d, o)
	if err != nil {
		return nil, err
	}
	var store enginekit.Store = t
	if err := t.open(ctx, o.Create); err != nil {
		if failed, ok := errors.AsType[*OpenError](err); !ok || !failed.Unreachable || !o.ConnectLater {
			return nil, err
		}
		store = &lateTable{table: t, create: o.Create, turn: make(chan struct{}, 1)}
	}
	o.Store.Name = "sqllimit"
	if d != PostgreSQL {
		o.Store.Conflicts = -1
	}
	return &Engine{enginekit.NewStore(store, o.Store)}, nil
}

// table is the store.
type table struct {
	db      *sql.DB
	dialect *dialect
	name    string // quoted
	state   func(error) string

	versions [][]string // the statements that lead to each version

	swapText, oneText string // on PostgreSQL, the statements that swap
}

var (
	_ enginekit.Store   = (*table)(nil)
	_ enginekit.Locker  = (*table)(nil)
	_ enginekit.Sweeper = (*table)(nil)
)

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

package drivertest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"
	_ "modernc.org/sqlite"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/sqltest"
	"github.com/weirflow/weir/sqllimit"
)

// The servers that the tests share. TestMain ends them.
var shared struct {
	sync.Mutex
	servers map[string]*sqltest.Server
	ends    []func()
}

// lasting is a test whose cleanups run at the end of the program.
type lasting struct{ testing.TB }

func (lasting) Cleanup(end func()) { shared.ends = append(shared.ends, end) }

func TestMain(m *testing.M) {
	_ = mysql.SetLogger(&mysql.NopLogger{}) // connections that end are meant
	code := m.Run()
	for i := range shared.ends {
		shared.ends[len(shared.ends)-1-i]()
	}
	os.Exit(code)
}

func server(t testing.TB, name string, start func(t testing.TB) *sqltest.Server) *sqltest.Server {
	shared.Lock()
	defer shared.Unlock()
	if shared.servers == nil {
		shared.servers = map[string]*sqltest.Server{}
	}
	if shared.servers[name] == nil {
		shared.servers[name] = start(lasting{t})
	}
	return shared.servers[name]
}

func postgres(t testing.TB) *sqltest.Server {
	return server(t, "postgres", func(t testing.TB) *sqltest.Server {
		return sqltest.PostgreSQL(t, "fsync=off", "max_connections=200", "max_prepared_transactions=0")
	})
}

func mariadb(t testing.TB) *sqltest.Server {
	return server(t, "mariadb", func(t testing.TB) *sqltest.Server { return sqltest.MariaDB(t, "--innodb-flush-log-at-trx-commit=0") })
}

// database is a database that a driver reaches.
type database struct {
	name    string
	dialect sqllimit.Dialect
	open    func(t testing.TB) *sql.DB
}

// databases are all of them. Each driver of SQLite has a file of its own for each call of open.
var databases = []database{
	{"pgx", sqllimit.PostgreSQL, func(t testing.TB) *sql.DB { return openDB(t, "pgx", postgres(t).URL()) }},
	{"pq", sqllimit.PostgreSQL, func(t testing.TB) *sql.DB { return openDB(t, "postgres", postgres(t).URL()) }},
	{"pgx through pgbouncer", sqllimit.PostgreSQL, func(t testing.TB) *sql.DB {
		return openDB(t, "pgx", bouncer(t).URL()+" default_query_exec_mode=exec")
	}},
	{"pq through pgbouncer", sqllimit.PostgreSQL, func(t testing.TB) *sql.DB {
		return openDB(t, "postgres", bouncer(t).URL()+" binary_parameters=yes")
	}},
	{"mariadb", sqllimit.MySQL, func(t testing.TB) *sql.DB { return openDB(t, "mysql", "root@unix("+mariadb(t).Socket()+")/test") }},
	{"mariadb interpolated", sqllimit.MySQL, func(t testing.TB) *sql.DB { // as the daemon has it
		return openDB(t, "mysql", "root@unix("+mariadb(t).Socket()+")/test?interpolateParams=true")
	}},
	{"modernc", sqllimit.SQLite, func(t testing.TB) *sql.DB {
		return openDB(t, "sqlite", "file:"+t.TempDir()+"/weir.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
	}},
	{"mattn", sqllimit.SQLite, func(t testing.TB) *sql.DB {
		return openDB(t, "sqlite3", "file:"+t.TempDir()+"/weir.db?_busy_timeout=5000&_journal_mode=WAL&_synchronous=OFF")
	}},
}

func databaseOf(name string) database {
	return databases[slices.IndexFunc(databases, func(d database) bool { return d.name == name })]
}

func (d database) ofTest(t *testing.T) *sql.DB { return d.open(t) }

func bouncer(t testing.TB) *sqltest.Server {
	before := postgres(t)
	return server(t, "pgbouncer", func(t testing.TB) *sqltest.Server { return sqltest.PgBouncer(t, before) })
}

func openDB(t testing.TB, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// everyDatabase runs a test on each database.
func everyDatabase(t *testing.T, test func(t *testing.T, d database)) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) { test(t, d) })
	}
}

var tables atomic.Int64

// newTable returns the name of a table that no other test uses.
func newTable() string { return fmt.Sprintf("weir_%d", tables.Add(1)) }

func openEngine(t testing.TB, db *sql.DB, d sqllimit.Dialect, o sqllimit.Options) *sqllimit.Engine {
	t.Helper()
	o.Create = true
	e, err := sqllimit.Open(context.Background(), db, d, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mustRule(t testing.TB, name string, limits ...weir.Limit) *weir.Rule {
	t.Helper()
	r, err := weir.NewRule(name, limits...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

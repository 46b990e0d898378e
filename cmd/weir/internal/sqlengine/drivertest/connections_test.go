package drivertest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/sqltest"
	"github.com/weirflow/weir/sqllimit"
)

// cutter cuts connections: before a request is sent, or before its answer is read.
type cutter struct {
	before, after atomic.Int64 // the number of requests until one is cut; 0 cuts none
	percent       atomic.Int64 // of all requests that are cut besides, before and after
	random        *rand.Rand   // that goroutines share
}

type cutConn struct {
	net.Conn
	cuts *cutter
	cut  atomic.Bool
}

var errCut = errors.New("the connection was cut")

func (c *cutter) due(n *atomic.Int64) bool {
	return n.Load() > 0 && n.Add(-1) == 0 || c.random.Int64N(100) < c.percent.Load()
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.cuts.due(&c.cuts.before) {
		_ = c.Close()
		return 0, errCut
	}
	if c.cuts.due(&c.cuts.after) {
		c.cut.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	if c.cut.Load() {
		_, _ = c.Conn.Read(b) // the server has answered, so it has committed
		_ = c.Close()
		return 0, errCut
	}
	return c.Conn.Read(b)
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	return &cutConn{Conn: conn, cuts: c}, err
}

func cutDB(t *testing.T, s *sqltest.Server, cuts *cutter) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc = cuts.dial
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func cutMariaDB(t *testing.T, s *sqltest.Server, cuts *cutter) *sql.DB {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName, config.DialFunc = "root", "unix", s.Socket(), "test", cuts.dial
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// A connection that is cut before the commit or after it: callers are told, and a commit whose answer was lost is found.
func TestACutConnectionIsAccountedFor(t *testing.T) {
	cuts, told := &cutter{random: randtest.New(randtest.Seed(t))}, &account{}
	db := cutDB(t, postgres(t), cuts)
	e := openEngine(t, db, sqllimit.PostgreSQL, sqllimit.Options{Table: newTable()})
	rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(1000)})
	q := rule.For("k", 1)
	for i := range 40 {
		switch i % 4 {
		case 1:
			cuts.before.Store(1)
		case 3:
			cuts.after.Store(1)
		}
		if err := told.take(e, q); i%2 == 0 && err != nil {
			t.Errorf("take %d, without a cut: %v", i, err)
		}
	}
	cuts.before.Store(0)
	cuts.after.Store(0)
	told.holds(t, e, 1000, q)
	if told.admitted.Load() < 30 {
		t.Errorf("%d of 40 were admitted, want 20 and those whose commit is found", told.admitted.Load())
	}
}

// ending is a way in which connections end under load.
type ending struct {
	open      func(t *testing.T) *sql.DB // of the engines
	database  string
	conflicts int
	kill      string // ends a connection or a query of the server, unless connections are cut
}

// Connections are cut at random, and ended by the server, in transactions and in single statements, under several callers.
func TestConnectionsThatEndAtRandomAreAccountedFor(t *testing.T) {
	cuts := &cutter{random: randtest.New(randtest.Seed(t))}
	for name, way := range map[string]ending{
		"statements": {func(t *testing.T) *sql.DB { return cutDB(t, postgres(t), cuts) }, "pgx", 0, ""},
		"locks":      {func(t *testing.T) *sql.DB { return cutDB(t, postgres(t), cuts) }, "pgx", -1, ""},
		"mariadb":    {func(t *testing.T) *sql.DB { return cutMariaDB(t, mariadb(t), cuts) }, "mariadb", -1, ""},

		"ended statements": {databaseOf("pgx").ofTest, "pgx", 0, "SELECT pg_terminate_backend(%d)"},
		"ended locks":      {databaseOf("pgx").ofTest, "pgx", -1, "SELECT pg_terminate_backend(%d)"},
		"cancelled locks":  {databaseOf("pgx").ofTest, "pgx", -1, "SELECT pg_cancel_backend(%d)"},
		"behind pgbouncer": {databaseOf("pgx through pgbouncer").ofTest, "pgx", 0, "SELECT pg_terminate_backend(%d)"},
		"ended in mariadb": {databaseOf("mariadb").ofTest, "mariadb", -1, "KILL %d"},
		"killed queries":   {databaseOf("mariadb").ofTest, "mariadb", -1, "KILL QUERY %d"},
	} {
		t.Run(name, func(t *testing.T) { way.test(t, cuts) })
	}
}

func (way *ending) test(t *testing.T, cuts *cutter) {
	const limit = 100_000
	table, told, db, d := newTable(), &account{}, way.open(t), databaseOf(way.database)
	a, b := mustRule(t, "a", weir.FixedWindow{Rate: weir.PerDay(limit)}).For("k", 1), mustRule(t, "b", weir.FixedWindow{Rate: weir.PerDay(limit)}).For("k", 1)
	admin, stop := d.open(t), make(chan bool)
	var engines []*sqllimit.Engine
	for range 2 {
		engines = append(engines, openEngine(t, db, d.dialect, sqllimit.Options{Table: table, Store: enginekit.StoreOptions{Conflicts: way.conflicts}}))
	}
	var callers, killer sync.WaitGroup
	if way.kill == "" {
		cuts.percent.Store(3)
	} else {
		killer.Go(func() { endSome(t, cuts.random, admin, way.kill, stop) })
	}
	for i := range 6 {
		callers.Go(func() {
			for range 40 {
				_ = told.take(engines[i%2], a, b)
			}
		})
	}
	callers.Wait()
	cuts.percent.Store(0)
	close(stop)
	killer.Wait()
	e := openEngine(t, admin, d.dialect, sqllimit.Options{Table: table})
	told.holds(t, e, limit, a)
	told.holds(t, e, limit, b)
	if told.admitted.Load() == 0 {
		t.Error("nothing was admitted")
	}
}

// endSome ends connections that are in a query or a transaction, until stop is closed.
func endSome(t *testing.T, random *rand.Rand, admin *sql.DB, kill string, stop chan bool) {
	list := "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND state <> 'idle'"
	if strings.HasPrefix(kill, "KILL") {
		list = "SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND user = 'root'"
	}
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(random.Int64N(20e6))):
			endAll(t, admin, list, kill)
		}
	}
}

// The server has ended every idle connection of the pool. The next decisions are made over others.
func TestIdleConnectionsThatHaveEndedAreReplaced(t *testing.T) {
	for name, c := range map[string]struct{ list, kill string }{
		"pgx":     {"SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()", "SELECT pg_terminate_backend(%d)"},
		"mariadb": {"SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND command = 'Sleep'", "KILL %d"},
	} {
		d := databaseOf(name)
		t.Run(name, func(t *testing.T) {
			db, admin, told := d.open(t), d.open(t), &account{}
			db.SetMaxIdleConns(8)
			e := openEngine(t, db, d.dialect, sqllimit.Options{Table: newTable(), Store: enginekit.StoreOptions{Conflicts: -1}})
			q := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(100)}).For("k", 1)
			for range 3 {
				if err := told.take(e, q); err != nil {
					t.Fatal(err)
				}
				endAll(t, admin, c.list, c.kill)
			}
			told.holds(t, e, 100, q)
		})
	}
}

// endAll ends the connections of a list.
func endAll(t *testing.T, admin *sql.DB, list, kill string) {
	t.Helper()
	rows, err := admin.Query(list)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		_, _ = admin.Exec(fmt.Sprintf(kill, id)) // it may have ended
	}
}

package drivertest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/sqltest"
	"github.com/weirflow/weir/sqllimit"
)

// account is what callers were told.
type account struct{ admitted, unknown, failed atomic.Int64 }

func (a *account) take(e weir.Engine, requests ...weir.Request) error {
	d, err := e.Take(context.Background(), requests...)
	switch {
	case err == nil && d.Allowed:
		a.admitted.Add(1)
	case err != nil && weir.WasCounted(err) != weir.CountedNo:
		a.unknown.Add(1)
	case err != nil:
		a.failed.Add(1)
	}
	return err
}

// holds fails the test unless what was counted is what callers were told.
func (a *account) holds(t *testing.T, e weir.Engine, limit int64, q weir.Request) {
	t.Helper()
	q.Cost = 0
	d, err := e.Peek(context.Background(), q)
	counted := limit - d.Remaining
	t.Logf("%d admitted, %d unknown, %d failed, %d counted", a.admitted.Load(), a.unknown.Load(), a.failed.Load(), counted)
	if err != nil || counted < a.admitted.Load() || counted > a.admitted.Load()+a.unknown.Load() {
		t.Errorf("%d counted of %d admitted and %d unknown (%v)", counted, a.admitted.Load(), a.unknown.Load(), err)
	}
}

// The server is killed under load and starts again. What callers were told was counted, and all end.
func TestAKilledServerLosesNothingThatItAnswered(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (*sqltest.Server, string){
		"pgx": func(t *testing.T) (*sqltest.Server, string) { s := sqltest.PostgreSQL(t); return s, s.URL() },
		"mysql": func(t *testing.T) (*sqltest.Server, string) {
			s := sqltest.MariaDB(t)
			return s, "root@unix(" + s.Socket() + ")/test"
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, source := start(t)
			dialect := sqllimit.PostgreSQL
			if name == "mysql" {
				dialect = sqllimit.MySQL
			}
			testKilledServer(t, s, func() *sqllimit.Engine { return openEngine(t, openDB(t, name, source), dialect, sqllimit.Options{}) })
		})
	}
}

func testKilledServer(t *testing.T, s *sqltest.Server, open func() *sqllimit.Engine) {
	told, q := &account{}, mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(1_000_000)}).For("k", 1)
	var all sync.WaitGroup
	var end atomic.Bool
	for range 2 {
		e := open()
		for range 8 {
			all.Go(func() {
				for !end.Load() {
					if told.take(e, q) != nil {
						time.Sleep(10 * time.Millisecond)
					}
				}
			})
		}
	}
	for range 2 {
		time.Sleep(300 * time.Millisecond)
		s.Kill()
		s.Start()
	}
	before := told.admitted.Load()
	for began := time.Now(); told.admitted.Load() == before && time.Since(began) < 10*time.Second; {
		time.Sleep(10 * time.Millisecond)
	}
	end.Store(true)
	all.Wait()
	if told.admitted.Load() == before {
		t.Error("nothing was admitted after the restart")
	}
	told.holds(t, open(), 1_000_000, q)
}

// certain fails the test unless err says that nothing was counted, and has a text.
func certain(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || weir.WasCounted(err) != weir.CountedNo || !weir.Unavailable(err) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want an error with %q that counted nothing", err, text)
	}
}

func TestAReadOnlyServerCountsNothing(t *testing.T) {
	file := "file:" + t.TempDir() + "/weir.db"
	for name, c := range map[string]struct {
		open  func() (admin, db *sql.DB)
		state string
	}{
		"pgx": {func() (admin, db *sql.DB) {
			return openDB(t, "pgx", postgres(t).URL()), openDB(t, "pgx", postgres(t).URL()+" default_transaction_read_only=on")
		}, "25006"},
		"mariadb": {func() (admin, db *sql.DB) {
			source := "root@unix(" + mariadb(t).Socket() + ")/test"
			return openDB(t, "mysql", source), openDB(t, "mysql", source+"?tx_read_only=1")
		}, "25006"},
		"modernc": {func() (admin, db *sql.DB) { return openDB(t, "sqlite", file), openDB(t, "sqlite", file+"?mode=ro") }, "readonly"},
		"mattn":   {func() (admin, db *sql.DB) { return openDB(t, "sqlite3", file), openDB(t, "sqlite3", file+"?mode=ro") }, "readonly"},
	} {
		t.Run(name, func(t *testing.T) {
			admin, db := c.open()
			table, rule, d := newTable(), mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)}), databaseOf(name).dialect
			openEngine(t, admin, d, sqllimit.Options{Table: table})
			e, err := sqllimit.Open(t.Context(), db, d, sqllimit.Options{Table: table})
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Take(t.Context(), rule.For("k", 1))
			certain(t, err, c.state)
			if d, err := e.Peek(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed {
				t.Errorf("a peek: %+v and %v, want an answer", d, err)
			}
		})
	}
}

// A statement that takes too long on the server has counted nothing. With a function that knows no states, nobody can tell.
func TestAStatementTimeoutCountsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		driver, source string
		state          string
		function       func(error) string
		locks          int
	}{
		"pgx":                  {"pgx", postgres(t).URL() + " statement_timeout=100", "57014", nil, 0},
		"pgx, locks":           {"pgx", postgres(t).URL() + " statement_timeout=100", "57014", nil, -1},
		"pgx, without a state": {"pgx", postgres(t).URL() + " statement_timeout=100", "", func(error) string { return "" }, 0},
		"mariadb":              {"mysql", "root@unix(" + mariadb(t).Socket() + ")/test?max_statement_time=0.1", "70100", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _, _ := strings.Cut(name, ",")
			d, table, told := databaseOf(kind), newTable(), &account{}
			q, other := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)}).For("k", 1), d.open(t)
			e := openEngine(t, openDB(t, c.driver, c.source), d.dialect, sqllimit.Options{Table: table, SQLState: c.function, Store: enginekit.StoreOptions{Conflicts: c.locks}})
			if err := told.take(e, q); err != nil {
				t.Fatal(err)
			}
			tx, err := other.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("UPDATE " + table + " SET ends = ends"); err != nil {
				t.Fatal(err)
			}
			err = told.take(e, q)
			if c.function == nil {
				certain(t, err, c.state)
			} else if weir.WasCounted(err) != weir.CountedUnknown {
				t.Errorf("got %v, want an error that may have counted", err)
			}
			_ = tx.Rollback()
			if err := told.take(e, q); err != nil {
				t.Error(err)
			}
			told.holds(t, e, 10, q)
		})
	}
}

func TestSerializationFailuresAreRepeated(t *testing.T) {
	table, told := newTable(), &account{}
	rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(1000)})
	var all sync.WaitGroup
	var last *sqllimit.Engine
	for range 3 {
		e := openEngine(t, openDB(t, "pgx", postgres(t).URL()+" default_transaction_isolation=serializable"), sqllimit.PostgreSQL, sqllimit.Options{Table: table})
		last = e
		for range 4 {
			all.Go(func() {
				for range 20 {
					if err := told.take(e, rule.For("k", 1), rule.For("l", 1)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if told.admitted.Load() != 240 {
		t.Errorf("%d admitted, want 240", told.admitted.Load())
	}
	told.holds(t, last, 1000, rule.For("l", 1))
}

func TestAnExhaustedPoolCountsNothing(t *testing.T) {
	db, rule := databases[0].open(t), mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)})
	table, told := newTable(), &account{}
	e := openEngine(t, db, sqllimit.PostgreSQL, sqllimit.Options{Table: table})
	hasty := openEngine(t, db, sqllimit.PostgreSQL, sqllimit.Options{Table: table, Store: enginekit.StoreOptions{Timeout: 100 * time.Millisecond}})
	if err := told.take(e, rule.For("k", 1)); err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = hasty.Take(t.Context(), rule.For("k", 1))
	certain(t, err, "deadline")
	_ = c.Close()
	if err := told.take(e, rule.For("k", 1)); err != nil {
		t.Error(err)
	}
	told.holds(t, e, 10, rule.For("k", 1))
}

// The server's clock steps back by an hour: nothing is decided ahead of it, and nothing is admitted again.
func TestASteppedClockOfTheServerAddsNothing(t *testing.T) {
	admin, table := databases[0].open(t), newTable()
	schema := "stepped_" + table
	for _, statement := range []string{
		"CREATE SCHEMA " + schema, "CREATE TABLE " + schema + ".step (by interval)", "INSERT INTO " + schema + ".step VALUES ('0')",
		"CREATE FUNCTION " + schema + ".clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT pg_catalog.clock_timestamp() + by FROM " + schema + ".step'",
	} {
		if _, err := admin.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	step := func(by string) {
		if _, err := admin.Exec(fmt.Sprintf("UPDATE %s.step SET by = '%s'", schema, by)); err != nil {
			t.Fatal(err)
		}
	}
	e := openEngine(t, openDB(t, "pgx", postgres(t).URL()+" search_path="+schema+",pg_catalog,public"), sqllimit.PostgreSQL, sqllimit.Options{Table: "public." + table})
	testSteppedClock(t, func(by time.Duration) weir.Engine {
		step(fmt.Sprint(by.Seconds(), " seconds"))
		return e
	})
}

// A connection to MariaDB can have a clock of its own.
func TestASteppedClockOfMariaDBAddsNothing(t *testing.T) {
	table, began := newTable(), time.Now()
	testSteppedClock(t, func(by time.Duration) weir.Engine {
		source := fmt.Sprintf("root@unix(%s)/test?timestamp=%d", mariadb(t).Socket(), began.Add(by).Unix())
		return openEngine(t, openDB(t, "mysql", source), sqllimit.MySQL, sqllimit.Options{Table: table})
	})
}

func testSteppedClock(t *testing.T, at func(by time.Duration) weir.Engine) {
	q := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerHour(1), Burst: 3}).For("k", 1)
	var told account
	for _, by := range []time.Duration{0, 0, -time.Hour, -time.Hour, -time.Hour} {
		if err := told.take(at(by), q); err != nil {
			t.Error(err)
		}
	}
	if told.admitted.Load() != 2 {
		t.Errorf("admitted %d, want the 2 before the clock went back: a bucket sees a larger debt then", told.admitted.Load())
	}
	e := at(65 * time.Minute)
	for range 3 { // one to learn the clock
		if err := told.take(e, q); err != nil {
			t.Error(err)
		}
	}
	if told.admitted.Load() != 4 {
		t.Errorf("admitted %d after 65 minutes at 1/h, want 4: two of a burst of 3 are free", told.admitted.Load())
	}
}

// A crash empties an unlogged table. The engine goes on, and so does one that opens it later.
func TestAnUnloggedTableIsEmptyAfterACrash(t *testing.T) {
	s := sqltest.PostgreSQL(t, "fsync=off")
	db := openDB(t, "pgx", s.URL())
	rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerHour(5), Burst: 5})
	e := openEngine(t, db, sqllimit.PostgreSQL, sqllimit.Options{Unlogged: true})
	for range 2 {
		for i := range 7 {
			d, err := e.Take(t.Context(), rule.For("k", 1))
			if err != nil && i == 0 { // over a connection from before
				d, err = e.Take(t.Context(), rule.For("k", 1))
			}
			if err != nil || d.Allowed != (i < 5) || d.RetryAfter > 12*time.Minute {
				t.Errorf("take %d: %+v and %v", i, d, err)
			}
		}
		s.Kill()
		s.Start()
	}
}

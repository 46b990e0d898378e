package drivertest

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/sqllimit"
)

// A user needs no more than the permissions that docs/howto/sql.md lists.
func TestTheListedPermissionsSuffice(t *testing.T) {
	for name, c := range map[string]struct {
		create, grant string // %s is the table
		open          func(t *testing.T) *sql.DB
	}{
		"pgx": {"CREATE ROLE limiter LOGIN", "GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO limiter",
			func(t *testing.T) *sql.DB {
				return openDB(t, "pgx", strings.Replace(postgres(t).URL(), "user=postgres", "user=limiter", 1))
			}},
		"mariadb": {"CREATE USER limiter@localhost", "GRANT SELECT, INSERT, UPDATE, DELETE ON test.%s TO limiter@localhost",
			func(t *testing.T) *sql.DB { return openDB(t, "mysql", "limiter@unix("+mariadb(t).Socket()+")/test") }},
	} {
		d := databaseOf(name)
		for _, conflicts := range []int{0, -1} {
			t.Run(fmt.Sprint(name, conflicts), func(t *testing.T) {
				admin, o := d.open(t), sqllimit.Options{Table: newTable(), Store: enginekit.StoreOptions{Rows: 1, Conflicts: conflicts}}
				text, err := sqllimit.Schema(d.dialect, o)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = admin.Exec(c.create) // the user of the first round exists
				for _, statement := range append(strings.Split(strings.TrimSpace(text), ";\n"), fmt.Sprintf(c.grant, o.Table)) {
					if _, err := admin.Exec(strings.TrimSuffix(statement, ";")); err != nil {
						t.Fatal(err)
					}
				}
				testPermissions(t, c.open(t), d.dialect, o)
			})
		}
	}
}

// testPermissions has an engine do all that it can. What it may not fails.
func testPermissions(t *testing.T, db *sql.DB, d sqllimit.Dialect, o sqllimit.Options) {
	if _, err := db.Exec("CREATE TABLE not_permitted (a int)"); d == sqllimit.MySQL && err == nil {
		t.Error("the user may create tables")
	}
	e, err := sqllimit.Open(t.Context(), db, d, o)
	if err != nil {
		t.Fatal(err)
	}
	rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerSecond(10)}, weir.Concurrency{Slots: 5, Lease: time.Second})
	for i := range 100 {
		r, err := e.Reserve(t.Context(), rule.For(fmt.Sprint(i), 1), rule.For("all", 0))
		if err != nil || r.Cancel(t.Context()) != nil {
			t.Fatal(err)
		}
	}
	ended := []enginekit.Change{{Writes: []enginekit.Write{{Key: "\x00ended", New: 1, Ends: 1}}}}
	if _, err := e.Store().Swap(t.Context(), 0, ended); err != nil || !ended[0].Done {
		t.Fatal(ended, err)
	}
	if _, err := e.Store().(enginekit.Sweeper).Sweep(t.Context(), "", time.Now().UnixNano()); err != nil {
		t.Error(err)
	}
	if rows, _, err := e.Store().Load(t.Context(), []string{"\x00ended"}); err != nil || rows[0].Version != 0 {
		t.Errorf("an ended row: %+v (%v), want none", rows, err)
	}
	if err := e.Reset(t.Context(), rule.For("all", 0)); err != nil {
		t.Error(err)
	}
}

func TestATableIsCreatedOnceAndItsVersionChecked(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		db, table := d.open(t), newTable()
		open := func(create bool) error {
			_, err := sqllimit.Open(t.Context(), db, d.dialect, sqllimit.Options{Table: table, Create: create})
			return err
		}
		if err := open(false); err == nil || !strings.Contains(err.Error(), table) {
			t.Errorf("a missing table: got %v", err)
		}
		created := make(chan error)
		for range 4 {
			go func() { created <- open(true) }()
		}
		for range 4 {
			if err := <-created; err != nil {
				t.Errorf("four processes create the table: %v", err)
			}
		}
		if err := open(false); err != nil {
			t.Error(err)
		}
		if _, err := db.Exec("UPDATE " + table + " SET version = 2"); err != nil {
			t.Fatal(err)
		}
		if err := open(true); err == nil || !strings.Contains(err.Error(), "has version 2, not 1") {
			t.Errorf("a table of a later version: got %v", err)
		}
	})
}

func TestTableNamesAreChecked(t *testing.T) {
	for _, name := range []string{`weir"; DROP TABLE x`, "a.b.c", "1a", "a-b", "ä", ".", strings.Repeat("a", 64)} {
		_, err := sqllimit.Schema(sqllimit.PostgreSQL, sqllimit.Options{Table: name})
		if bad, ok := errors.AsType[*weir.OptionError](err); !ok || bad.Field != "table" {
			t.Errorf("%q: got %v, want a *weir.OptionError about the table", name, err)
		}
	}
	if _, err := sqllimit.Schema(0, sqllimit.Options{}); err == nil {
		t.Error("no dialect: want an error")
	}
}

// Names are quoted: the words of SQL are names, too, and those of PostgreSQL keep their case.
func TestTableNamesAreQuoted(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		e := openEngine(t, d.open(t), d.dialect, sqllimit.Options{Table: "Order"})
		rule := mustRule(t, d.name, weir.FixedWindow{Rate: weir.PerDay(10)})
		for i := range 2 {
			if d, err := e.Take(t.Context(), rule.For("k", 1), rule.For("l", 1)); err != nil || d.Remaining != int64(9-i) {
				t.Errorf("take %d: %+v and %v", i, d, err)
			}
		}
	})
}

func TestAnUnloggedTableIsForPostgreSQLAlone(t *testing.T) {
	for d, want := range map[sqllimit.Dialect]bool{sqllimit.PostgreSQL: true, sqllimit.MySQL: false, sqllimit.SQLite: false} {
		text, err := sqllimit.Schema(d, sqllimit.Options{Unlogged: true})
		if strings.HasPrefix(text, "CREATE UNLOGGED TABLE") != want || (err == nil) != want {
			t.Errorf("dialect %d: got %q and %v", d, text, err)
		}
	}
}

// Updates stay in their page and touch no index, because no index has a column that a decision changes.
func TestDecisionsChangeNoIndexOfPostgreSQL(t *testing.T) {
	db, table := databases[0].open(t), newTable()
	db.SetMaxOpenConns(1) // which also has the statistics
	e := openEngine(t, db, sqllimit.PostgreSQL, sqllimit.Options{Table: table})
	rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 1000}, weir.SlidingLog{Rate: weir.PerDay(1000)})
	for i := range 400 {
		if _, err := e.Take(t.Context(), rule.For(fmt.Sprint(i%20), 1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("SELECT pg_stat_force_next_flush()"); err != nil {
		t.Fatal(err)
	}
	var updates, within int
	if err := db.QueryRow("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = $1", table).Scan(&updates, &within); err != nil {
		t.Fatal(err)
	}
	if updates != 380 || within < updates*9/10 {
		t.Errorf("%d of %d updates changed no index, want nearly all of 380", within, updates)
	}
}

// Long keys are cut, and none passes for another.
func TestLongKeysHaveRowsOfTheirOwn(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		e := openEngine(t, d.open(t), d.dialect, sqllimit.Options{Table: newTable()})
		rule := mustRule(t, strings.Repeat("r", 60), weir.FixedWindow{Rate: weir.PerDay(10)})
		long := strings.Repeat("\xff'\"\\\x00", 100)
		for i := range 3 {
			for _, key := range []string{long, long[1:], long + "x", long[:100]} {
				if d, err := e.Take(t.Context(), rule.For(key, 1)); err != nil || d.Remaining != int64(9-i) || d.Key != key {
					t.Errorf("%d bytes, take %d: %+v and %v", len(key), i, d, err)
				}
			}
		}
	})
}

// The rows of a table are deleted under a running engine: its keys are new, and the clock still decides.
func TestDeletedRowsAreLikeNewKeys(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		db, table := d.open(t), newTable()
		e := openEngine(t, db, d.dialect, sqllimit.Options{Table: table})
		rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerHour(5), Burst: 5})
		for range 2 {
			for i := range 7 {
				d, err := e.Take(t.Context(), rule.For("k", 1))
				if err != nil || d.Allowed != (i < 5) || d.RetryAfter > 12*time.Minute || d.ResetAfter > time.Hour {
					t.Errorf("take %d: %+v and %v", i, d, err)
				}
			}
			if _, err := db.Exec("DELETE FROM " + table); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := sqllimit.Open(t.Context(), db, d.dialect, sqllimit.Options{Table: table}); err != nil {
			t.Errorf("a later process: %v", err)
		}
	})
}

package drivertest

import (
	"math"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/otherwisetest"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/limittest"
	"github.com/weirflow/weir/sqllimit"
)

// All scenarios share a table, because one for each would take longer than the scenario.
func TestTheEnginePassesTheSuiteAndItsVectors(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		if testing.Short() && d.name != "pgx" && d.name != "mattn" && d.name != "mariadb" {
			t.Skip("-short: the vectors are played on one driver of each kind of database; make more has all of them do so")
		}
		t.Parallel()
		db, table := d.open(t), newTable()
		limittest.Run(t, func(clock func() int64) weir.Engine {
			e := openEngine(t, db, d.dialect, sqllimit.Options{Table: table, Store: enginekit.StoreOptions{Clock: clock, MaxEntries: math.MaxInt64}})
			if _, err := db.Exec("DELETE FROM " + table + " WHERE version <> 1"); err != nil {
				t.Fatal(err)
			}
			return e
		})
	})
}

func TestOtherwiseOnSQLiteIsTryReplaceTry(t *testing.T) {
	d := databaseOf("modernc")
	db, table := d.open(t), newTable()
	otherwisetest.Duel(t, randtest.Rounds(t, 30, 12), func(clock func() int64) weir.Engine {
		e := openEngine(t, db, d.dialect, sqllimit.Options{Table: table, Store: enginekit.StoreOptions{Clock: clock}})
		if _, err := db.Exec("DELETE FROM " + table + " WHERE version <> 1"); err != nil {
			t.Fatal(err)
		}
		return e
	})
	otherwisetest.PaidOnce(t, openEngine(t, db, d.dialect, sqllimit.Options{Table: newTable()}))
}

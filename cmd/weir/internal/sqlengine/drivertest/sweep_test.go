package drivertest

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/sqllimit"
)

// Rows that have ended are deleted by the calls that make new ones, some at a time, and no others are.
func TestEndedRowsAreDeletedInBatches(t *testing.T) {
	const ended, batch = 600, 256
	everyDatabase(t, func(t *testing.T, d database) {
		db, table := d.open(t), newTable()
		e := openEngine(t, db, d.dialect, sqllimit.Options{Table: table})
		rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)})
		var changes []enginekit.Change
		for i := range ended + 100 {
			ends := time.Now().Add(-time.Hour)
			if i%7 == 0 {
				ends = time.Now().Add(time.Hour)
			}
			changes = append(changes, enginekit.Change{Writes: []enginekit.Write{{Key: fmt.Sprintf("row %04d", i), New: 1, Ends: ends.UnixNano()}}})
		}
		if _, err := e.Store().Swap(t.Context(), 0, changes); err != nil {
			t.Fatal(err)
		}
		left := ended
		for i := range 10_000 { // which calls sweep is drawn
			if _, err := e.Take(t.Context(), rule.For(fmt.Sprint("new ", i), 1)); err != nil {
				t.Fatal(err)
			}
			now := endedRows(t, db, table)
			if left-now > 2*batch { // a call may be tried again, and sweeps again
				t.Fatalf("a call deleted %d rows, want two batches of %d at most", left-now, batch)
			}
			if left = now; left == 0 {
				break
			}
		}
		if left > 0 {
			t.Errorf("%d ended rows are left after 10,000 new ones", left)
		}
		var alive int
		if err := db.QueryRow("SELECT count(*) FROM " + table + " WHERE version = 1").Scan(&alive); err != nil || alive != 101 {
			t.Errorf("%d rows are left that had not ended, and the first one (%v), want 101", alive, err)
		}
	})
}

func endedRows(t *testing.T, db *sql.DB, table string) (n int) {
	t.Helper()
	if err := db.QueryRow(fmt.Sprintf("SELECT count(*) FROM %s WHERE ends < %d", table, time.Now().UnixMicro())).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

package drivertest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/sqltest"
	"github.com/weirflow/weir/sqllimit"
)

// A replica lags behind its primary and is promoted. The same engine goes on with it. What the replica had is kept, and what it
// lacked is admitted again: as on Redis, asynchronous replication loses that, and nothing else.
func TestAPromotedReplicaLosesOnlyWhatItLacked(t *testing.T) {
	if os.Getenv("WEIR_SQL_FAILOVER") == "" {
		t.Skip("it copies a server: make more")
	}
	const limit = 100
	primary := sqltest.PostgreSQL(t)
	replica := sqltest.Replica(t, primary)
	url := fmt.Sprintf("host=%s,%s port=5432,5432 user=postgres dbname=postgres sslmode=disable target_session_attrs=read-write", primary.Dir, replica.Dir)
	e := openEngine(t, openDB(t, "pgx", url), sqllimit.PostgreSQL, sqllimit.Options{})
	q, told := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(limit)}).For("k", 1), &account{}
	takes := func(n int) {
		for range n {
			if err := told.take(e, q); err != nil {
				t.Fatal(err)
			}
		}
	}
	takes(30)
	on := openDB(t, "pgx", replica.URL())
	var kept int64
	for began := time.Now(); kept < 30; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the replica does not follow")
		}
		if r, err := sqllimit.Open(t.Context(), on, sqllimit.PostgreSQL, sqllimit.Options{}); err == nil {
			if d, err := r.Peek(t.Context(), q); err == nil {
				kept = limit - d.Remaining
			}
		}
	}
	for _, statement := range []string{"ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"} {
		if _, err := on.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	for receivers := 1; receivers > 0; time.Sleep(10 * time.Millisecond) {
		if err := on.QueryRow("SELECT count(*) FROM pg_stat_wal_receiver").Scan(&receivers); err != nil {
			t.Fatal(err)
		}
	}
	takes(20) // which the replica lacks
	primary.Kill()
	if _, err := on.Exec("SELECT pg_promote()"); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); told.take(e, q) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the engine does not go on")
		}
	}
	takes(limit)
	d, err := e.Peek(t.Context(), q)
	lost := told.admitted.Load() - limit
	t.Logf("%d admitted of a limit of %d: %d were lost, %d unknown, %d failed", told.admitted.Load(), limit, lost, told.unknown.Load(), told.failed.Load())
	if err != nil || d.Remaining != 0 || lost > 20 || told.admitted.Load()+told.unknown.Load() < limit {
		t.Errorf("%+v and %v, want nothing left, and at most the 20 lost that the replica lacked", d, err)
	}
}

package drivertest

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/sqltest"
	"github.com/weirflow/weir/sqllimit"
)

// rival is what one writes without a limiter: a token bucket in a row, SELECT … FOR UPDATE and UPDATE in a transaction.
type rival struct{ db *sql.DB }

func newRival(b *testing.T, db *sql.DB, keys int) rival {
	for _, statement := range []string{
		"CREATE TABLE rival (name text PRIMARY KEY, tokens double precision NOT NULL, filled timestamptz NOT NULL) WITH (fillfactor = 50)",
		fmt.Sprintf("INSERT INTO rival SELECT 'k' || i, 1e9, now() FROM generate_series(0, %d) i", keys),
	} {
		if _, err := db.Exec(statement); err != nil {
			b.Fatal(err)
		}
	}
	return rival{db}
}

func (r rival) take(ctx context.Context, key string) error {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var tokens, passed float64
	if err := tx.QueryRowContext(ctx, "SELECT tokens, extract(epoch FROM clock_timestamp() - filled) FROM rival WHERE name = $1 FOR UPDATE", key).Scan(&tokens, &passed); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE rival SET tokens = $2, filled = clock_timestamp() WHERE name = $1", key, min(tokens+passed*1e6, 1e9)-1); err != nil {
		return err
	}
	return tx.Commit()
}

// load has callers take as fast as they can, and returns the decisions a second and the median time of one.
func load(t *testing.T, callers, keys int, take func(ctx context.Context, key string) error) (rate float64, median time.Duration) {
	t.Helper()
	const lasts = 3 * time.Second
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("k", i)
	}
	var all sync.WaitGroup
	var count atomic.Int64
	var times [][]time.Duration = make([][]time.Duration, callers)
	run := func(until time.Time, measured bool) {
		for c := range callers {
			all.Go(func() {
				for time.Now().Before(until) {
					began := time.Now()
					if err := take(context.Background(), names[rand.IntN(keys)]); err != nil {
						t.Error(err)
						return
					}
					if measured {
						count.Add(1)
						times[c] = append(times[c], time.Since(began))
					}
				}
			})
		}
		all.Wait()
	}
	run(time.Now().Add(time.Second), false)
	run(time.Now().Add(lasts), true)
	each := slices.Concat(times...)
	slices.SortFunc(each, cmp.Compare)
	return float64(count.Load()) / lasts.Seconds(), each[len(each)/2]
}

// wal returns the bytes of log that PostgreSQL has written.
func wal(t *testing.T, db *sql.DB) (bytes float64) {
	t.Helper()
	if err := db.QueryRow("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").Scan(&bytes); err != nil {
		t.Fatal(err)
	}
	return bytes
}

// The figures of docs/howto/sql.md. `make bench-sql` runs it.
func TestTheEngineReachesItsFigures(t *testing.T) {
	if os.Getenv("WEIR_SQL_BENCH") == "" {
		t.Skip("it takes a minute of an idle machine: make bench-sql")
	}
	s := sqltest.PostgreSQL(t, "max_connections=200", "shared_buffers=256MB", "max_wal_size=4GB")
	db := openDB(t, "pgx", s.URL())
	db.SetMaxOpenConns(128)
	db.SetMaxIdleConns(128)
	const keys = 10_000
	straight := newRival(t, db, keys)
	rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerSecond(1_000_000), Burst: 1_000_000})
	engines := map[string]*sqllimit.Engine{"logged": openEngine(t, db, sqllimit.PostgreSQL, sqllimit.Options{}), "unlogged": openEngine(t, db, sqllimit.PostgreSQL, sqllimit.Options{Table: "unlogged", Unlogged: true})}
	take := func(e *sqllimit.Engine) func(ctx context.Context, key string) error {
		return func(ctx context.Context, key string) error {
			_, err := e.Take(ctx, rule.For(key, 1))
			return err
		}
	}
	bare := func(ctx context.Context, key string) error {
		_, err := db.ExecContext(ctx, "UPDATE rival SET tokens = tokens - 1 WHERE name = $1", key)
		return err
	}
	timed := func(ctx context.Context, key string) error { // as the engine has it, and a server that may hang needs it
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return bare(ctx, key)
	}
	report := func(what string, callers, keys int, take func(ctx context.Context, key string) error) (float64, time.Duration) {
		before := wal(t, db)
		rate, median := load(t, callers, keys, take)
		t.Logf("%-40s %8.0f decisions/s, median %8v, %6.0f WAL bytes each", what, rate, median.Round(time.Microsecond), (wal(t, db)-before)/(rate*4))
		return rate, median
	}
	wide, _ := report("128 callers, 10,000 keys: rival", 128, keys, straight.take)
	ours, _ := report("128 callers, 10,000 keys: weir", 128, keys, take(engines["logged"]))
	report("128 callers, 10,000 keys: unlogged", 128, keys, take(engines["unlogged"]))
	hot, _ := report("128 callers, one key: rival", 128, 1, straight.take)
	oursHot, _ := report("128 callers, one key: weir", 128, 1, take(engines["logged"]))
	var toBare, toTimed []float64
	for range 3 { // by turns, because the server also cleans up
		_, bare50 := report("one caller: UPDATE by primary key", 1, keys, bare)
		_, timed50 := report("one caller: the same with a timeout", 1, keys, timed)
		_, ours50 := report("one caller: weir", 1, keys, take(engines["logged"]))
		toBare, toTimed = append(toBare, float64(ours50)/float64(bare50)), append(toTimed, float64(ours50)/float64(timed50))
	}
	slices.Sort(toBare)
	slices.Sort(toTimed)
	t.Logf("10,000 keys: %.1f times the rival, want 4; one key: %.1f times, want 20; one caller: %.2f times the UPDATE, and %.2f times that with a timeout, want 1.3", ours/wide, oursHot/hot, toBare[1], toTimed[1])
	if ours < 4*wide || oursHot < 20*hot || toTimed[1] > 1.3 {
		t.Error("the figures are below those of docs/howto/sql.md")
	}
	file := openDB(t, "sqlite", "file:"+t.TempDir()+"/weir.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	rate, median := load(t, 128, keys, take(openEngine(t, file, sqllimit.SQLite, sqllimit.Options{})))
	if t.Logf("SQLite, 128 callers, 10,000 keys, durable: %.0f decisions/s, median %v; want 2,000", rate, median); rate < 2000 {
		t.Error("SQLite decides less than docs/howto/sql.md says")
	}
}

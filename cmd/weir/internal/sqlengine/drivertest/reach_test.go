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

// contender is one way to decide, and what rounds of it took.
type contender struct {
	name    string
	take    func(ctx context.Context, key string) error
	rates   []float64 // decisions a second
	medians []time.Duration
	wal     []float64 // bytes a decision
}

const rounds = 5

// compete has callers of each contender take as fast as they can, by turns, because the machine and the server have moods.
func compete(t *testing.T, db *sql.DB, callers, keys int, all ...*contender) {
	t.Helper()
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("k", i)
	}
	for round := range rounds + 1 {
		for _, c := range all {
			before := wal(t, db)
			each := c.load(t, callers, names)
			if slices.Sort(each); round > 0 { // the first one warms up
				c.rates = append(c.rates, float64(len(each)))
				c.medians = append(c.medians, each[len(each)/2])
				c.wal = append(c.wal, (wal(t, db)-before)/float64(len(each)))
			}
		}
	}
	for _, c := range all {
		t.Logf("| %d | %d | %s | %.0f | %v | %.0f |", callers, keys, c.name, middle(c.rates), middle(c.medians).Round(time.Microsecond), middle(c.wal))
	}
}

// load returns how long the decisions of a second took.
func (c *contender) load(t *testing.T, callers int, names []string) []time.Duration {
	var all sync.WaitGroup
	took := make([][]time.Duration, callers)
	until := time.Now().Add(time.Second)
	for i := range callers {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		all.Go(func() {
			for time.Now().Before(until) {
				began := time.Now()
				if err := c.take(context.Background(), names[random.IntN(len(names))]); err != nil {
					t.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(began))
			}
		})
	}
	all.Wait()
	return slices.Concat(took...)
}

func middle[T cmp.Ordered](all []T) T {
	all = slices.Clone(all)
	slices.Sort(all)
	return all[len(all)/2]
}

// over returns the middle of the ratios of the rounds.
func over[T float64 | time.Duration](a, b []T) float64 {
	var ratios []float64
	for i := range a {
		ratios = append(ratios, float64(a[i])/float64(b[i]))
	}
	return middle(ratios)
}

// wal returns the bytes of log that PostgreSQL has written.
func wal(t *testing.T, db *sql.DB) (bytes float64) {
	t.Helper()
	if err := db.QueryRow("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").Scan(&bytes); err != nil {
		t.Fatal(err)
	}
	return bytes
}

// The figures of docs/howto/sql.md and bench/SQL.md. WEIR_SQL_BENCH=1 has it run.
func TestTheEngineReachesItsFigures(t *testing.T) {
	if os.Getenv("WEIR_SQL_BENCH") == "" {
		t.Skip("it takes a minute of an idle machine: set WEIR_SQL_BENCH=1")
	}
	s := sqltest.PostgreSQL(t, "max_connections=200", "shared_buffers=256MB", "max_wal_size=4GB")
	db := openDB(t, "pgx", s.URL())
	db.SetMaxOpenConns(128)
	db.SetMaxIdleConns(128)
	const keys = 10_000
	straight := newRival(t, db, keys)
	rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerSecond(1_000_000), Burst: 1_000_000})
	take := func(db *sql.DB, d sqllimit.Dialect, o sqllimit.Options) func(ctx context.Context, key string) error {
		e := openEngine(t, db, d, o)
		return func(ctx context.Context, key string) error {
			_, err := e.Take(ctx, rule.For(key, 1))
			return err
		}
	}
	logged := take(db, sqllimit.PostgreSQL, sqllimit.Options{})
	bare := func(ctx context.Context, key string) error {
		_, err := db.ExecContext(ctx, "UPDATE rival SET tokens = tokens - 1 WHERE name = $1", key)
		return err
	}
	timed := func(ctx context.Context, key string) error { // as the engine has it, because a server may hang
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return bare(ctx, key)
	}
	rival, ours := &contender{name: "SELECT … FOR UPDATE, UPDATE", take: straight.take}, &contender{name: "sqllimit", take: logged}
	unlogged := &contender{name: "sqllimit, unlogged", take: take(db, sqllimit.PostgreSQL, sqllimit.Options{Table: "unlogged", Unlogged: true})}
	compete(t, db, 128, keys, rival, ours, unlogged)
	hotRival, hot := &contender{name: "SELECT … FOR UPDATE, UPDATE", take: straight.take}, &contender{name: "sqllimit", take: logged}
	compete(t, db, 128, 1, hotRival, hot)
	update, timedUpdate := &contender{name: "UPDATE by primary key", take: bare}, &contender{name: "UPDATE with a timeout", take: timed}
	one := &contender{name: "sqllimit", take: logged}
	compete(t, db, 1, keys, update, timedUpdate, one)
	file := &contender{name: "sqllimit, SQLite", take: take(openDB(t, "sqlite", "file:"+t.TempDir()+"/weir.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"), sqllimit.SQLite, sqllimit.Options{})}
	compete(t, db, 128, keys, file)
	wide, most := over(ours.rates, rival.rates), over(hot.rates, hotRival.rates)
	alone, aloneTimed := over(one.medians, update.medians), over(one.medians, timedUpdate.medians)
	t.Logf("10,000 keys: %.1f times the rival, want 4; one key: %.1f times, want 20; one caller: %.2f times the UPDATE, and %.2f times that with a timeout, want 1.3; SQLite %.0f/s, want 2,000", wide, most, alone, aloneTimed, middle(file.rates))
	if wide < 4 || most < 20 || aloneTimed > 1.3 || middle(file.rates) < 2000 {
		t.Error("the figures are below those of docs/howto/sql.md")
	}
}

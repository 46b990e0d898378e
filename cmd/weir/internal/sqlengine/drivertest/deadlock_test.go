package drivertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/sqllimit"
)

// Engines take many new keys at once, in any order, so that their transactions insert the same rows. None deadlocks.
func TestBatchesOfNewKeysDoNotDeadlock(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		if d.dialect == sqllimit.SQLite {
			return // a transaction locks the whole file
		}
		db, table := d.open(t), newTable()
		var deadlocks atomic.Int64
		rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(1_000_000)})
		var engines []*sqllimit.Engine
		for _, conflicts := range []int{0, 0, -1, -1} { // MariaDB always locks
			engines = append(engines, openEngine(t, db, d.dialect, sqllimit.Options{Table: table, SQLState: countDeadlocks(&deadlocks), Store: enginekit.StoreOptions{Conflicts: conflicts}}))
		}
		r := rand.New(rand.NewPCG(randtest.Seed(t), 0))
		for round := range 25 {
			var all sync.WaitGroup
			for _, e := range engines {
				var requests []weir.Request
				for _, key := range r.Perm(40)[:30] {
					requests = append(requests, rule.For(fmt.Sprint(round, strings.Repeat(" ", 200), key), 1))
				}
				all.Go(func() {
					if _, err := e.Take(t.Context(), requests...); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		if n := deadlocks.Load(); n > 0 {
			t.Errorf("%d deadlocks", n)
		}
	})
}

// countDeadlocks returns a function that knows the states of all drivers, and counts deadlocks.
func countDeadlocks(n *atomic.Int64) func(error) string {
	return func(err error) (state string) {
		if of, ok := errors.AsType[interface {
			error
			SQLState() string
		}](err); ok {
			state = of.SQLState()
		}
		if of, ok := errors.AsType[*mysql.MySQLError](err); ok {
			if state = string(of.SQLState[:]); of.Number == 1213 {
				n.Add(1)
			}
		}
		if state == "40P01" {
			n.Add(1)
		}
		return state
	}
}

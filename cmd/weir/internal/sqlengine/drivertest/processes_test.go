package drivertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/sqllimit"
)

// Engines of several processes take one key, and two in both orders, as fast as they can. Nothing fails, nothing deadlocks
// and nothing is counted twice.
func TestProcessesShareALimitExactly(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		const limit = 200
		db, table := d.open(t), newTable()
		a, b := mustRule(t, "a", weir.FixedWindow{Rate: weir.PerDay(limit)}), mustRule(t, "b", weir.TokenBucket{Rate: weir.Per(limit, 24*366*3600e9)})
		var admitted atomic.Int64
		var all sync.WaitGroup
		for range 3 {
			e := openEngine(t, db, d.dialect, sqllimit.Options{Table: table})
			for caller := range 8 {
				all.Go(func() {
					requests := []weir.Request{a.For("k", 1), b.For("k", 1)}
					if caller%2 == 1 {
						requests[0], requests[1] = requests[1], requests[0]
					}
					for i := range 20 {
						d, err := e.Take(t.Context(), requests...)
						if err != nil {
							t.Error(err)
							return
						}
						if d.Allowed {
							admitted.Add(1)
						}
						if _, err := e.Take(t.Context(), a.For(fmt.Sprint("other", i), 1)); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		all.Wait()
		if admitted.Load() != limit {
			t.Errorf("admitted %d, want %d", admitted.Load(), limit)
		}
		e := openEngine(t, db, d.dialect, sqllimit.Options{Table: table})
		for i := range 20 {
			if d, err := e.Peek(t.Context(), a.For(fmt.Sprint("other", i), 0)); err != nil || d.Remaining != limit-24 {
				t.Errorf("other%d: %d left (%v), want %d", i, d.Remaining, err, limit-24)
			}
		}
	})
}

const childFile = "WEIR_TEST_SQLITE"

// Two processes and this one share a file of SQLite.
func TestProcessesShareAFileOfSQLite(t *testing.T) {
	const limit, callers = 300, 8
	file := os.Getenv(childFile)
	child := file != ""
	if !child {
		file = t.TempDir() + "/weir.db"
	}
	db := openDB(t, "sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	e := openEngine(t, db, sqllimit.SQLite, sqllimit.Options{})
	var children []*exec.Cmd
	var outputs []*strings.Builder
	for i := 0; !child && i < 2; i++ {
		c, out := exec.Command(os.Args[0], "-test.run=^TestProcessesShareAFileOfSQLite$", "-test.v"), &strings.Builder{}
		c.Env, c.Stdout = append(os.Environ(), childFile+"="+file), out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		children, outputs = append(children, c), append(outputs, out)
	}
	rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(limit)})
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range 20 {
				if d, err := e.Take(context.Background(), rule.For("k", 1)); err != nil {
					t.Error(err)
				} else if d.Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if child {
		fmt.Println("admitted:", admitted.Load(), ".")
		return
	}
	for i, c := range children {
		if err := c.Wait(); err != nil {
			t.Errorf("%v\n%s", err, outputs[i])
		}
		_, after, _ := strings.Cut(outputs[i].String(), "admitted: ")
		text, _, _ := strings.Cut(after, " ")
		n, _ := strconv.ParseInt(text, 10, 64)
		admitted.Add(n)
	}
	if admitted.Load() != limit {
		t.Errorf("three processes were admitted %d times, want %d", admitted.Load(), limit)
	}
}

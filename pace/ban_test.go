package pace_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// onBothWays runs a test with callers in line for an engine in memory, and with callers that ask one.
func onBothWays(t *testing.T, test func(t *testing.T, engine weir.Engine)) {
	for name, newEngine := range map[string]func(*testing.T) weir.Engine{
		"in line": func(t *testing.T) weir.Engine { return mustMemory(t) },
		"asked":   func(t *testing.T) weir.Engine { return newRemote(t) },
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, newEngine(t)) }) })
	}
}

// ban has takes of a key refused until it is banned, and returns for how long.
func ban(t *testing.T, engine weir.Engine, r *weir.Rule) time.Duration {
	t.Helper()
	for range 100 {
		d, err := engine.Take(t.Context(), r.For("k", 1))
		if err != nil {
			t.Fatal(err)
		}
		if d.Cause == weir.ByBan {
			return d.RetryAfter
		}
	}
	t.Fatal("100 takes do not ban a key")
	return 0
}

// A caller that waits strikes nothing, however long it is refused, and no caller of another key waits for it.
func TestWaitingCallersBanNobody(t *testing.T) {
	onBothWays(t, func(t *testing.T, engine weir.Engine) {
		queue, r := mustQueue(t, engine), rule(t, "r", "1/1s and ban 1h after 2/1h")
		var callers sync.WaitGroup
		began := time.Now()
		for range 20 {
			callers.Go(func() {
				if _, err := queue.Wait(t.Context(), r.For("k", 1)); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if took := time.Since(began); took < 19*time.Second || took > 21*time.Second {
			t.Errorf("20 callers at 1/s took %v, want 19 s", took)
		}
	})
}

// A banned key is waited for like any other, and knocking does not extend the ban.
func TestACallerOfABannedKeyIsAdmittedWhenTheBanEnds(t *testing.T) {
	for _, limits := range []string{"2/1s and ban 10s after 3/1m", "concurrency 2 lease 1s and ban 10s after 3/1m"} {
		onBothWays(t, func(t *testing.T, engine weir.Engine) {
			queue, r := mustQueue(t, engine), rule(t, "r", limits)
			began, left := time.Now(), ban(t, engine, r)
			if left != 10*time.Second {
				t.Fatalf("%s: banned for %v, want 10 s", limits, left)
			}
			short, cancel := context.WithTimeout(t.Context(), 9*time.Second)
			defer cancel()
			if _, err := queue.Wait(short, r.For("k", 1)); !errors.Is(err, weir.ErrWait) || time.Since(began) > 10*time.Millisecond {
				t.Errorf("%s: a caller with a deadline before the end got %v after %v, want a refusal at once", limits, err, time.Since(began))
			}
			if _, err := queue.Wait(t.Context(), r.For("other", 1)); err != nil || time.Since(began) > 10*time.Millisecond {
				t.Errorf("%s: a caller of another key got %v after %v, want it admitted at once", limits, err, time.Since(began))
			}
			if _, err := queue.Wait(t.Context(), r.For("k", 1)); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took < 10*time.Second || took > 10*time.Second+50*time.Millisecond {
				t.Errorf("%s: a caller without a deadline was admitted after %v, want 10 s", limits, took)
			}
		})
	}
}

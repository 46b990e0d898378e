package calls

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// These tests show that a caller never waits for the answer to another, as long as fewer calls are in flight than the
// distance permits.

// atRandom has n callers ask at random times, and returns how long they took, in ascending order.
func atRandom(t *testing.T, c *Committer, n int, perSecond float64) []time.Duration {
	took := make([]time.Duration, n)
	random := rand.New(rand.NewPCG(3, 4))
	var callers sync.WaitGroup
	for i := range n {
		time.Sleep(time.Duration(random.ExpFloat64() / perSecond * float64(time.Second)))
		callers.Go(func() {
			began := time.Now()
			ask(t, c)
			took[i] = time.Since(began)
		})
	}
	callers.Wait()
	slices.Sort(took)
	return took
}

func crowds(t *testing.T, c *Committer, callers, times int) {
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range times {
				ask(t, c)
			}
		})
	}
	all.Wait()
}

func TestWhatHappenedBeforeHoldsUpNoCallerOfADistantServer(t *testing.T) {
	const trip = 10 * time.Millisecond
	tests := []struct {
		name   string
		before func(t *testing.T, f *distant, c *Committer)
	}{
		{"two answers since the start", func(t *testing.T, _ *distant, c *Committer) {
			ask(t, c)
			ask(t, c)
		}},
		{"crowds", func(t *testing.T, _ *distant, c *Committer) {
			for _, callers := range []int{2048, 16, 128, 1024} {
				crowds(t, c, callers, 10)
				time.Sleep(time.Second)
			}
		}},
		{"an idle hour", func(t *testing.T, _ *distant, c *Committer) {
			warm(t, c)
			time.Sleep(time.Hour)
		}},
		{"a stall of a minute", func(t *testing.T, f *distant, c *Committer) {
			warm(t, c)
			f.trip = 5 * time.Second
			crowds(t, c, 100, 12)
			f.trip = trip
		}},
		{"calls that failed at once", func(t *testing.T, f *distant, c *Committer) {
			warm(t, c)
			f.trip, f.deaf = 10*time.Microsecond, true
			crowds(t, c, 1, 100)
			f.trip, f.deaf = trip, false
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &distant{trip: trip}
				c := f.committer(64)
				tt.before(t, f, c)
				took := atRandom(t, c, 450, 500)
				t.Logf("p50 %v, p99 %v, the longest %v", took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
				if longest := took[len(took)-1]; longest > trip*105/100 {
					t.Errorf("the slowest of 450 callers at 500/s took %v, want one round trip of %v", longest, trip)
				}
			})
		})
	}
}

// An undo or a renewal in the queue must not hold up the callers behind it.
func TestBackgroundWorkHoldsUpNoCaller(t *testing.T) {
	for _, trip := range []time.Duration{500 * time.Microsecond, 10 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			f := &distant{trip: trip}
			c := f.committer(64)
			warm(t, c)
			first := make(chan struct{})
			go func() { ask(t, c); close(first) }()
			time.Sleep(trip / 5)
			work := &Submission{After: func() {}}
			work.Decisions = work.One[:]
			c.Send(work)
			began := time.Now()
			ask(t, c)
			if took := time.Since(began); took > trip*105/100 {
				t.Errorf("round trip %v: with one call in flight and one undo queued, a caller took %v", trip, took)
			}
			<-first
		})
	}
}

package weir_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// refuser is one subject of a Limiter, or one key of a Keyed.
type refuser struct {
	allow    func() bool
	reserve  func() (*weir.Reservation, error)
	giveBack func(n int64) weir.Decision
	reset    func()
	setLimit func(weir.Limit) error
}

func refusers(t *testing.T, limit weir.Limit, clock func() int64) map[string]refuser {
	t.Helper()
	l, err := weir.NewWith(limit, weir.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	k, err := weir.NewKeyedWith[string](limit, weir.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]refuser{
		"Limiter": {l.Allow, func() (*weir.Reservation, error) { return l.Reserve(1, 0) }, l.Return, l.Reset, l.SetLimit},
		"Keyed": {
			func() bool { return k.Allow("key") },
			func() (*weir.Reservation, error) { return k.Reserve("key", 1, 0) },
			func(n int64) weir.Decision { return k.Return("key", n) }, func() { k.Reset("key") }, k.SetLimit,
		},
	}
}

// Whatever gives units back, or the passing of time, ends the refusals of a list at once.
func TestAnExhaustedListAdmitsAsSoonAsAUnitComesBack(t *testing.T) {
	for name, of := range map[string]func(n int64) weir.Limit{
		"sliding log": func(n int64) weir.Limit { return weir.SlidingLog{Rate: weir.PerHour(n)} },
		"rate gate":   func(n int64) weir.Limit { return weir.RateGate{Rate: weir.PerHour(n)} },
		"concurrency": func(n int64) weir.Limit { return weir.Concurrency{Slots: n, Lease: time.Hour} },
	} {
		now := int64(1_700_000_000_000_000_000)
		for kind, r := range refusers(t, of(3), func() int64 { return now }) {
			for step, comesBack := range map[string]func(){
				"a unit given back": func() { r.giveBack(1) },
				"a reset":           func() { r.reset() },
				"a larger limit": func() {
					if err := r.setLimit(of(4)); err != nil {
						t.Fatal(err)
					}
				},
				"an hour": func() { now += int64(time.Hour) },
			} {
				r.reset()
				if err := r.setLimit(of(3)); err != nil {
					t.Fatal(err)
				}
				for i := range 10 {
					if got, want := r.allow(), i < 3; got != want {
						t.Fatalf("%s, %s: unit %d: allowed %v, want %v", kind, name, i, got, want)
					}
				}
				comesBack()
				if !r.allow() {
					t.Errorf("%s, %s: refused after %s", kind, name, step)
				}
			}
		}
	}
}

// The release of a reservation ends what is remembered, too.
func TestAReleasedSlotIsFreeForACallerWhoWasRefused(t *testing.T) {
	for _, lease := range []time.Duration{0, time.Hour} {
		for name, r := range refusers(t, weir.Concurrency{Slots: 1, Lease: lease}, nil) {
			reservation, err := r.reserve()
			if err != nil || !reservation.Decision.Allowed {
				t.Fatalf("%s: Reserve: %+v, %v", name, reservation, err)
			}
			for range 5 {
				if r.allow() {
					t.Fatalf("%s: admitted while the slot is held", name)
				}
			}
			if err := reservation.Done(t.Context()); err != nil {
				t.Fatalf("%s: Done: %v", name, err)
			}
			if !r.allow() {
				t.Errorf("%s with a lease of %v: refused although the slot is free", name, lease)
			}
		}
	}
}

// Callers that are refused all the time see each slot that comes back, and never more than there are.
func TestRefusalsBesideReleasesKeepTheSlots(t *testing.T) {
	const slots, holders, rounds = 3, 6, 3000
	for name, r := range refusers(t, weir.Concurrency{Slots: slots}, nil) {
		var held atomic.Int64
		hold := func() {
			if n := held.Add(1); n > slots {
				t.Errorf("%s: %d slots are held at once, want at most %d", name, n, slots)
			}
			runtime.Gosched()
			held.Add(-1)
		}
		var all sync.WaitGroup
		for range holders {
			all.Go(func() {
				for range rounds {
					reservation, err := r.reserve()
					if err != nil || !reservation.Decision.Allowed {
						continue
					}
					hold()
					if err := reservation.Done(t.Context()); err != nil {
						t.Errorf("%s: Done: %v", name, err)
					}
				}
			})
		}
		all.Go(func() {
			for range holders * rounds {
				if r.allow() { // a slot of nobody, who gives it back
					hold()
					r.giveBack(1)
				}
			}
		})
		all.Wait()
		for i := range slots {
			if !r.allow() {
				t.Errorf("%s: slot %d is not free although all were given back", name, i)
			}
		}
	}
}

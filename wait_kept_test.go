package weir_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// closable is what a Limiter and a key of a Keyed have in common here.
type closable struct {
	pacer
	allow   func() bool
	reserve func(n int64, longest time.Duration) (*weir.Reservation, error)
	set     func(weir.Limit) error
	close   func()
}

func closables(t *testing.T, limit weir.Limit, options weir.Options) map[string]closable {
	lim := mustNew(t, limit, options)
	keyed := func(options weir.Options) closable {
		k, err := weir.NewKeyedWith[int](limit, options)
		if err != nil {
			t.Fatal(err)
		}
		if options.MaxKeys > 0 {
			fill(k)
		}
		return closable{k.For(0), func() bool { return k.Allow(0) },
			func(n int64, longest time.Duration) (*weir.Reservation, error) { return k.Reserve(0, n, longest) }, k.SetLimit, k.Close}
	}
	full := options
	full.MaxKeys = 1
	return map[string]closable{
		"Limiter":            {lim, lim.Allow, lim.Reserve, lim.SetLimit, lim.Close},
		"Keyed":              keyed(options),
		"Keyed without room": keyed(full),
	}
}

// fill takes the only room of k for longer than a test, and a unit of every group that keys without room share.
func fill(k *weir.Keyed[int]) {
	key := 0
	for k.Len() == 0 {
		key++
		k.AllowN(key, 1)
	}
	k.Record(key, 1000)
	for range 3000 {
		key++
		k.AllowN(key, 1)
	}
}

func TestCloseKeepsReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range closables(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{}) {
			for c.allow() {
			}
			waiting := make(chan error, 1)
			go func() { waiting <- c.WaitTurn(t.Context(), weir.Turn{Cost: 1}) }()
			synctest.Wait()
			used := 1
			for range 5 {
				if b, err := c.reserve(1, weir.Never); err != nil || !b.Decision.Allowed {
					t.Fatalf("%s: booking behind a waiter: %+v and %v", name, b.Decision, err)
				}
				used++
			}
			c.close()
			if err := <-waiting; !errors.Is(err, weir.ErrClosed) {
				t.Errorf("%s: the waiter got %v, want ErrClosed", name, err)
			}
			for range 8 {
				time.Sleep(time.Second)
				if c.allow() {
					used++
				}
			}
			// The instant of the dismissed waiter stays unused.
			if used != 8 {
				t.Errorf("%s: %d units in 8s, 5 of them booked before the close; want 8 of the 9 that the limit grants", name, used)
			}
		}
	})
}

// The unit comes back whatever happens between the turn and the end of the jitter, and wherever the state is.
func TestAWaitCancelledDuringItsJitterGivesTheUnitBack(t *testing.T) {
	fast, slow := weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}
	for between, do := range map[string]func(c closable){
		"nothing":   func(closable) {},
		"Allow":     func(c closable) { c.allow() },
		"Record":    func(c closable) { c.Return(0) },
		"SetLimit":  func(c closable) { _ = c.set(slow) },
		"a booking": func(c closable) { b, _ := c.reserve(1, 0); b.Cancel(t.Context()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			for name, c := range closables(t, fast, weir.Options{Jitter: time.Hour}) {
				for c.allow() {
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- c.WaitTurn(ctx, weir.Turn{Cost: 1}) }()
				time.Sleep(time.Second) // the turn has come, and the jitter begins
				synctest.Wait()
				do(c)
				if c.allow() {
					t.Errorf("%s, %s: the unit of the waiter was given to somebody else", name, between)
				}
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("%s, %s: the waiter got %v, want context.Canceled", name, between, err)
				}
				if !c.allow() {
					t.Errorf("%s, %s: the unit did not come back", name, between)
				}
			}
		})
	}
}

func TestARefusedOrNilBookingCanBeCancelled(t *testing.T) {
	invalid, err := weir.NewKeyedFunc(func(string) weir.Limit { return weir.TokenBucket{} }, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	refused, err := invalid.Reserve("k", 1, 0)
	if !errors.Is(err, weir.ErrLimit) || refused == nil || refused.Decision.Allowed {
		t.Errorf("Reserve of a key with an invalid limit: %+v and %v, want a refused booking and ErrLimit", refused, err)
	}
	for _, b := range []*weir.Reservation{refused, nil, {}} {
		b.Cancel(t.Context())
		b.CancelAfter(time.Second)
		if err := b.Settle(t.Context(), 1); err != nil {
			t.Errorf("Settle of a refused booking: %v", err)
		}
	}
}

func TestABookingWhoseKeyHasNoLimitCanBeCancelledLater(t *testing.T) {
	var invalid atomic.Bool
	k, err := weir.NewKeyedFunc(func(string) weir.Limit {
		if invalid.Load() {
			return weir.TokenBucket{}
		}
		return weir.TokenBucket{Rate: weir.PerDay(1)}
	}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := k.Reserve("k", 1, 0)
	if err != nil || !b.Decision.Allowed {
		t.Fatalf("Reserve: %+v and %v", b, err)
	}
	invalid.Store(true)
	if err := b.Settle(t.Context(), 0); !errors.Is(err, weir.ErrLimit) {
		t.Errorf("Settle while the limit is invalid: %v, want ErrLimit", err)
	}
	invalid.Store(false)
	if err := b.Settle(t.Context(), 0); err != nil || !k.Allow("k") {
		t.Errorf("Settle when it is valid again: %v, want the unit back", err)
	}
}

func TestKeysThatEqualNothingAreRefused(t *testing.T) {
	type pair struct {
		name string
		at   float64
	}
	k := mustKeyed[any](t, weir.TokenBucket{Rate: weir.PerDay(1)})
	k.Allow("begun")
	for _, key := range []any{math.NaN(), pair{"a", math.NaN()}, [1]float64{math.NaN()}} {
		_, reserved := k.Reserve(key, 1, 0)
		for verb, err := range map[string]error{"Wait": k.Wait(t.Context(), key), "Reserve": reserved} {
			if !errors.Is(err, weir.ErrRequest) {
				t.Errorf("%s of %v: %v, want a RequestError", verb, key, err)
			}
		}
		for verb, d := range map[string]weir.Decision{"Take": k.Take(key, 1), "Peek": k.Peek(key, 1), "Record": k.Record(key, 1)} {
			if d.Allowed || d.Limit != 0 || d.RetryAfter != weir.Never {
				t.Errorf("%s of %v: %+v, want a refusal that is final", verb, key, d)
			}
		}
		if k.Allow(key) {
			t.Errorf("Allow of %v: true", key)
		}
		k.Reset(key)
	}
	if n := k.Len(); n != 1 {
		t.Errorf("%d keys remembered, want the one that is equal to itself", n)
	}
}

func TestAKeyWithWaitingCallersIsCountedOnce(t *testing.T) {
	for _, limit := range []weir.Limit{weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}, weir.RateGate{Rate: weir.PerHour(1)}} {
		synctest.Test(t, func(t *testing.T) {
			k := mustKeyed[int](t, limit)
			for key := range 3 {
				k.Allow(key)
				go k.Wait(t.Context(), key)
				go k.Wait(t.Context(), key)
			}
			k.Allow(3)
			synctest.Wait()
			if n := k.Len(); n != 4 {
				t.Errorf("%v: Len is %d with 4 keys, 3 of which have waiting callers", limit, n)
			}
			k.Close()
		})
	}
}

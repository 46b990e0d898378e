package weir_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// A key with a log is no word, and so has no entry in the table that begins with the first bucket.
func TestABucketAfterALogAdmitsItsBurstOnce(t *testing.T) {
	log, bucket := weir.SlidingLog{Rate: weir.PerHour(3)}, weir.TokenBucket{Rate: weir.PerHour(5), Burst: 5}
	now := weir.Options{Clock: func() int64 { return 1_700_000_000_000_000_000 }}
	admitted := func(k *weir.Keyed[string]) (n int) {
		for range 20 {
			if k.Allow("a") {
				n++
			}
		}
		return n
	}
	check := func(name string, k *weir.Keyed[string]) {
		t.Helper()
		n := admitted(k)
		d := k.Peek("a", 1)
		if n += admitted(k); n != 5 || d.Remaining != 0 {
			t.Errorf("%s: %d units of a burst of 5 at one instant, and after the first calls %d left", name, n, d.Remaining)
		}
	}

	k, err := weir.NewKeyedWith[string](log, now)
	if err != nil {
		t.Fatal(err)
	}
	k.Allow("a")
	if err := k.SetLimit(bucket); err != nil {
		t.Fatal(err)
	}
	k.Allow("b") // begins the table
	check("SetLimit", k)

	plans := map[string]weir.Limit{"a": log, "b": bucket}
	if k, err = weir.NewKeyedFunc(func(key string) weir.Limit { return plans[key] }, now); err != nil {
		t.Fatal(err)
	}
	k.Allow("a")
	k.Allow("b")
	plans["a"] = bucket
	k.Refresh()
	check("a plan", k)
}

func TestNobodyOvertakesAfterAChangeOfKind(t *testing.T) {
	for _, c := range [][2]weir.Limit{
		{weir.SlidingLog{Rate: weir.PerHour(5)}, weir.TokenBucket{Rate: weir.PerHour(5), Burst: 5}},
		{weir.FixedWindow{Rate: weir.PerDay(5)}, weir.FixedWindow{Rate: weir.PerHour(5)}},
		{weir.TokenBucket{Rate: weir.PerHour(5)}, weir.SlidingWindow{Rate: weir.PerHour(5)}},
	} {
		synctest.Test(t, func(t *testing.T) {
			k, err := weir.NewKeyed[string](c[0])
			if err != nil {
				t.Fatal(err)
			}
			k.AllowN("a", 5)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range 8 {
				go k.Wait(ctx, "a")
				synctest.Wait()
			}
			if err := k.SetLimit(c[1]); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := k.WaitStats().Waiting; n != 3 {
				t.Fatalf("%v to %v: %d of 8 callers wait, want 3: the new limit begins afresh", c[0], c[1], n)
			}
			k.Allow("b") // begins the new table
			if k.Allow("a") {
				t.Errorf("%v to %v: a caller overtook the waiting ones", c[0], c[1])
			}
		})
	}
}

// A settlement that read the limit before a change must not bring it back: nobody would schedule the waiting callers again.
func TestASettlementDoesNotBringBackTheLimitBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var plan weir.Limit = weir.SlidingLog{Rate: weir.PerHour(2)}
		change := func() {}
		k, err := weir.NewKeyedFunc(func(string) weir.Limit {
			before := plan
			change()
			return before
		}, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		booked, err := k.Reserve("a", 1, 0)
		if err != nil || !booked.Decision.Allowed {
			t.Fatal(booked.Decision, err)
		}
		k.Allow("a")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 10 {
			go k.Wait(ctx, "a")
			synctest.Wait()
		}
		change = func() { // while the settlement reads the limit
			change = func() {}
			plan = weir.SlidingLog{Rate: weir.Per(2, 100*time.Millisecond)}
			k.Refresh()
		}
		booked.Settle(ctx, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := k.WaitStats().Waiting; n != 0 {
			t.Errorf("a second after a change to 2/100ms, %d of 10 callers wait", n)
		}
	})
}

// A state that is no word leaves an entry without words when it is evicted. Earlier times must not take it for a new key.
func TestAnEvictedKeyIsNotNewAtAnEarlierTime(t *testing.T) {
	const limit = 10_000_000 // more than a word counts
	first := time.Unix(1_700_000_000, 0)
	later, now := first.Add(time.Hour), first
	k, err := weir.NewKeyed[int](weir.SlidingWindow{Rate: weir.PerMinute(limit)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := weir.NewRule("r", weir.SlidingWindow{Rate: weir.PerMinute(limit)})
	if err != nil {
		t.Fatal(err)
	}
	m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now.UnixNano() }})
	for name, take := range map[string]func(key int, n int64) bool{
		"Keyed": func(key int, n int64) bool { return k.AllowAt(now, key, n) },
		"Memory": func(key int, n int64) bool {
			d, err := m.Take(t.Context(), r.For(fmt.Sprint(key), n))
			return err == nil && d.Allowed
		},
	} {
		now = first
		for key := range 2000 {
			take(key, limit)
		}
		now = later
		for key := range 5000 {
			take(1_000_000+key, limit) // evicts
		}
		evicted, forgotten := 0, 0
		for key := range 2000 {
			now = first
			again := take(key, 1000)
			if now = later; again {
				evicted++
				if take(key, limit) {
					forgotten++
				}
			}
		}
		if evicted == 0 || forgotten > 0 {
			t.Errorf("%s: %d keys were evicted, of which %d admitted units at the earlier time beside the limit of the eviction's", name, evicted, forgotten)
		}
	}
}

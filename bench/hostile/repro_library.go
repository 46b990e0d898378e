package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// libraryFaults need no daemon.
var libraryFaults = []knownFault{
	{"a reservation of a slot is cancelled with a context that has ended, then again", "weir: record: could not decide: context canceled; then nil; 0 of 1 slots free", settleAgain},
	{"a wait of at most 2 s for a slot that comes free after 50 ms: by its context, by WaitMax; with a lease of 30 s", "refused after 0s, refused after 0s, refused after 0s, refused after 0s", waitForSlot},
	{"Do three times over 2 slots, one after the other", "nil, nil, weir: wait: it would take 2562047h47m16.854775807s, above the bound of 299.999679ms; 0 of 2 slots free", doOverSlots},
	{"a wait that is cancelled within its jitter, after the limit was changed: units left, 1 is right", "Limiter 0, Keyed 0", jitterGivesBack},
	{"five bookings beside a waiting caller, then Close: units within 8 s, 9 may pass", "14", closeKeepsBookings},
	{"Cancel and CancelAfter of a booking that NewKeyedFunc refused, and of a nil one", "an error; panics; panics; nothing happens; panics", refusedBooking},
	{"1000 takes of the key NaN, 1 may pass; keys kept", "1000, 1000 kept", notANumber},
	{"fresh keys admitted of 1000 after 20,000 takes of NaN, 6400 keys at most", "288", notANumberFlood},
	{"1000 waits on the key NaN, 1 may pass at once", "1000", notANumberWaits},
	{"Reserve of a slot with a longest wait", "weir: reserve: limit cannot be reserved for later: it does not know its future", reserveSlot},
	{"zero Limiter, Keyed and Memory", "panics; panics; panics", zeroValues},
	{"Keyed.SetLimit beside takes: runs that keep later keys outside the table, at 252 bytes a key and not 64", "84 of 10661 runs", setLimitRace},
	{"a Take after one of 60,000 waiting callers left, least of 5", "1.747ms", func(*prober) string { return lineCost(nil) }},
	{"the same with weights 1 and 3", "2.019ms", func(*prober) string { return lineCost([]int64{1, 3}) }},
	{"a million cancelled waits: heap and goroutines more than before", "0 MB, 0 goroutines", millionCancelled},
}

func perSecond(n int64, period time.Duration) weir.Rate { return weir.Rate{Count: n, Period: period} }

// safely runs a function that may panic.
func safely(f func() string) (shown string) {
	defer func() {
		if r := recover(); r != nil {
			shown = "panics"
			if err, ok := r.(runtime.Error); !ok || !strings.Contains(err.Error(), "nil pointer") {
				shown = fmt.Sprintf("panics: %v", r)
			}
		}
	}()
	return f()
}

// plain formats an error for a cell of a table.
func plain(err error) string {
	if err == nil {
		return "nil"
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

func settleAgain(*prober) string {
	m := weir.NewMemory(weir.MemoryOptions{})
	rule, err := weir.ParseRule("c=concurrency 1")
	if err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	held, err := m.Reserve(ctx, rule.For("k", 1))
	if err != nil {
		return err.Error()
	}
	cancel()
	first, second := held.Cancel(ctx), held.Cancel(context.Background())
	d, _ := m.Peek(context.Background(), rule.For("k", 1))
	return fmt.Sprintf("%s; then %s; %d of 1 slots free", plain(first), plain(second), d.Remaining)
}

func waitForSlot(*prober) string {
	var shown []string
	for _, limit := range []weir.Concurrency{{Slots: 1}, {Slots: 1, Lease: 30 * time.Second}} {
		for _, byContext := range []bool{true, false} {
			l, err := weir.New(limit)
			if err != nil {
				return err.Error()
			}
			_ = l.Wait(context.Background())
			time.AfterFunc(50*time.Millisecond, func() { l.Record(-1) })
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			since := time.Now()
			if byContext {
				err = l.Wait(ctx)
			} else {
				err = l.WaitMax(context.Background(), 1, 2*time.Second)
			}
			cancel()
			verdict := "admitted"
			if err != nil {
				verdict = "refused"
			}
			shown = append(shown, fmt.Sprintf("%s after %v", verdict, time.Since(since).Round(time.Millisecond)))
		}
	}
	return strings.Join(shown, ", ")
}

func doOverSlots(*prober) string {
	l, err := weir.New(weir.Concurrency{Slots: 2})
	if err != nil {
		return err.Error()
	}
	var shown []string
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		_, err := pace.Do(ctx, l, func(context.Context) (int, error) { return 0, nil })
		cancel()
		shown = append(shown, plain(err))
	}
	return fmt.Sprintf("%s; %d of 2 slots free", strings.Join(shown, ", "), l.Peek(0).Remaining)
}

func jitterGivesBack(*prober) string {
	limit := weir.TokenBucket{Rate: perSecond(1, 100*time.Millisecond), Burst: 1}
	slow := weir.TokenBucket{Rate: perSecond(1, time.Hour), Burst: 1}
	l, err := weir.NewWith(limit, weir.Options{Jitter: time.Hour})
	if err != nil {
		return err.Error()
	}
	k, err := weir.NewKeyedWith[string](limit, weir.Options{Jitter: time.Hour})
	if err != nil {
		return err.Error()
	}
	l.Allow()
	k.Allow("x")
	ctx, cancel := context.WithCancel(context.Background())
	var both sync.WaitGroup
	both.Go(func() { _ = l.Wait(ctx) })
	both.Go(func() { _ = k.Wait(ctx, "x") })
	time.Sleep(150 * time.Millisecond) // both were admitted after 100 ms; jitter delays them
	_ = l.SetLimit(slow)
	_ = k.SetLimit(slow)
	l.Peek(0)
	k.Peek("x", 0)
	cancel()
	both.Wait()
	return fmt.Sprintf("Limiter %d, Keyed %d", l.Peek(0).Remaining, k.Peek("x", 0).Remaining)
}

func closeKeepsBookings(*prober) string {
	now := int64(1e18)
	var mu sync.Mutex
	clock := func() int64 { mu.Lock(); defer mu.Unlock(); return now }
	l, err := weir.NewWith(weir.TokenBucket{Rate: perSecond(1, time.Second), Burst: 1}, weir.Options{Clock: clock})
	if err != nil {
		return err.Error()
	}
	l.Allow()
	go func() { _ = l.Wait(context.Background()) }()
	for l.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	passed := 1
	for range 5 {
		if b, err := l.Reserve(1, weir.Never); err == nil && b.Decision.Allowed {
			passed++
		}
	}
	l.Close()
	for range 8 {
		mu.Lock()
		now += int64(time.Second)
		mu.Unlock()
		if l.Allow() {
			passed++
		}
	}
	return fmt.Sprint(passed)
}

func refusedBooking(*prober) string {
	k, err := weir.NewKeyedFunc[string](func(string) weir.Limit { return weir.TokenBucket{} }, weir.Options{})
	if err != nil {
		return err.Error()
	}
	refused, err := k.Reserve("x", 1, 0)
	verdict := "an error"
	if err == nil {
		verdict = "no error"
	}
	var none *weir.Reservation
	cancel := func(r *weir.Reservation) func() { return func() { _ = r.Cancel(context.Background()) } }
	shown := []string{verdict}
	for _, f := range []func(){cancel(refused), func() { refused.CancelAfter(time.Second) }, cancel(none), func() { none.CancelAfter(time.Second) }} {
		shown = append(shown, safely(func() string { f(); return "nothing happens" }))
	}
	return strings.Join(shown, "; ")
}

func notANumber(*prober) string {
	k, err := weir.NewKeyed[float64](weir.TokenBucket{Rate: perSecond(1, time.Hour), Burst: 1})
	if err != nil {
		return err.Error()
	}
	n := 0
	for range 1000 {
		if k.Allow(math.NaN()) {
			n++
		}
	}
	return fmt.Sprintf("%d, %d kept", n, k.Len())
}

func notANumberFlood(*prober) string {
	k, err := weir.NewKeyedWith[float64](weir.RateGate{Rate: perSecond(1, time.Millisecond)}, weir.Options{MaxKeys: 6400})
	if err != nil {
		return err.Error()
	}
	for range 20_000 {
		k.Allow(math.NaN())
	}
	time.Sleep(50 * time.Millisecond)
	n := 0
	for i := range 1000 {
		if k.Allow(1e6 + float64(i)) {
			n++
		}
	}
	return fmt.Sprint(n)
}

func notANumberWaits(*prober) string {
	k, err := weir.NewKeyed[float64](weir.TokenBucket{Rate: perSecond(1, time.Hour), Burst: 1})
	if err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	n := 0
	for range 1000 {
		if k.Wait(ctx, math.NaN()) == nil {
			n++
		}
	}
	return fmt.Sprint(n)
}

func reserveSlot(*prober) string {
	l, err := weir.New(weir.Concurrency{Slots: 1})
	if err != nil {
		return err.Error()
	}
	_, err = l.Reserve(1, time.Second)
	return plain(err)
}

func zeroValues(*prober) string {
	rule, err := weir.ParseRule("r=token bucket 1/s")
	if err != nil {
		return err.Error()
	}
	return strings.Join([]string{
		safely(func() string { var l weir.Limiter; return plain(l.Wait(context.Background())) }),
		safely(func() string { var k weir.Keyed[string]; return plain(k.Wait(context.Background(), "k")) }),
		safely(func() string {
			var m weir.Memory
			_, err := m.Take(context.Background(), rule.For("k", 1))
			return plain(err)
		}),
	}, "; ")
}

// lineCost measures the cost of a waiting caller's departure for another one.
func lineCost(weights []int64) string {
	const waiting = 60_000
	l, err := weir.NewWith(weir.TokenBucket{Rate: perSecond(1, time.Hour), Burst: 1}, weir.Options{Weights: weights})
	if err != nil {
		return err.Error()
	}
	l.Allow()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range waiting {
		all.Go(func() { _ = l.WaitTurn(ctx, weir.Turn{Cost: 1, Class: i % max(1, len(weights))}) })
	}
	for l.Waiting() < waiting {
		time.Sleep(10 * time.Millisecond)
	}
	least := time.Hour
	for range 5 {
		leaving, leave := context.WithCancel(context.Background())
		left := make(chan error)
		go func() { left <- l.Wait(leaving) }()
		for l.Waiting() == waiting {
			time.Sleep(time.Millisecond)
		}
		leave()
		<-left
		since := time.Now()
		l.Take(1)
		least = min(least, time.Since(since))
	}
	cancel()
	all.Wait()
	return least.Round(time.Microsecond).String()
}

func millionCancelled(*prober) string {
	l, err := weir.NewWith(weir.RateGate{Rate: perSecond(1, time.Hour)}, weir.Options{Queue: 1 << 20})
	if err != nil {
		return err.Error()
	}
	l.Allow()
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	before, routines := heap(), runtime.NumGoroutine()
	for range 100 {
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		for range 10_000 {
			all.Go(func() {
				if err := l.Wait(ctx); !errors.Is(err, context.Canceled) {
					panic(err)
				}
			})
		}
		for l.Waiting() < 10_000 {
			time.Sleep(time.Millisecond)
		}
		cancel()
		all.Wait()
	}
	time.Sleep(100 * time.Millisecond)
	return fmt.Sprintf("%d MB, %d goroutines", (heap()-before)>>20, runtime.NumGoroutine()-routines)
}

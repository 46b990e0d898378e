package redislimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/pace"
)

// threeQueues returns queues over engines of their own.
func threeQueues(t *testing.T, server *redistest.Server, options Options) (queues []*pace.Queue) {
	t.Helper()
	for range 3 {
		queues = append(queues, queueOver(t, openFor(t, "redis://"+server.Addr, options)))
	}
	return queues
}

// The server's clock is set forward by an hour: callers of slots, and callers that book a rate, go on within seconds, beside
// callers of both. It is set back: callers of slots go on.
func TestCallersGoOnWhenTheServersClockIsSet(t *testing.T) {
	t.Parallel()
	server := redistest.StartWithClock(t)
	queues := threeQueues(t, server, Options{Logger: slog.New(slog.DiscardHandler)})
	slots, rate := mustRule(t, "s=concurrency 4 lease 30s"), mustRule(t, "r=token bucket 100/s burst 5")
	all := newLineCrowd(t)
	for _, queue := range queues {
		all.come("slots", 5, queue, 10*time.Millisecond, slots.For("k", 1))
		all.come("both", 5, queue, 10*time.Millisecond, slots.For("k", 1), rate.For("k", 1))
		all.book("rate", 5, queue, rate.For("k", 1))
	}
	least := map[string]int{"slots": 200, "rate": 100} // callers of both have no promise beside callers that book the rate
	all.wantGoOn(least)
	server.SetClock(time.Hour)
	all.wantGoOn(least)
	server.SetClock(0) // a rate waits until the clock has caught up
	all.wantGoOn(map[string]int{"slots": 200})
	all.end()
}

// Callers of a host whose slot is held do not keep slots of the total from other hosts.
func TestABlockedHostLeavesTheTotalToOthers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	queues := threeQueues(t, server, Options{})
	total, host := mustRule(t, "total=concurrency 3 lease 30s"), mustRule(t, "host=concurrency 1 lease 30s")
	held, err := queues[0].Acquire(t.Context(), host.For("blocked", 1))
	if err != nil {
		t.Fatal(err)
	}
	all := newLineCrowd(t)
	for i, queue := range queues {
		all.come("blocked", 20, queue, 20*time.Millisecond, total.For("all", 1), host.For("blocked", 1))
		for _, name := range []string{"a", "b", "c"} {
			all.come(name, 2, queue, 20*time.Millisecond, total.For("all", 1), host.For(name, 1))
		}
		all.come(fmt.Sprint("own ", i), 1, queue, 20*time.Millisecond, total.For("all", 1), host.For(fmt.Sprint("own ", i), 1))
	}
	all.wantGoOn(map[string]int{"a": 40, "b": 40, "c": 40, "own 0": 15, "own 1": 15, "own 2": 15})
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	all.wantGoOn(map[string]int{"blocked": 20, "a": 10})
	all.end()
}

// 150 callers sleep until a rate of their own admits them, and the slots are free: others take them at once.
func TestCallersThatSleepForARateKeepNoSlots(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	queues := threeQueues(t, server, Options{})
	slots, rate := mustRule(t, "s=concurrency 100 lease 30s"), mustRule(t, "r=token bucket 1/h burst 1")
	engine := openFor(t, "redis://"+server.Addr, Options{})
	ctx, leave := context.WithCancel(t.Context())
	all := newLineCrowd(t)
	for i := range 150 {
		host := fmt.Sprint(i)
		if err := allowed(engine.Take(t.Context(), rate.For(host, 1))); err != nil {
			t.Fatal(err)
		}
		all.all.Go(func() {
			if _, err := queues[0].Acquire(ctx, slots.For("k", 1), rate.For(host, 1)); !errors.Is(err, context.Canceled) {
				t.Errorf("a caller whose rate is spent: %v", err)
			}
		})
	}
	eventually(t, "all wait", func() error {
		if n := queues[0].Waiting(); n != 150 {
			return fmt.Errorf("%d callers", n)
		}
		return nil
	})
	for i, queue := range queues {
		for _, requests := range [][]weir.Request{{slots.For("k", 1)}, {slots.For("k", 100)}, {slots.For("k", 1), rate.For(fmt.Sprint("fresh", i), 1)}} {
			began := time.Now()
			a, err := queue.Acquire(t.Context(), requests...)
			if err != nil || a.Done(t.Context()) != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 10*time.Second { // the others sleep for an hour
				t.Errorf("queue %d: %v took %v", i, requests, took)
			}
		}
	}
	leave()
	all.end()
}

// Close ends the waits of all callers of an engine, and the callers of others go on soon.
func TestCloseEndsAllWaitsAndHoldsUpOthersBriefly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	closing := openFor(t, "redis://"+server.Addr, Options{})
	queue := queueOver(t, closing)
	others := threeQueues(t, server, Options{})
	slots, rate := mustRule(t, "s=concurrency 1 lease 30s"), mustRule(t, "r=token bucket 1/h burst 1")
	held, err := others[0].Acquire(t.Context(), slots.For("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := others[0].Wait(t.Context(), rate.For("k", 1)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 30)
	for range 10 {
		go func() {
			_, err := queue.Acquire(t.Context(), slots.For("k", 1))
			ended <- err
		}()
		go func() {
			_, err := queue.Wait(t.Context(), rate.For("k", 1))
			ended <- err
		}()
		go func() {
			_, err := queue.Acquire(t.Context(), slots.For("free", 1), rate.For("k", 1))
			ended <- err
		}()
	}
	eventually(t, "all wait", func() error {
		if n := queue.Waiting(); n != 30 {
			return fmt.Errorf("%d callers", n)
		}
		return nil
	})
	time.Sleep(100 * time.Millisecond)
	next := make(chan error)
	go func() {
		_, err := others[1].Acquire(t.Context(), slots.For("k", 1))
		next <- err
	}()
	time.Sleep(100 * time.Millisecond)
	closing.Close()
	began := time.Now()
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		select {
		case err := <-ended:
			if failed, is := errors.AsType[*Error](err); !is || failed.Reason != Closed {
				t.Errorf("a caller of the closed engine: %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%d of 30 callers still wait for a closed engine", 30-i)
		}
	}
	if err := <-next; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second { // leases last for 30 s
		t.Errorf("the next caller went %v after the slot had come free", took)
	}
}

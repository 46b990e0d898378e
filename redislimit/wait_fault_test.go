package redislimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit/internal/calls"
)

func TestErrorsOfAServerThatWillBeWellAreUnavailable(t *testing.T) {
	for reason, want := range map[Reason]bool{
		Lost: true, Loading: true, ReadOnly: true, OutOfMemory: true, ClusterDown: true,
		Refused: false, TooOld: false, Denied: false, Damaged: false, Cancelled: false, Closed: false, Undone: false,
	} {
		if got := weir.Unavailable(fmt.Errorf("wait: %w", &Error{Reason: reason, Err: errors.New("x")})); got != want {
			t.Errorf("Unavailable of %q is %v, want %v", reason, got, want)
		}
	}
}

func queueOver(t *testing.T, engine *Engine) *pace.Queue {
	t.Helper()
	queue, err := pace.NewQueue(engine, pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return queue
}

// Callers of two processes wait for slots and a rate while the keys of their lane move to another node: the slots first, then
// after a while the others. Their asks are refused meanwhile, and decided whole later. No caller hears of it.
func TestCallersWaitWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	url := "redis-cluster://" + cluster.Nodes[0].Addr
	engines := []*Engine{openFor(t, url, Options{Lanes: 1}), openFor(t, url, Options{Lanes: 1})}
	queues := []*pace.Queue{queueOver(t, engines[0]), queueOver(t, engines[1])}
	slots, rate := mustRule(t, "slots=concurrency 2 lease 1m"), mustRule(t, "rate=token bucket 1000/s burst 10")
	requests := []weir.Request{slots.For("k", 1), rate.For("k", 1), slots.For("all", 1)}
	number := cluster.Slot(engines[0].keys.Name(0, "", ""))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const callers = 10
	var all sync.WaitGroup
	var served atomic.Int64
	var enough atomic.Bool
	for i := range callers {
		all.Go(func() {
			for !enough.Load() {
				a, err := queues[i%2].Acquire(ctx, requests...)
				if err == nil {
					time.Sleep(10 * time.Millisecond)
					err = a.Done(ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
				served.Add(1)
			}
		})
	}
	wait := func(n int64) {
		t.Helper()
		from := served.Load()
		eventually(t, "callers are served", func() error {
			if got := served.Load() - from; got < n {
				return fmt.Errorf("%d are, want %d", got, n)
			}
			return nil
		})
	}
	wait(callers)
	move := cluster.BeginMove(number, other(cluster, number))
	move.Keys(1)
	for _, e := range engines {
		before := e.Stats().Calls
		eventually(t, "the engine asks while the slot moves", func() error {
			if got := e.Stats().Calls - before; got < calls.MovingTries {
				return fmt.Errorf("%d calls, want %d", got, calls.MovingTries)
			}
			return nil
		})
	}
	move.Finish()
	wait(10 * callers)
	enough.Store(true)
	all.Wait()
	for _, r := range []weir.Request{slots.For("k", 0), slots.For("all", 0)} {
		if d, err := engines[0].Peek(t.Context(), r); err != nil || d.Remaining != 2 {
			t.Errorf("afterwards: %+v and %v, want both slots free", d, err)
		}
	}
}

// A server that restarts, or is a replica for a while, ends nobody's wait: neither for slots nor for a booked rate.
func TestCallersKeepTheirPlacesWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "appendonly yes", "appendfsync always")
	engine := openFor(t, "redis://"+server.Addr, Options{})
	queue := queueOver(t, engine)
	slots, rate := mustRule(t, "slots=concurrency 1 lease 1m"), mustRule(t, "rate=token bucket 2/s burst 1")
	held, err := queue.Acquire(t.Context(), slots.For("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	const callers = 4
	served := make(chan error, 2*callers)
	for range callers {
		go func() {
			a, err := queue.Acquire(t.Context(), slots.For("k", 1))
			if err == nil {
				_ = a.Done(t.Context()) // the engine repeats a release that was lost
			}
			served <- err
		}()
		go func() {
			_, err := queue.Wait(t.Context(), rate.For("k", 1))
			served <- err
		}()
	}
	eventually(t, "all wait", func() error {
		if n := queue.Waiting(); n > 2*callers || n < callers+1 {
			return fmt.Errorf("%d callers", n)
		}
		return nil
	})
	server.Do("REPLICAOF", "127.0.0.1", "1")
	time.Sleep(time.Second)
	server.Do("REPLICAOF", "NO", "ONE")
	_ = held.Done(t.Context())
	for range 2 * callers {
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("a caller still waits")
		}
	}
}

// heldSender holds back the next call while a test wants it to.
type heldSender struct {
	Sender
	hold chan chan struct{}
}

func (h heldSender) Send(ctx context.Context, command ...string) (string, error) {
	select {
	case wait := <-h.hold:
		<-wait
	default:
	}
	return h.Sender.Send(ctx, command...)
}

func TestReleasesThatShareACallAreAllCounted(t *testing.T) {
	server := redistest.Start(t)
	sender := heldSender{rueidisSender{clientOf(t, server)}, make(chan chan struct{}, 1)}
	engine, err := NewWith(sender, Options{Flights: 1}) // also if a busy machine seems far away
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	const n = 20
	slots := mustRule(t, "s=concurrency 20 lease 1h")
	released := make(chan error, n)
	var held []*weir.Reservation
	for range n {
		r, err := engine.Reserve(t.Context(), slots.For("k", 1))
		if err := allowed(r.Decision, err); err != nil {
			t.Fatal(err)
		}
		held = append(held, r)
	}
	open := make(chan struct{})
	sender.hold <- open
	release := func(r *weir.Reservation) { released <- r.Done(t.Context()) }
	go release(held[0])
	eventually(t, "the first release is held", func() error {
		if len(sender.hold) > 0 {
			return errors.New("it is not")
		}
		return nil
	})
	for _, r := range held[1:] {
		go release(r)
	}
	eventually(t, "all releases but the first wait for one call", func() error {
		if waiting := engine.Stats().Queued; waiting < n-1 {
			return fmt.Errorf("%d do", waiting)
		}
		return nil
	})
	close(open)
	for range n {
		if err := <-released; err != nil {
			t.Error(err)
		}
	}
	if d, err := engine.Peek(t.Context(), slots.For("k", 0)); err != nil || d.Remaining != n {
		t.Errorf("%d slots are free (%v), want %d", d.Remaining, err, n)
	}
}

// Without a cluster one call decides keys of all lanes, so callers of any keys stand in line, whatever they ask for first.
func TestCallersOfKeysOfSeveralLanesStandInLine(t *testing.T) {
	server := redistest.Start(t)
	queue := queueOver(t, openFor(t, "redis://"+server.Addr, Options{}))
	slots, rate := mustRule(t, "s=concurrency 1 lease 1m"), mustRule(t, "r=token bucket 1000/s burst 10")
	requests := []weir.Request{rate.For("host", 1)}
	for i := range 8 {
		requests = append(requests, slots.For(fmt.Sprint(i), 1))
	}
	all := newLineCrowd(t)
	all.come("all", 5, queue, time.Millisecond, requests...)
	all.come("one", 5, queue, time.Millisecond, requests[:2]...)
	all.wantGoOn(map[string]int{"all": 20, "one": 20})
	all.end()
}

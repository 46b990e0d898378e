package redislimit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// A line has callers of 1,024 processes at most. A call of a full line does a bounded amount of work, and one more process is
// refused with an error that names the bound.
func TestALineHasABoundedNumberOfProcesses(t *testing.T) {
	t.Parallel()
	const most = 1000 // us
	counting := newCountingSender(t, redistest.Start(t))
	engine, err := NewWith(counting, Options{Clock: func() int64 { return 1e18 }}) // nobody grows old
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	slots := mustRule(t, "slots=concurrency 1 lease 1h")
	if err := allowed(doCall(t.Context(), engine, weir.Call{Lease: weir.NewLease()}, slots.For("k", 1))); err != nil {
		t.Fatal(err)
	}
	ask := func(lines enginekit.Lines) error {
		ask := &enginekit.LineAsk{Keys: []enginekit.LineKey{{Slots: slots.For("k", 0), Token: 1}}}
		for range enginekit.MaxLineCallers {
			ask.Callers = append(ask.Callers, enginekit.LineCaller{Requests: []weir.Request{slots.For("k", 1)}, Lease: weir.NewLease(), Since: time.Now()})
		}
		if err := lines.Ask(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		if err := ask.Callers[0].Err; err != nil {
			return err
		}
		if len(ask.Callers[0].Stands) == 0 {
			t.Fatalf("a caller does not stand: %+v", ask.Callers[0])
		}
		return nil
	}
	first := engine.EnterLines(func(enginekit.LineSignal) {})
	for i := range wire.MostProcesses {
		lines := first
		if i > 0 {
			lines = engine.EnterLines(func(enginekit.LineSignal) {})
		}
		if err := ask(lines); err != nil {
			t.Fatalf("process %d: %v", i, err)
		}
	}
	if err := ask(engine.EnterLines(func(enginekit.LineSignal) {})); !errors.Is(err, weir.ErrQueueFull) || !strings.Contains(err.Error(), fmt.Sprint(wire.MostProcesses)) {
		t.Errorf("one process more: %v, want ErrQueueFull with the bound", err)
	}
	if err := ask(first); err != nil {
		t.Errorf("a process that is in the line: %v", err)
	}
	entries, bytes, calls := counting.most()
	took := entries*microsOfEntry + bytes/1024*microsOfKB
	t.Logf("%d calls: at most %.0f entries and %.0f KB, %.0f us", calls, entries, bytes/1024, took)
	if took > most {
		t.Errorf("a call takes %.0f us, want at most %d", took, most)
	}
}

// An engine forgets the lines of queues that nobody uses any more.
func TestLinesThatNobodyUsesAreForgotten(t *testing.T) {
	engine, err := NewWith(newCountingSender(t, redistest.Start(t)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	kept := engine.EnterLines(func(enginekit.LineSignal) {})
	for range 100 {
		engine.EnterLines(func(enginekit.LineSignal) {})
	}
	runtime.GC()
	last := engine.EnterLines(func(enginekit.LineSignal) {})
	if n := len(engine.entered.all); n != 2 {
		t.Errorf("the engine knows the lines of %d queues, want 2", n)
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(last)
}

// droppingSender loses calls while a test says so.
type droppingSender struct {
	Sender
	lost *atomic.Int64 // how many calls are still lost
}

func (s droppingSender) Send(ctx context.Context, command ...string) (string, error) {
	if s.lost.Add(-1) >= 0 {
		return "", errors.New("the connection is lost")
	}
	return s.Sender.Send(ctx, command...)
}

// A caller that leaves while calls are lost leaves the line as soon as one is answered, before its entry dies. If none ever
// is, the callers behind it go after a grace.
func TestACallerThatLeavesWhileCallsAreLostHoldsUpNobodyForLong(t *testing.T) {
	for _, lost := range []int64{3, 1 << 40} {
		t.Run(fmt.Sprint(lost, " calls are lost"), func(t *testing.T) {
			server := redistest.Start(t)
			sender := droppingSender{rueidisSender{clientOf(t, server)}, new(atomic.Int64)}
			leaves, err := NewWith(sender, Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(leaves.Close)
			slots := mustRule(t, "s=concurrency 1 lease 1m")
			other := queueOver(t, openFor(t, "redis://"+server.Addr, Options{}))
			held, err := other.Acquire(t.Context(), slots.For("k", 1))
			if err != nil {
				t.Fatal(err)
			}
			ctx, leave := context.WithCancel(t.Context())
			gone, went := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := queueOver(t, leaves).Acquire(ctx, slots.For("k", 1))
				gone <- err
			}()
			time.Sleep(50 * time.Millisecond)
			go func() {
				_, err := other.Acquire(t.Context(), slots.For("k", 1))
				went <- err
			}()
			time.Sleep(50 * time.Millisecond)
			sender.lost.Store(lost)
			leave()
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			began := time.Now()
			if err := held.Done(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-went; err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 900*time.Millisecond {
				t.Errorf("the next caller went after %v", took)
			}
		})
	}
}

// The lines are told anew after Redis has lost them, and callers keep their order.
func TestCallersEnterALostLineAgain(t *testing.T) {
	server := redistest.Start(t)
	slots := mustRule(t, "s=concurrency 1 lease 1m")
	queues := threeQueues(t, server, Options{})
	held, err := queues[0].Acquire(t.Context(), slots.For("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	went := make(chan int, 6)
	var callers sync.WaitGroup
	for i := range 6 {
		callers.Go(func() {
			a, err := queues[i%3].Acquire(t.Context(), slots.For("k", 1))
			went <- i // before the next one can go
			if err == nil {
				err = a.Done(context.Background())
			}
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
		time.Sleep(40 * time.Millisecond)
	}
	keys, _ := server.Do("KEYS", "*:qn:*").([]any)
	if len(keys) != 1 {
		t.Fatalf("the lines are %v, want one", keys)
	}
	server.Do("DEL", keys[0].(string))
	time.Sleep(600 * time.Millisecond) // a heartbeat
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if got := <-went; got != i {
			t.Errorf("caller %d went, want %d", got, i)
		}
	}
	callers.Wait()
}

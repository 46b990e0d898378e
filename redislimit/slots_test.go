package redislimit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
)

// A process that dies, here an engine that is closed, holds its slots until the end of their leases, and no longer.
func TestASlotIsHeldByItsReservationAndEndsWithItsLease(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	engine, beside := openFor(t, "redis://"+server.Addr, Options{}), openFor(t, "redis://"+server.Addr, Options{})
	const lease = 3 * time.Second // a third of it is how late a renewal may be
	slots, err := weir.NewRule("slots", weir.Concurrency{Slots: 1, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	held, err := engine.Reserve(t.Context(), slots.For("k", 1))
	if err != nil || !held.Decision.Allowed {
		t.Fatalf("Reserve: %+v, %v", held, err)
	}
	for began := time.Now(); time.Since(began) < 2*lease; goOn(lease / 20) {
		if d, err := beside.Peek(t.Context(), slots.For("k", 1)); err != nil || d.Allowed {
			t.Fatalf("%v after Reserve: another caller gets %+v (%v), want the slot held", time.Since(began), d, err)
		}
	}
	select {
	case <-held.Lost():
		t.Fatal("Lost is closed while the slot is held")
	default:
	}
	engine.Close()
	wantLost(t, held)
	eventually(t, "the slot is free after its lease", func() error {
		return allowed(beside.Peek(t.Context(), slots.For("k", 1)))
	})
}

func allowed(d weir.Decision, err error) error {
	if err == nil && !d.Allowed {
		err = fmt.Errorf("%+v", d)
	}
	return err
}

// wantLost fails unless the reservation says soon that its slot is lost.
func wantLost(t *testing.T, held *weir.Reservation) {
	t.Helper()
	select {
	case <-held.Lost():
	case <-time.After(patience):
		t.Fatal("the holder of a lost slot is not notified")
	}
	runtime.KeepAlive(held) // a dropped reservation is not notified
}

func isLost(r *weir.Reservation) bool {
	select {
	case <-r.Lost():
		return true
	default:
		return false
	}
}

// Whatever takes a slot away, its holder learns it. No call has a time that a busy machine may miss.
func TestTheHolderOfALostSlotIsTold(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(*redistest.Server, *Engine, weir.Request){
		"a reset":                              func(_ *redistest.Server, e *Engine, q weir.Request) { _ = e.Reset(t.Context(), q) },
		"a server that lost its memory":        func(s *redistest.Server, _ *Engine, _ weir.Request) { s.Do("FLUSHALL") },
		"a server that hangs beyond the lease": func(s *redistest.Server, _ *Engine, _ weir.Request) { s.Stop() },
		"a server that is gone":                func(s *redistest.Server, _ *Engine, _ weir.Request) { s.Kill() },
	} {
		t.Run(what, func(t *testing.T) {
			server := redistest.Start(t)
			engine := openFor(t, "redis://"+server.Addr+"?timeout=30s", Options{})
			slots := mustRule(t, "slots=concurrency 2 lease 2s")
			held, err := engine.Reserve(t.Context(), slots.For("k", 1))
			if err != nil {
				t.Fatal(err)
			}
			settled, err := engine.Reserve(t.Context(), slots.For("k", 1))
			if err != nil {
				t.Fatal(err)
			}
			if err := settled.Done(t.Context()); err != nil {
				t.Fatal(err)
			}
			ended := isLost(settled) // before Done, on a machine that was busy for longer than the lease
			lose(server, engine, slots.For("k", 0))
			wantLost(t, held)
			if !ended && isLost(settled) {
				t.Error("a reservation that was settled says that its slot is lost")
			}
			if what == "a server that hangs beyond the lease" {
				server.Cont()
			}
		})
	}
}

// A short stop of the server costs no slot.
func TestFaultASlotSurvivesAStopShorterThanItsLease(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr+"?timeout=500ms", Options{})
	slots := mustRule(t, "slots=concurrency 1 lease 3s")
	held, err := engine.Reserve(t.Context(), slots.For("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	goOn(1500 * time.Millisecond)
	server.Cont()
	goOn(2500 * time.Millisecond)
	select {
	case <-held.Lost():
		t.Error("the slot is lost")
	default:
	}
	eventually(t, "the server answers", func() error {
		d, err := engine.Peek(t.Context(), slots.For("k", 1))
		if err == nil && d.Allowed {
			t.Errorf("after the stop another caller gets %+v, want the slot held", d)
		}
		return err
	})
}

// Nothing renews the slot of a reservation that the program dropped.
func TestADroppedReservationLosesItsSlotWithItsLease(t *testing.T) {
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr, Options{})
	slots := mustRule(t, "slots=concurrency 1 lease 200ms")
	if r, err := engine.Reserve(t.Context(), slots.For("k", 1)); err != nil || !r.Decision.Allowed {
		t.Fatalf("Reserve: %+v, %v", r, err)
	}
	eventually(t, "the slot is free", func() error {
		runtime.GC()
		if s := engine.Stats(); s.Held != 0 {
			return fmt.Errorf("%+v", s)
		}
		return allowed(engine.Peek(t.Context(), slots.For("k", 1)))
	})
}

// A slot without a lease gets one that only a reservation renews, so a plain take of one is refused.
func TestAPlainTakeOfASlotNeedsALease(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	slots := mustRule(t, "slots=concurrency 3")
	if err := engine.Check(slots); err != nil {
		t.Errorf("Check: %v, want the rule accepted", err)
	}
	want := func(what string, err error) {
		t.Helper()
		if refused, ok := errors.AsType[*weir.RequestError](err); !ok || refused.Field != "lease" || refused.Rule != "slots" {
			t.Errorf("%s: got %v, want a RequestError about the lease", what, err)
		}
	}
	_, err := engine.Take(t.Context(), slots.For("k", 1))
	want("Take", err)
	_, err = engine.Record(t.Context(), slots.For("k", 1))
	want("Record", err)
	_, _, err = weir.TakeUpTo(t.Context(), engine, 2, slots.For("k", 1))
	want("TakeUpTo", err)
	results := make([]weir.Result, 1)
	if err := engine.Each(t.Context(), enginekit.Calls(weir.OpTake, slots.For("k", 1)), results); err != nil {
		t.Fatal(err)
	}
	want("Each", results[0].Err)
	held, err := engine.Reserve(t.Context(), slots.For("k", 2))
	if err != nil {
		t.Fatalf("Reserve: %v", err)
	}
	d, err := engine.Peek(t.Context(), slots.For("k", 2))
	if err != nil || d.Allowed || d.RetryAfter > DefaultLease || d.RetryAfter < DefaultLease/2 {
		t.Errorf("Peek beside it: %+v and %v, want a refusal until the end of a lease of %v", d, err, DefaultLease)
	}
	if err := held.Cancel(t.Context()); err != nil {
		t.Errorf("Cancel: %v", err)
	}
	if d, err := engine.Peek(t.Context(), slots.For("k", 3)); err != nil || !d.Allowed {
		t.Errorf("Peek after Cancel: %+v and %v", d, err)
	}
}

// connSender sends one command after the other on a connection. Unlike rueidis it may be used within [synctest.Test].
type connSender struct {
	mu   sync.Mutex
	conn *redistest.Conn
}

func (s *connSender) Send(_ context.Context, command ...string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, err := s.conn.Ask(command...)
	text, _ := reply.(string)
	return text, err
}

// Many reservations are renewed by a few goroutines, which share calls. The engine's time is virtual, and only the server is real.
func TestManySlotsAreRenewedWithoutAGoroutineEach(t *testing.T) {
	const holders, lease = 2000, 30 * time.Second
	slots := mustRule(t, fmt.Sprint("slots=concurrency ", holders, " lease ", lease))
	sender := &connSender{conn: redistest.Start(t).Dial()}
	synctest.Test(t, func(t *testing.T) {
		engine, err := NewWith(sender, Options{Clock: func() int64 { return time.Now().UnixNano() }})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		before := runtime.NumGoroutine()
		held := make([]*weir.Reservation, holders)
		for i := range held {
			if held[i], err = engine.Reserve(t.Context(), slots.For(fmt.Sprint(i%10), 1)); err != nil {
				t.Fatal(err)
			}
		}
		calls := engine.Stats().Calls
		time.Sleep(lease * 3 / 2)
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more > holders/20 { // calls in flight have some
			t.Errorf("%d reservations have %d goroutines", holders, more)
		}
		for i, r := range held {
			select {
			case <-r.Lost():
				t.Fatalf("reservation %d lost its slot", i)
			default:
			}
		}
		if renewals := engine.Stats().Calls - calls; renewals == 0 || renewals > 5*holders/16 {
			t.Errorf("%d calls renewed %d slots within %v, want them to share calls", renewals, holders, lease*3/2)
		}
		if s := engine.Stats(); s.Held != holders {
			t.Errorf("%+v, want %d held", s, holders)
		}
	})
}

// A decision that was asked again has several reservations of its slot. It is renewed until all are settled, and each hears
// that it is lost.
func TestReservationsOfARepeatedDecisionShareTheirSlot(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	engine, beside := openFor(t, "redis://"+server.Addr, Options{}), openFor(t, "redis://"+server.Addr, Options{})
	const lease = 3 * time.Second
	rule := mustRule(t, "r=concurrency 1 lease 3s")
	slot := rule.For("k", 1)
	taken := weir.Call{Lease: 7, Requests: []weir.Request{slot}}
	if err := allowed(doCall(t.Context(), engine, taken, slot)); err != nil {
		t.Fatal(err)
	}
	_, release := engine.KeepSlots(time.Now(), taken)
	second, _ := engine.KeepSlots(time.Now(), taken)
	third, _ := engine.KeepSlots(time.Now(), taken)
	release()
	release()
	for began := time.Now(); time.Since(began) < 2*lease; goOn(lease / 20) {
		if d, err := beside.Peek(t.Context(), slot); err != nil || d.Allowed {
			t.Fatalf("%v after one of three holders has gone: another caller gets %+v (%v), want the slot held", time.Since(began), d, err)
		}
	}
	if err := engine.Reset(t.Context(), slot); err != nil {
		t.Fatal(err)
	}
	for i, lost := range []<-chan struct{}{second, third} {
		select {
		case <-lost:
		case <-time.After(patience):
			t.Errorf("holder %d of 2 is not told that the slot is lost", i+1)
		}
	}
}

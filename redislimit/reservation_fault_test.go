package redislimit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// The server has the units; only the replies are lost. The engine releases the slots without another call. Of all calls
// of this engine only the lost ones name the rate: renewals and repeated releases name the slots alone, and the client's
// own pings name nothing.
func TestFaultSlotsAreReleasedThoughRepliesAreLost(t *testing.T) {
	server := redistest.Start(t)
	proxy := startProxy(t, server.Addr)
	engine, beside := openFor(t, "redis://"+proxy.addr, Options{}), openFor(t, "redis://"+server.Addr, Options{})
	slots, rate := mustRule(t, "slots=concurrency 3 lease 1h"), mustRule(t, "rate=fixed window 9/300d")
	want := func(what string, wantSlots, wantRate int64) {
		t.Helper()
		eventually(t, what, func() error {
			s, err1 := beside.Peek(t.Context(), slots.For("k", 0))
			r, err2 := beside.Peek(t.Context(), rate.For("k", 0))
			if err1 != nil || err2 != nil || s.Remaining != wantSlots || r.Remaining != wantRate {
				return fmt.Errorf("%d slots and %d of the rate are left (%v, %v), want %d and %d", s.Remaining, r.Remaining, err1, err2, wantSlots, wantRate)
			}
			return nil
		})
	}
	lose := func(what string, do func() error) {
		t.Helper()
		proxy.cutAfter.Store("rate:")
		if err := do(); weir.WasCounted(err) != weir.CountedUnknown {
			t.Errorf("%s while the reply is lost: got %v, want an error that says it may have been counted", what, err)
		}
	}
	warmUp(t, engine)
	lose("Reserve", func() error {
		_, err := engine.Reserve(t.Context(), slots.For("k", 1), rate.For("k", 1))
		return err
	})
	want("the slot comes back, and the rate stays spent", 3, 8)
	eventually(t, "the release was answered", func() error {
		if engine.Stats().InFlight > 0 {
			return fmt.Errorf("%+v", engine.Stats())
		}
		return nil
	})
	held, err := engine.Reserve(t.Context(), slots.For("k", 1), rate.For("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	want("it is held", 2, 7)
	lose("Cancel", func() error { return held.Cancel(t.Context()) })
	want("all comes back once", 3, 8)
	if err := held.Cancel(t.Context()); err != nil {
		t.Errorf("Cancel again: %v", err)
	}
	want("nothing comes back twice", 3, 8)
}

// A Cancel may fail for as long as its server is away. The caller does not have to try again.
func TestFaultAFailedCancelIsRepeatedUntilTheServerReturns(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr+"?timeout=5s", Options{})
	slots := mustRule(t, "slots=concurrency 1")
	held, err := engine.Reserve(t.Context(), slots.For("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := held.Cancel(ctx); err == nil {
		t.Error("Cancel while the server hangs: want an error")
	}
	server.Cont()
	eventually(t, "the slot is free", func() error {
		d, err := engine.Peek(t.Context(), slots.For("k", 1))
		if err == nil && !d.Allowed {
			err = fmt.Errorf("%+v", d)
		}
		return err
	})
	eventually(t, "nothing is left to do", func() error {
		if s := engine.Stats(); s.Held != 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

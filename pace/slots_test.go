package pace_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// slotLimits have one slot.
var slotLimits = []weir.Limit{weir.Concurrency{Slots: 1}, weir.Concurrency{Slots: 1, Lease: 30 * time.Second}}

// pacersOf are all pacers of a limit, each with a state of its own.
func pacersOf(t *testing.T, limit weir.Limit) map[string]pace.Pacer {
	return map[string]pace.Pacer{
		"Limiter":  mustNew(t, limit),
		"Keyed":    mustKeyed[string](t, limit).For("k"),
		"of class": pace.InClass(mustNew(t, limit, weir.Options{Weights: []int64{1, 2}}), 1),
	}
}

// wantFree fails unless the one slot of p is free.
func wantFree(t *testing.T, when string, p pace.Pacer) {
	t.Helper()
	if d := p.Return(0); d.Remaining != 1 {
		t.Errorf("%s: %d of 1 slots free", when, d.Remaining)
	}
}

func TestDoHoldsASlotWhileItRuns(t *testing.T) {
	for _, limit := range slotLimits {
		for pacer, p := range pacersOf(t, limit) {
			held := func(context.Context) (int64, error) { return p.Return(0).Remaining, errors.ErrUnsupported }
			for range 3 {
				if left, err := pace.Do(t.Context(), p, held); left != 0 || err != errors.ErrUnsupported {
					t.Errorf("%v, %s: %d slots left while it ran, and %v; want none, and its own error", limit, pacer, left, err)
				}
			}
			func() {
				defer func() { _ = recover() }()
				_, _ = pace.Do(t.Context(), p, func(context.Context) (int, error) { panic("ouch") })
			}()
			wantFree(t, "after a panic", p)
		}
	}
}

func TestDoThatOutlivesItsLeaseFreesNoOtherSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for pacer, p := range pacersOf(t, weir.Concurrency{Slots: 1, Lease: 30 * time.Second}) {
			_, err := pace.Do(t.Context(), p, func(context.Context) (int, error) {
				time.Sleep(30 * time.Second)
				return 0, p.WaitTurn(t.Context(), weir.Turn{Cost: 1, Max: -1}) // another caller
			})
			if left := p.Return(0).Remaining; err != nil || left != 0 {
				t.Errorf("%s: %v and %d slots free after a call that came back late, want the slot held by somebody else", pacer, err, left)
			}
		}
	})
}

func TestDoOverASlotWithJitterGivesItBackWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.Concurrency{Slots: 1}, weir.Options{Jitter: time.Hour})
		lim.Allow()
		time.AfterFunc(time.Millisecond, func() { lim.Return(1) })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		defer cancel()
		if _, err := pace.Do(ctx, lim, since(time.Now())); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do: %v, want DeadlineExceeded during the jitter", err)
		}
		wantFree(t, "after the jitter", lim)
	})
}

func TestPacedSequencesHoldASlotForEachValue(t *testing.T) {
	for _, limit := range slotLimits {
		for pacer, p := range pacersOf(t, limit) {
			values, refused := pace.Seq(t.Context(), p, slices.Values([]int{1, 2, 3, 4}))
			for v := range values {
				if left := p.Return(0).Remaining; left != 0 {
					t.Errorf("%v, %s: %d slots free during value %d", limit, pacer, left, v)
				}
				if v == 3 {
					break
				}
			}
			wantFree(t, "after a break", p)
			pairs, _ := pace.Seq2(t.Context(), p, slices.All([]int{1, 2, 3}))
			func() {
				defer func() { _ = recover() }()
				for i := range pairs {
					if i == 2 {
						panic("ouch")
					}
				}
			}()
			wantFree(t, "after a panic", p)
			if err := refused(); err != nil {
				t.Errorf("%v, %s: %v", limit, pacer, err)
			}
		}
	}
}

func TestPacedChannelsGiveSlotsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for pacer, p := range pacersOf(t, weir.Concurrency{Slots: 1}) {
			in := make(chan int, 4)
			for i := range 4 {
				in <- i
			}
			ctx, cancel := context.WithCancel(t.Context())
			out, refused := pace.Chan(ctx, p, in)
			for i := range 3 {
				if v := <-out; v != i {
					t.Errorf("%s: got %d, want %d", pacer, v, i)
				}
			}
			synctest.Wait() // the fourth has its slot, and no caller takes it
			if left := p.Return(0).Remaining; left != 0 {
				t.Errorf("%s: %d slots free while a value is offered", pacer, left)
			}
			cancel()
			synctest.Wait()
			wantFree(t, "after the context has ended", p)
			if err := refused(); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want context.Canceled", pacer, err)
			}
		}
	})
}

func TestPacedStreamsGiveSlotsBack(t *testing.T) {
	for pacer, p := range pacersOf(t, weir.Concurrency{Slots: 1}) {
		text := []byte("three words long")
		if got, err := io.ReadAll(pace.Reader(t.Context(), p, bytes.NewReader(text))); string(got) != string(text) || err != nil {
			t.Errorf("%s: read %q and %v", pacer, got, err)
		}
		wantFree(t, "after reading", p)
		var sink bytes.Buffer
		if n, err := pace.Writer(t.Context(), p, &sink).Write(text); n != len(text) || err != nil {
			t.Errorf("%s: wrote %d and %v", pacer, n, err)
		}
		wantFree(t, "after writing", p)
		for _, moves := range []func(){
			func() { _, _ = pace.Reader(t.Context(), p, panicking{}).Read(text) },
			func() { _, _ = pace.Writer(t.Context(), p, panicking{}).Write(text) },
		} {
			func() {
				defer func() { _ = recover() }()
				moves()
			}()
			wantFree(t, "after a panic", p)
		}
	}
}

type panicking struct{}

func (panicking) Read([]byte) (int, error)  { panic("ouch") }
func (panicking) Write([]byte) (int, error) { panic("ouch") }

package filter

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// worker takes a second for each line, and counts what it works on at once.
type worker struct {
	running, most, done atomic.Int64
}

func (w *worker) work(ctx context.Context, _ []byte) error {
	now := w.running.Add(1)
	w.most.Store(max(w.most.Load(), now))
	defer w.running.Add(-1)
	select {
	case <-time.After(time.Second):
		w.done.Add(1)
	case <-ctx.Done():
	}
	return nil
}

func TestWorkObeysItsSlotsAndTheLimitsTogether(t *testing.T) {
	for name, test := range map[string]struct {
		limit weir.Limit
		key   func([]byte) []byte
		fair  bool
		most  int64
		took  time.Duration
	}{
		"slots bind":         {limit: perSecond(100, 1), most: 3, took: 3990 * time.Millisecond}, // the third line of a round is 20 ms behind the first
		"the rate binds":     {limit: weir.TokenBucket{Rate: weir.Rate{Count: 3, Period: 2 * time.Second}, Burst: 1}, most: 2, took: 8333 * time.Millisecond},
		"each key has slots": {limit: perSecond(100, 1), key: letters, most: 6, took: 2010 * time.Millisecond},
		"keys share slots":   {limit: perSecond(100, 1), key: letters, fair: true, most: 3, took: 3990 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			var w worker
			began := time.Now()
			in := "a1\na2\na3\na4\na5\na6\nb1\nb2\nb3\nb4\nb5\nb6"
			run(t, Options{Limits: only(test.limit), Key: test.key, Fair: test.fair, Work: w.work, AtOnce: 3}, strings.NewReader(in), io.Discard)
			if w.done.Load() != 12 || w.most.Load() != test.most {
				t.Errorf("%s: %d lines were worked on, at most %d at once; want 12, and %d", name, w.done.Load(), w.most.Load(), test.most)
			}
			if took := time.Since(began); took < test.took || took > test.took+50*time.Millisecond {
				t.Errorf("%s: the work took %v, want %v", name, took, test.took)
			}
		})
	}
}

// The interrupt comes while lines wait, or when work on the last line has begun.
func TestAnInterruptedFilterEndsItsWorkAndReleasesTheSlots(t *testing.T) {
	for _, lines := range []int{10, 3} {
		synctest.Test(t, func(t *testing.T) {
			var w worker
			o := onMemory(perSecond(100, 3))
			o.Work, o.AtOnce = w.work, 3
			f, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if err := f.Run(ctx, strings.NewReader(numbers(lines)), io.Discard); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d lines: Run ended with %v, want the interrupt", lines, err)
			}
			d, err := o.Engine.Peek(t.Context(), f.terms.rule.For("", 3))
			if w.running.Load() != 0 || err != nil || !d.Allowed {
				t.Errorf("%d lines: after the interrupt %d lines are worked on, and three slots answer %+v, %v", lines, w.running.Load(), d, err)
			}
		})
	}
}

func TestAnErrorOfWorkEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		f, err := New(Options{Limits: only(perSecond(10, 1)), AtOnce: 1, Work: func(context.Context, []byte) error { return broken }})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Run(t.Context(), strings.NewReader(numbers(3)), io.Discard); err != broken {
			t.Errorf("Run ended with %v, want %v", err, broken)
		}
	})
}

func TestALineTooLongToWorkOnIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w worker
		f, err := New(Options{Limits: only(perSecond(10, 1)), AtOnce: 1, Work: w.work})
		if err != nil {
			t.Fatal(err)
		}
		err = f.Run(t.Context(), strings.NewReader(strings.Repeat("x", MaxLine+chunkSize)), io.Discard)
		if failed, ok := errors.AsType[*StreamError](err); !ok || failed.Op != "read" || w.done.Load() != 0 {
			t.Errorf("got %v and %d lines worked on, want a StreamError of read and none", err, w.done.Load())
		}
	})
}

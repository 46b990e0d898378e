package redislimit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
)

// falling is a server that falls silent after some calls, in virtual time.
type falling struct {
	calls  chan []string // to the real server, outside of virtual time
	answer chan error
	mu     sync.Mutex
	text   string

	answers atomic.Int64  // how many calls it still answers
	over    chan struct{} // ends its silence
}

// fallingServer serves calls of virtual time until the test ends.
func fallingServer(t *testing.T) *falling {
	server := redistest.Start(t)
	f := &falling{calls: make(chan []string), answer: make(chan error)}
	go func() {
		for command := range f.calls {
			reply, err := server.Ask(command...)
			if f.text, _ = reply.(string); err != nil {
				err = senderError{err}
			}
			f.answer <- err
		}
	}()
	t.Cleanup(func() { close(f.calls) })
	return f
}

func (f *falling) Send(_ context.Context, command ...string) (string, error) {
	if f.answers.Add(-1) < 0 {
		<-f.over
		return "", errors.New("the server was silent")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls <- command
	return f.text, <-f.answer
}

// verbs are all calls that take a context, each on keys of several lanes.
func verbs(t *testing.T, engine *Engine) map[string]func(ctx context.Context) error {
	bucket, slots := mustRule(t, "b=token bucket 1000/h"), mustRule(t, "s=concurrency 5")
	few := mustRule(t, "f=sliding log 3/h")
	lanes := []weir.Request{bucket.For("a", 1), bucket.For("b", 1), few.For("c", 1)}
	take := func(requests ...weir.Request) func(context.Context) error {
		return func(ctx context.Context) error { _, err := engine.Take(ctx, requests...); return err }
	}
	return map[string]func(ctx context.Context) error{
		"Take":                 take(lanes[0]),
		"Take of lanes":        take(lanes...),
		"Take that is refused": take(bucket.For("a", 1), bucket.For("b", 1), few.For("c", 3)),
		"Take again": func(ctx context.Context) error {
			_, err := doCall(ctx, engine, weir.Call{Identity: "x"}, lanes[:2]...)
			return err
		},
		"Each": func(ctx context.Context) error {
			return engine.Each(ctx, enginekit.Calls(weir.OpTake, lanes...), make([]weir.Result, len(lanes)))
		},
		"TakeUpTo": func(ctx context.Context) error { _, _, err := weir.TakeUpTo(ctx, engine, 9, lanes...); return err },
		"Peek":     func(ctx context.Context) error { _, err := engine.Peek(ctx, lanes...); return err },
		"Record":   func(ctx context.Context) error { _, err := engine.Record(ctx, lanes...); return err },
		"Reset":    func(ctx context.Context) error { return engine.Reset(ctx, lanes...) },
		"Reserve": func(ctx context.Context) error {
			_, err := engine.Reserve(ctx, lanes[0], slots.For("d", 1))
			return err
		},
		"ReserveAhead": func(ctx context.Context) error {
			_, err := weir.ReserveAhead(ctx, engine, time.Hour, lanes[0])
			return err
		},
	}
}

// Whenever a server falls silent, no call of the engine goes on after its deadline, by the virtual clock not even for a
// nanosecond. A settlement goes on for a second.
func TestNoCallOutlastsItsDeadline(t *testing.T) {
	const deadline = 100 * time.Millisecond
	f := fallingServer(t)
	silent := 0
	timed := func(t *testing.T, engine *Engine, verb string, answers int, most time.Duration, call func(context.Context) error) {
		defer engine.Close()
		f.answers.Store(int64(answers))
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		began := time.Now()
		err := call(ctx)
		took := time.Since(began)
		if took > most {
			t.Errorf("%s of a server that answers %d more calls took %v, want at most %v", verb, answers, took, most)
		}
		if took > 0 {
			silent++
		}
		if took > 0 && err == nil && !strings.HasPrefix(verb, "Each") {
			t.Errorf("%s of a server that answers %d more calls: no error at its deadline", verb, answers)
		}
	}
	for answers := range 6 {
		synctest.Test(t, func(t *testing.T) {
			f.over = make(chan struct{})
			defer close(f.over)
			start := func() *Engine {
				f.answers.Store(1 << 30)
				engine, err := NewWith(f, Options{OneSlot: true, Lanes: 8})
				if err != nil {
					t.Fatal(err)
				}
				return engine
			}
			for verb := range verbs(t, nil) {
				engine := start()
				timed(t, engine, verb, answers, deadline, verbs(t, engine)[verb])
				engine = start()
				f.answers.Store(0)
				queued := verbs(t, engine)[verb]
				go func() { _ = queued(t.Context()) }() // the next call stands behind this one
				synctest.Wait()
				timed(t, engine, verb+" in a queue", answers, deadline, queued)
			}
			engine := start()
			held, err := engine.Reserve(t.Context(), mustRule(t, "s=concurrency 5 lease 1h").For(fmt.Sprint(answers), 2), mustRule(t, "b=token bucket 10/h").For(fmt.Sprint(answers), 2))
			if err != nil || !held.Decision.Allowed {
				t.Fatalf("Reserve: %+v, %v", held, err)
			}
			timed(t, engine, "Settle", answers, deadline+time.Second, func(ctx context.Context) error { return held.Settle(ctx, 1) })
		})
	}
	if silent < 80 {
		t.Errorf("%d calls met a silent server, want at least 80", silent)
	}
}

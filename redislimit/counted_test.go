package redislimit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// ledger counts the answers to the callers of one key.
type ledger struct {
	admitted atomic.Int64
	errors   [3]atomic.Int64 // by Counted
}

func (l *ledger) take(engine *Engine, rule *weir.Rule) {
	d, err := engine.Take(context.Background(), rule.For("k", 1))
	switch {
	case err != nil:
		l.errors[weir.WasCounted(err)].Add(1)
	case d.Allowed:
		l.admitted.Add(1)
	}
}

// check compares the answers with the units that are spent. A failover may have lost lost of them.
func (l *ledger) check(t *testing.T, spent, lost int64) {
	t.Helper()
	least := l.admitted.Load() + l.errors[weir.CountedYes].Load() - lost
	most := l.admitted.Load() + l.errors[weir.CountedYes].Load() + l.errors[weir.CountedUnknown].Load()
	t.Logf("%d units are spent: %d admitted, errors: %d unknown, %d counted, %d uncounted", spent, l.admitted.Load(),
		l.errors[weir.CountedUnknown].Load(), l.errors[weir.CountedYes].Load(), l.errors[weir.CountedNo].Load())
	if spent < least || spent > most {
		t.Errorf("%d units are spent, but the answers say %d to %d", spent, least, most)
	}
}

const countedLimit = "counted=fixed window 1000000/300d"

// spentOn returns the units that a server has counted.
func spentOn(t *testing.T, addr string) int64 {
	t.Helper()
	rule := mustRule(t, countedLimit)
	var d weir.Decision
	eventually(t, "the server answers", func() (err error) {
		d, err = openFor(t, "redis://"+addr, Options{}).Peek(t.Context(), rule.For("k", 0))
		return err
	})
	return d.Limit - d.Remaining
}

func mustRule(t *testing.T, text string) *weir.Rule {
	t.Helper()
	rule, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// eventually tries until it succeeds.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
	}
}

// AskAndLeave returns the error of a call to a server that hangs. Its caller leaves when the call is on its way.
func AskAndLeave(t *testing.T, e *Engine, ask func(context.Context) error) error {
	t.Helper()
	before := e.Stats().Calls
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	failed := make(chan error, 1)
	go func() { failed <- ask(ctx) }()
	eventually(t, "the call is on its way", func() error {
		if e.Stats().Calls == before {
			return errors.New("it has not left")
		}
		return nil
	})
	leave()
	return <-failed
}

func TestFaultErrorsOfCutConnectionsTellTheTruthAboutTheCount(t *testing.T) {
	server := redistest.Start(t)
	proxy := startProxy(t, server.Addr)
	engine, rule := openFor(t, "redis://"+proxy.addr, Options{}), mustRule(t, countedLimit)
	var answers ledger
	for range 20 {
		var callers sync.WaitGroup
		proxy.cut.Store(true)
		for range 8 {
			callers.Go(func() { answers.take(engine, rule) })
		}
		callers.Wait()
	}
	answers.check(t, spentOn(t, server.Addr), 0)
	if answers.errors[weir.CountedUnknown].Load() == 0 {
		t.Error("no error said that the cost may have been counted")
	}
}

// The owner of a client may close it during a call. The connection may pipeline its calls, or not.
func TestFaultErrorsOfAClosedClientTellTheTruthAboutTheCount(t *testing.T) {
	t.Parallel()
	for _, multiplex := range []int{-1, 0} {
		server, rule := redistest.Start(t), mustRule(t, countedLimit)
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true, PipelineMultiplex: multiplex})
		if err != nil {
			t.Fatal(err)
		}
		engine, err := New(client, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var answers ledger
		var callers sync.WaitGroup
		for range 128 {
			callers.Go(func() {
				for range 20 {
					answers.take(engine, rule)
				}
			})
		}
		callers.Wait()
		server.Stop()
		before := engine.Stats().Calls
		for range 40 {
			callers.Go(func() { answers.take(engine, rule) })
		}
		eventually(t, "a call is in flight", func() error {
			if engine.Stats().Calls == before {
				return errors.New("not yet")
			}
			return nil
		})
		client.Close()
		callers.Wait()
		server.Cont()
		answers.check(t, spentOn(t, server.Addr), 0)
	}
}

func TestFaultErrorsOfAFailoverTellTheTruthAboutTheCount(t *testing.T) {
	t.Parallel()
	sentinel, rule := redistest.StartSentinel(t), mustRule(t, countedLimit)
	url := "redis-sentinel://" + strings.Join(sentinel.Addrs(), ",") + "/" + redistest.MasterSet
	engine := openFor(t, url, Options{})
	var answers ledger
	var callers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 16 {
		callers.Go(func() {
			for ctx.Err() == nil {
				answers.take(engine, rule)
			}
		})
	}
	goOn(300 * time.Millisecond)
	sentinel.Master.Stop()
	sentinel.AwaitFailover()
	stop()
	sentinel.Master.Kill() // its replies never come
	callers.Wait()
	var d weir.Decision
	eventually(t, "the new master answers", func() (err error) {
		d, err = openFor(t, url, Options{}).Peek(t.Context(), rule.For("k", 0))
		return err
	})
	answers.check(t, d.Limit-d.Remaining, answers.admitted.Load())
}

// A client may end a call by its own deadline, after it was sent.
func TestAClientsOwnDeadlineMayHaveCounted(t *testing.T) {
	for _, ended := range []error{context.DeadlineExceeded, context.Canceled} {
		engine, err := NewWith(ending{ended}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.Take(t.Context(), mustRule(t, countedLimit).For("k", 1))
		if failed, ok := errors.AsType[*Error](err); !ok || failed.Reason != Lost || failed.Counted != weir.CountedUnknown {
			t.Errorf("Take with a client that ends with %v: got %v, want it lost and perhaps counted", ended, err)
		}
	}
}

type ending struct{ err error }

func (e ending) Send(context.Context, ...string) (string, error) { return "", e.err }

// A take that a cost or an earlier lane has refused only peeks, so an answer of it that is lost has counted nothing.
func TestALostAnswerToARefusalHasCountedNothing(t *testing.T) {
	sender := &lastLaneIsSilent{}
	server := redistest.Start(t)
	sender.server = server
	engine, err := NewWith(sender, Options{OneSlot: true})
	if err != nil {
		t.Fatal(err)
	}
	rule := mustRule(t, "r=fixed window 5/300d")
	first, middle, last := threeLanes(t, engine, rule)
	sender.silent = last.stored
	if d, err := engine.Take(t.Context(), rule.For(first.key, 5)); err != nil || !d.Allowed {
		t.Fatalf("Take: %+v, %v", d, err)
	}
	for _, tt := range []struct {
		what     string
		requests []weir.Request
		counted  weir.Counted
	}{
		{"a cost above the limit", []weir.Request{rule.For(last.key, 6)}, weir.CountedNo},
		{"refused by an earlier lane", []weir.Request{rule.For(first.key, 1), rule.For(last.key, 1)}, weir.CountedNo},
		{"on an earlier lane too, and a cost above the limit", []weir.Request{rule.For(middle.key, 1), rule.For(last.key, 6)}, weir.CountedNo},
		{"taken by an earlier lane", []weir.Request{rule.For(middle.key, 1), rule.For(last.key, 1)}, weir.CountedUnknown},
		{"taken alone", []weir.Request{rule.For(last.key, 1)}, weir.CountedUnknown},
	} {
		_, err := engine.Take(t.Context(), tt.requests...)
		if failed, ok := errors.AsType[*Error](err); !ok || failed.Reason != Lost || failed.Counted != tt.counted {
			t.Errorf("%s: got %v, want a lost answer and Counted %v", tt.what, err, tt.counted)
		}
	}
}

// lastLaneIsSilent is a client that loses the answers to calls of one key.
type lastLaneIsSilent struct {
	server *redistest.Server
	silent string
}

func (s *lastLaneIsSilent) Send(_ context.Context, command ...string) (string, error) {
	reply, err := s.server.Ask(command...)
	switch {
	case slices.Contains(command, s.silent):
		return "", errors.New("the connection was cut")
	case err != nil:
		return "", senderError{err}
	}
	text, _ := reply.(string)
	return text, nil
}

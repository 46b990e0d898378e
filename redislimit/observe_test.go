package redislimit

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// seenCalls records the calls of Observe.
type seenCalls struct {
	mu   sync.Mutex
	seen []ScriptCall
	ctxs []context.Context
}

func (c *seenCalls) observe(ctx context.Context, call ScriptCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen, c.ctxs = append(c.seen, call), append(c.ctxs, ctx)
}

func (c *seenCalls) last() (ScriptCall, context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[len(c.seen)-1], c.ctxs[len(c.ctxs)-1]
}

type traceKey struct{}

func TestEachCallIsObserved(t *testing.T) {
	server := redistest.Start(t)
	var seen seenCalls
	engine := openFor(t, "redis://"+server.Addr+"?timeout=300ms", Options{Observe: seen.observe})
	rule, err := weir.ParseRule("r=token bucket 100/h and rate gate 100/h")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithValue(t.Context(), traceKey{}, "trace 1")
	if _, err := engine.Take(ctx, rule.For("alice", 1), rule.For("bob", 1)); err != nil {
		t.Fatal(err)
	}
	call, passed := seen.last()
	if call.Decisions != 1 || call.Keys != 4 || call.Sent < 50 || call.Received < 8 || call.Took <= 0 || call.Began.IsZero() || call.Outcome != "" || call.Err != nil {
		t.Errorf("one Take of two keys: %+v, want one decision, four keys, its bytes and no error", call)
	}
	if passed.Value(traceKey{}) != "trace 1" || len(call.Callers) != 1 || call.Callers[0].Value(traceKey{}) != "trace 1" {
		t.Errorf("Take with a trace: Observe has %v and callers %v, want the trace in both", passed, call.Callers)
	}
	if _, ends := passed.Deadline(); ends || passed.Done() != nil {
		t.Error("the context of a call ends with that of a caller")
	}
	server.Do("CONFIG", "SET", "maxmemory", "1")
	if _, err := engine.Take(ctx, rule.For("alice", 1)); err == nil {
		t.Error("a server without memory admitted")
	}
	if call, _ = seen.last(); call.Outcome != OutOfMemory || call.Err == nil || call.Received != 0 {
		t.Errorf("Take of a server without memory: %+v, want its reason", call)
	}
	server.Stop()
	defer server.Cont()
	if _, err := engine.Take(ctx, rule.For("alice", 1)); err == nil {
		t.Error("a server that hangs admitted")
	}
	if call, _ = seen.last(); call.Outcome != Lost || call.Took < 100*time.Millisecond {
		t.Errorf("Take of a server that hangs: %+v, want it lost after the timeout", call)
	}
}

// tracedSender records the trace that reaches the client.
type tracedSender struct {
	rueidisSender
	traces chan any
}

func (s tracedSender) Send(ctx context.Context, command ...string) (string, error) {
	s.traces <- ctx.Value(traceKey{})
	return s.rueidisSender.Send(ctx, command...)
}

func TestTheTraceOfACallerReachesTheClient(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{redistest.Start(t).Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	sender := tracedSender{rueidisSender{client}, make(chan any, 10)}
	engine, err := NewWith(sender, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rule, err := weir.ParseRule("r=token bucket 100/h")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), traceKey{}, "trace 2"), patience)
	defer cancel()
	if _, err := engine.Take(ctx, rule.For("k", 1)); err != nil {
		t.Fatal(err)
	}
	if got := <-sender.traces; got != "trace 2" {
		t.Errorf("the client was called with trace %v, want trace 2", got)
	}
}

// While a server hangs, the statistics count the calls that wait for it.
func TestStatsTellWhatIsUnderWay(t *testing.T) {
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr+"?timeout=60s", Options{})
	rule, err := weir.ParseRule("r=token bucket 100/h")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil {
		t.Fatal(err)
	}
	until := func(what string, right func(Stats) bool) {
		t.Helper()
		for began := time.Now(); !right(engine.Stats()); time.Sleep(time.Millisecond) {
			if time.Since(began) > patience {
				t.Fatalf("%s: not within %v: %+v", what, patience, engine.Stats())
			}
		}
	}
	server.Stop()
	ctx, leave := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	ask := func() {
		callers.Go(func() { _, _ = engine.Take(ctx, rule.For("k", 1)) })
	}
	ask()
	until("the first is out", func(s Stats) bool { return s.InFlight == 1 && s.Queued == 0 })
	for range 5 {
		ask()
	}
	until("five wait", func(s Stats) bool { return s.InFlight == 1 && s.Queued == 5 })
	leave()
	callers.Wait()
	until("they have left", func(s Stats) bool { return s.InFlight == 1 && s.Queued == 0 })
	server.Cont()
	until("the first was undone", func(s Stats) bool { return s.GivenBack == 1 && s.Undoing == 0 && s.InFlight == 0 })
}

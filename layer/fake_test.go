package layer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// remote is an engine behind a network that fails on command. Its states are in a memory engine.
type remote struct {
	weir.Engine
	memory   *weir.Memory
	fails    atomic.Bool  // calls fail at once, uncounted
	loses    atomic.Bool  // calls are made, and their answers are lost
	panics   atomic.Bool  //
	slow     atomic.Int64 // nanoseconds until a call is made, unless its context ends
	trip     atomic.Int64 // the same, and the call is made in any case
	calls    atomic.Int64
	punctual bool
	clock    func() int64 // of the memory, if layers are to see it

	mu    sync.Mutex
	hang  chan struct{} // calls hang until it is closed; nil if they do not
	known sync.Map      // answers to records with identities
}

// Clock returns the clock of the memory, or nil.
func (r *remote) Clock() func() int64 { return r.clock }

// KeepsDeadlines reports whether calls end with their contexts.
func (r *remote) KeepsDeadlines() bool { return r.punctual }

var errAway = away{errors.New("connection refused"), weir.CountedNo}

type away struct {
	error
	counted weir.Counted
}

func (a away) Unwrap() error            { return a.error }
func (a away) Unavailable() bool        { return true }
func (a away) WasCounted() weir.Counted { return a.counted }

// clockedRemote returns an engine whose clock layers see, as that of a test.
func clockedRemote(clock func() int64) *remote {
	r := &remote{memory: weir.NewMemory(weir.MemoryOptions{Clock: clock}), clock: clock}
	r.Engine = weir.Kit.EngineOf(r.do, r.memory.Check)
	return r
}

func newRemote() *remote {
	r := &remote{memory: weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return time.Now().UnixNano() }})}
	r.Engine = weir.Kit.EngineOf(r.do, r.memory.Check)
	return r
}

func (r *remote) do(ctx context.Context, call weir.Call) (weir.Answer, error) {
	r.calls.Add(1)
	ctx, cancel := enginekit.Bound(ctx, &call)
	defer cancel()
	r.mu.Lock()
	hang := r.hang
	r.mu.Unlock()
	if hang != nil {
		<-hang
		ctx = context.Background()
	}
	if trip := r.trip.Load(); trip > 0 {
		time.Sleep(time.Duration(trip))
		ctx = context.Background()
	}
	if slow := r.slow.Load(); slow > 0 {
		select {
		case <-time.After(time.Duration(slow)):
		case <-ctx.Done():
			return weir.Answer{}, away{ctx.Err(), weir.CountedNo}
		}
	}
	switch {
	case r.panics.Load():
		panic("a bug of the engine")
	case r.fails.Load():
		return weir.Answer{}, errAway
	}
	call.Within = 0
	a, err := r.answer(ctx, call)
	if r.loses.Load() {
		return weir.Answer{}, away{errors.New("connection reset"), weir.CountedUnknown}
	}
	return a, err
}

// answer answers a call. It recognises the identity of a record.
func (r *remote) answer(ctx context.Context, call weir.Call) (weir.Answer, error) {
	identified := func(c weir.Call) bool { return c.Op == weir.OpRecord && c.Identity != "" }
	if call.Op == weir.OpEach && slices.ContainsFunc(call.Each.Calls, identified) {
		for i, c := range call.Each.Calls {
			a, err := r.answer(ctx, c)
			call.Each.Results[i] = weir.Result{Decision: a.Decision, Err: err}
		}
		return weir.Answer{}, nil
	}
	if !identified(call) {
		return r.memory.Do(ctx, call)
	}
	if known, ok := r.known.Load(call.Identity); ok {
		return known.(weir.Answer), nil
	}
	identity := call.Identity
	call.Identity = ""
	a, err := r.memory.Do(ctx, call)
	r.known.Store(identity, a)
	return a, err
}

// hangs has calls hang until thaw is called.
func (r *remote) hangs() (thaw func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hang := make(chan struct{})
	r.hang = hang
	return func() {
		r.mu.Lock()
		r.hang = nil
		r.mu.Unlock()
		close(hang)
	}
}

func mustRule(t testing.TB, text string) *weir.Rule {
	t.Helper()
	r, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// takes takes a unit of a key n times and returns the number of admissions.
func takes(t testing.TB, e weir.Engine, n int, r *weir.Rule, key string) (admitted int) {
	t.Helper()
	for range n {
		d, err := e.Take(t.Context(), r.For(key, 1))
		if err != nil {
			t.Fatalf("take of %s: %v", key, err)
		}
		if d.Allowed {
			admitted++
		}
	}
	return admitted
}

func remaining(t testing.TB, e weir.Engine, r *weir.Rule, key string) int64 {
	t.Helper()
	d, err := e.Peek(t.Context(), r.For(key, 0))
	if err != nil {
		t.Fatalf("peek of %s: %v", key, err)
	}
	return d.Remaining
}

// texts collects lines of a log.
type texts struct {
	mu  sync.Mutex
	all []string
}

func (l *texts) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(line))
	return len(line), nil
}

func (l *texts) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.all...)
}

func key(i int) string { return fmt.Sprint("key ", i) }

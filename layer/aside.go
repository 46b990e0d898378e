package layer

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// MostAside bounds the calls of an Aside that wait.
const MostAside = 8192

const (
	asideBatch = 128
	asideTime  = time.Second
)

// Aside makes calls later and in order, on a goroutine of its own, to try a limit on live traffic without making any
// caller wait. At most MostAside calls wait. It is safe for concurrent use.
type Aside struct {
	engine  weir.Engine
	pause   time.Duration
	decided func(call weir.Call, enforced weir.Decision, r weir.Result)

	mu      sync.Mutex
	queue   []asideCall
	working bool

	taken takenAside // used by the goroutine that decides
}

type asideCall struct {
	call     weir.Call
	enforced weir.Decision
}

// NewAside returns an Aside over an engine. It waits for a pause, which may be 0, for calls that share one of the
// engine. It calls decided with each call, the enforced decision and the outcome, one at a time.
func NewAside(e weir.Engine, pause time.Duration, decided func(call weir.Call, enforced weir.Decision, r weir.Result)) *Aside {
	return &Aside{engine: e, pause: pause, decided: decided, taken: takenAside{}}
}

// Add has a take, record, return or reset made aside. It returns false if too many calls wait. The return of a Lease undoes what
// the take aside with that Lease took.
func (a *Aside) Add(call weir.Call, enforced weir.Decision) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) >= MostAside {
		return false
	}
	a.queue = append(a.queue, asideCall{call, enforced})
	if !a.working {
		a.working = true
		go a.work()
	}
	return true
}

// work decides the queued calls, until none is left. Calls that arrive while the engine is asked share the next one.
func (a *Aside) work() {
	for {
		a.mu.Lock()
		if a.pause > 0 && len(a.queue) < asideBatch {
			a.mu.Unlock()
			time.Sleep(a.pause)
			a.mu.Lock()
		}
		now := a.queue[:min(len(a.queue), asideBatch)]
		if a.queue = a.queue[len(now):]; len(now) == 0 {
			a.working, a.queue = false, nil
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		a.decide(now)
	}
}

// decide makes some calls. A reset is a call of its own.
func (a *Aside) decide(calls []asideCall) {
	ctx, cancel := context.WithTimeout(context.Background(), asideTime)
	defer cancel()
	for len(calls) > 0 {
		if calls[0].call.Op == weir.OpReset {
			_, err := guarded(ctx, calls[0].call, a.engine.Do)
			a.tell(calls[0], weir.Result{Err: err})
			calls = calls[1:]
			continue
		}
		n := together(calls)
		var made []asideCall
		for _, c := range calls[:n] {
			if c.call.Taken == nil || a.taken.undo(&c.call) {
				made = append(made, c)
			}
		}
		a.each(ctx, made)
		calls = calls[n:]
	}
}

// together returns how many calls from the first one can share one: up to a reset, or the undo of a take among them.
func together(calls []asideCall) int {
	leases := map[uint64]bool{}
	for i, c := range calls {
		if c.call.Op == weir.OpReset || c.call.Taken != nil && leases[c.call.Lease] {
			return i
		}
		leases[c.call.Lease] = true
	}
	return len(calls)
}

// each makes calls in one.
func (a *Aside) each(ctx context.Context, calls []asideCall) {
	batch := &weir.Batch{Calls: make([]weir.Call, len(calls)), Results: make([]weir.Result, len(calls))}
	for i, c := range calls {
		batch.Calls[i] = c.call
	}
	_, err := guarded(ctx, weir.Call{Op: weir.OpEach, Each: batch}, a.engine.Do)
	for i, r := range batch.Results {
		if r.Err = cmp.Or(err, r.Err); r.Err == nil && calls[i].call.Op == weir.OpTake {
			a.taken.note(&calls[i].call, r)
		}
		a.tell(calls[i], r)
	}
}

// tell calls decided. Its panic is its own.
func (a *Aside) tell(c asideCall, r weir.Result) {
	defer func() { _ = recover() }()
	a.decided(c.call, c.enforced, r)
}

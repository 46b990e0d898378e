package layer

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// local decides while the engine is away.
type local struct {
	memory *weir.Memory
	peers  atomic.Int64
	now    func() int // the number of peers; nil if it is fixed

	mu       sync.Mutex
	young    map[uint64]bool // the leases that it gave last, and before
	old      map[uint64]bool
	hasGiven atomic.Bool
}

func (l *local) init(o GuardOptions, clock clock) {
	l.memory = weir.NewMemory(weir.MemoryOptions{Clock: clock.injected, MaxKeys: o.MaxKeys, Logger: o.Logger})
	l.now = o.PeersNow
	l.peers.Store(int64(o.Peers))
}

// number returns the number of processes that share the limits.
func (l *local) number() int {
	if l.now != nil {
		func() {
			defer func() { _ = recover() }()
			if n := l.now(); n > 0 {
				l.peers.Store(int64(n))
			}
		}()
	}
	return int(l.peers.Load())
}

// mostGiven bounds the leases of a generation. A lease is known for one to two of them.
const mostGiven = 1 << 15

// give remembers that a lease was given here.
func (l *local) give(lease uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.young) >= mostGiven || l.young == nil {
		l.old, l.young = l.young, map[uint64]bool{}
	}
	l.young[lease] = true
	l.hasGiven.Store(true)
}

// gave reports whether a settlement is for a lease that was given here.
func (l *local) gave(call *weir.Call) bool {
	return l.hasGiven.Load() && (call.Op == weir.OpReturn || call.Op == weir.OpRecord) && l.knows(call.Lease)
}

// Gave reports whether a policy has admitted a call with the lease, rather than the engine.
func (g *Guarded) Gave(lease uint64) bool { return g.local.knows(lease) }

func (l *local) knows(lease uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.young[lease] || l.old[lease]
}

// shares returns the requests under the limits of this process.
func (l *local) shares(requests []weir.Request) []weir.Request {
	peers := l.number()
	shares := make([]weir.Request, len(requests))
	for i, q := range requests {
		shares[i] = q
		shares[i].Rule = factsOf(q.Rule).share(peers)
	}
	return shares
}

// do makes a call under the limits of this process.
func (l *local) do(call weir.Call) (weir.Answer, error) {
	if err := checked(&call); err != nil {
		return weir.Answer{}, err
	}
	call.Requests, call.Within, call.Identity = l.shares(call.Requests), 0, ""
	return l.memory.Do(context.Background(), call)
}

// checked returns the error of a call that no engine can make.
func checked(call *weir.Call) error {
	var err error
	switch op := call.Op; op {
	case weir.OpEach:
		if call.Each == nil {
			return weir.Kit.Unsupported(op, "has no calls")
		}
		return weir.Kit.CheckEach(call.Each.Calls, call.Each.Results)
	case weir.OpTakeUpTo:
		err = enginekit.CheckMost(call.Most)
	case weir.OpReserveAhead:
		err = weir.Kit.CheckAhead(*call)
	case weir.OpTake, weir.OpReserve, weir.OpPeek, weir.OpRecord, weir.OpReturn, weir.OpReset:
	default:
		err = weir.Kit.Unsupported(op, "is unknown")
	}
	_, bad := enginekit.Merge(call.Op, call.Requests)
	return cmp.Or(err, bad, weir.Kit.CheckTaken(*call), enginekit.CheckIdentity(call.Op, call.Identity))
}

// forget clears the states of keys that were reset.
func (l *local) forget(call weir.Call) {
	_, _ = l.do(call)
}

// policy returns the strictest policy of the rules of a call.
func (g *Guarded) policy(requests []weir.Request) Policy {
	strictest := Allow
	for i := range requests {
		p, ok := g.options.Rules[requests[i].Rule.Name()]
		if !ok {
			p = g.options.OnFailure
		}
		strictest = min(strictest, p)
	}
	return strictest
}

// instead answers in place of the failed engine.
func (g *Guarded) instead(call weir.Call, counted weir.Counted, cause error) (weir.Answer, error) {
	if call.Op == weir.OpEach {
		return weir.Answer{}, enginekit.DecideEach(call.Each, func(c weir.Call) (weir.Answer, error) { return g.instead(c, counted, cause) })
	}
	if err := checked(&call); err != nil {
		return weir.Answer{}, err
	}
	if isAfter(&call) {
		return g.keep(call, counted, cause)
	}
	settles := call.Op == weir.OpReturn || call.Op == weir.OpRecord && call.Lease != 0
	p := g.policy(call.Requests)
	switch {
	case settles && g.owed.settle(call), p == Allow && call.Op == weir.OpRecord && g.owed.settle(call):
		return weir.Answer{Decision: admitted(call)}, nil
	case settles, p == Deny, call.Op == weir.OpReset:
		g.counts.denied.Add(1)
		return weir.Answer{}, &OutageError{call.Op, counted, cause}
	case p == Allow:
		g.counts.allowed.Add(1)
		return g.allowed(call), nil
	}
	return g.decideHere(call, counted, cause)
}

// admitted is the decision on a call that nothing limits.
func admitted(call weir.Call) weir.Decision {
	q := &call.Requests[0]
	return weir.Decision{Allowed: true, Rule: q.Rule.Name(), Key: q.Key, Limit: weir.MaxCount, Remaining: weir.MaxCount}
}

// allowed is the answer of the policy Allow.
func (g *Guarded) allowed(call weir.Call) weir.Answer {
	a := weir.Answer{Decision: admitted(call), Times: call.Most}
	if call.Op == weir.OpReserveAhead {
		a.Reservation = &weir.Reservation{Decision: a.Decision}
	}
	if call.Lease != 0 {
		g.local.give(call.Lease)
	}
	return a
}

// decideHere decides by the limits of this process, and notes what the engine has to record.
func (g *Guarded) decideHere(call weir.Call, counted weir.Counted, cause error) (weir.Answer, error) {
	a, err := g.local.do(call)
	if err != nil {
		if errors.Is(err, weir.ErrRequest) {
			return a, err
		}
		return a, &OutageError{call.Op, counted, errors.Join(cause, err)}
	}
	g.counts.local.Add(1)
	takes := call.Op == weir.OpTake || call.Op == weir.OpTakeUpTo || call.Op == weir.OpReserveAhead
	switch {
	case takes && !a.Decision.Allowed:
		g.counts.refused.Add(1)
	case takes, call.Op == weir.OpRecord:
		g.owed.add(call, max(a.Times, 1))
		if call.Lease != 0 {
			g.local.give(call.Lease)
		}
	}
	return a, nil
}

// settleHere settles units that were taken here.
func (g *Guarded) settleHere(call weir.Call) (weir.Answer, error) {
	a, err := g.local.do(call)
	if err != nil || g.policy(call.Requests) == Allow {
		return a, err
	}
	times := int64(1)
	if call.Op == weir.OpReturn {
		times = -1
	}
	g.owed.add(call, times)
	return a, nil
}

// KeepSlots has the engine renew slots that it gave. Slots that were given here last until the end of their lease. The Guard is
// a [weir.SlotKeeper].
func (g *Guarded) KeepSlots(since time.Time, slots weir.Call) (lost <-chan struct{}, release func()) {
	keeper, ok := weir.Find[weir.SlotKeeper](g.below)
	if !ok || g.local.knows(slots.Lease) {
		return nil, func() {}
	}
	return keeper.KeepSlots(since, slots)
}

// Renew has slots begin again on the engine, or here if they were given here: the Guard is a [enginekit.Renewer].
func (g *Guarded) Renew(ctx context.Context, slots weir.Call) (held bool, err error) {
	if g.local.knows(slots.Lease) {
		slots.Requests = g.local.shares(slots.Requests)
		return g.local.memory.Renew(ctx, slots)
	}
	renewer, ok := weir.Find[enginekit.Renewer](g.below)
	if !ok {
		return false, weir.Kit.Unsupported(weir.OpRecord, "renews no slots on this engine")
	}
	slots.Op = weir.OpRecord // a renewal that comes late is not undone
	p, cause, counted := g.breaker.enter(), g.lastFailure(), weir.CountedNo
	if p != barred {
		a, err := g.ask(ctx, slots, p, g.options.Deadline, func(ctx context.Context, call weir.Call) (a weir.Answer, err error) {
			ctx, cancel := enginekit.Bound(ctx, &call)
			defer cancel()
			a.Decision.Allowed, err = renewer.Renew(ctx, call)
			return a, err
		})
		if ofRequest(err) {
			return a.Decision.Allowed, err
		}
		cause, counted = err, weir.WasCounted(err)
	}
	return false, &OutageError{slots.Op, counted, cause}
}

package layer

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// DenyOptions configure a DenyUntil.
type DenyOptions struct {
	// MaxKeys is the number of refused keys that it remembers, up to 2^20. Another key may take the place of one before.
	// Default: 65,536.
	MaxKeys int
}

const (
	defaultDeniedKeys = 1 << 16
	mostDeniedKeys    = 1 << 20
	longestDenied     = time.Second
	longestDeniedKey  = 256 // bytes; it remembers no longer ones
)

// Denier is an engine with a DenyUntil. It is safe for concurrent use.
type Denier struct {
	engine
	below   weir.Engine
	seed    maphash.Seed
	clock   clock
	began   time.Time
	places  []atomic.Pointer[denial]
	refused atomic.Uint64
}

// denial is a refusal of the engine. One without a rule says that units came back.
type denial struct {
	rule     *weir.Rule
	key      string
	cost     int64
	at       time.Duration // since Denier.began
	until    time.Duration
	decision weir.Decision
}

// DenyUntil refuses in process what the engine would refuse: a cost that it has just refused, and any larger one, to the
// same key under the same limits, until RetryAfter, for at most a second. So a client that hammers costs the engine a call
// a second. RetryAfter of a larger cost is then a lower bound. The engine answers smaller costs, and all of them after this
// process has taken from the key.
//
// A refusal counts towards a [weir.Ban]. So if a rule of the call has a ban, DenyUntil repeats only a refusal by that
// ban, and none if another rule of the call has a ban too.
//
// It leaves to the engine limits that count denied attempts, slots, whose RetryAfter is only an upper bound, and callers
// that wait ([weir.Call.Waits]). A Return, a Reset and a settlement through this engine take effect at once; units that come
// back elsewhere are seen within the second.
func DenyUntil(e weir.Engine, options DenyOptions) (*Denier, error) {
	var size error
	if options.MaxKeys < 0 || options.MaxKeys > mostDeniedKeys {
		size = optionError(denies, "maxKeys", "%d is not within 0 and %d", options.MaxKeys, mostDeniedKeys)
	}
	if err := errors.Join(checkOver(e, denies), size); err != nil {
		return nil, err
	}
	keys := cmp.Or(options.MaxKeys, defaultDeniedKeys)
	d := &Denier{below: e, seed: maphash.MakeSeed(), clock: clockOf(e), places: make([]atomic.Pointer[denial], 1<<bits.Len(uint(keys-1)))}
	d.began = d.clock.now()
	d.engine = weir.Wrap(e, d.around)
	return d, nil
}

// Unwrap returns the engine below, for weir.Find.
func (d *Denier) Unwrap() weir.Engine { return d.below }

func (d *Denier) rank() rank { return denies }

// Refused returns how many calls were refused here.
func (d *Denier) Refused() uint64 { return d.refused.Load() }

func (d *Denier) around(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	switch call.Op {
	case weir.OpTake:
		if !call.Waits && call.Identity == "" {
			return d.take(ctx, call, next)
		}
	case weir.OpReserve:
		return weir.Kit.Reserve(ctx, d, call) // so that takes and settlements pass here
	}
	a, err := next(ctx, call)
	for i := range enginekit.Decisions(&call) {
		switch c, _, _, _ := enginekit.DecisionAt(&call, &a, err, i); c.Op {
		case weir.OpReturn, weir.OpReset:
			d.forget(c.Requests)
		case weir.OpPeek:
		default:
			d.taken(c.Requests)
		}
	}
	return a, err
}

// taken forgets the refusals of keys whose units were taken since: their RetryAfter is later now.
func (d *Denier) taken(requests []weir.Request) {
	for i := range requests {
		q := &requests[i]
		if q.Rule == nil || q.Cost == 0 {
			continue
		}
		place := d.placeOf(q.Rule.Name(), q.Key)
		if known := place.Load(); known != nil && known.rule != nil && known.key == q.Key {
			place.CompareAndSwap(known, nil)
		}
	}
}

// Take works as on every engine. It keeps the request of a refused caller on the stack.
func (d *Denier) Take(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	if len(requests) == 1 && requests[0].Rule != nil {
		if known, now := d.refuses(&requests[0]); now >= 0 {
			d.refused.Add(1)
			return known.left(requests[0].Cost, now), nil
		}
	}
	return d.engine.Take(ctx, slices.Clone(requests)...)
}

// refuses returns the denial of a key. If that refuses the request, it also returns the time, and otherwise -1.
func (d *Denier) refuses(q *weir.Request) (known *denial, now time.Duration) {
	known = d.placeOf(q.Rule.Name(), q.Key).Load()
	if known == nil || known.key != q.Key || q.Otherwise != nil || q.Cost < known.cost || !sameLimits(known.rule, q.Rule) {
		return known, -1
	}
	if now = d.clock.since(d.began); now >= known.until || now < known.at {
		now = -1
	}
	return known, now
}

// take refuses a take that was just refused, or asks the engine.
func (d *Denier) take(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	var known *denial
	for i := range call.Requests {
		q, now := &call.Requests[i], time.Duration(0)
		if q.Rule == nil {
			return next(ctx, call)
		}
		if known, now = d.refuses(q); now >= 0 && known.strikesNone(call.Requests) && isValid(call.Requests) {
			d.refused.Add(1)
			return weir.Answer{Decision: known.left(q.Cost, now)}, nil
		}
	}
	if len(call.Requests) > 1 {
		known = nil // the place of the request that is refused is not known yet
	}
	return d.ask(ctx, call, next, known)
}

// ask asks the engine and remembers a refusal, unless units have come back meanwhile. before is the denial that was in
// the place of the only request.
func (d *Denier) ask(ctx context.Context, call weir.Call, next weir.Next, before *denial) (weir.Answer, error) {
	var places [8]*denial
	if n := len(call.Requests); n > 1 && n <= len(places) {
		for i, q := range call.Requests {
			places[i] = d.placeOf(q.Rule.Name(), q.Key).Load()
		}
	}
	a, err := next(ctx, call)
	if err == nil && a.Decision.Allowed {
		d.taken(call.Requests)
	}
	if err != nil || a.Decision.Allowed || a.Decision.RetryAfter <= 0 || len(call.Requests) > len(places) {
		return a, err
	}
	for i := range call.Requests {
		q := &call.Requests[i]
		if q.Rule.Name() == a.Decision.Rule && q.Key == a.Decision.Key && isAlone(call.Requests, i) {
			if len(call.Requests) > 1 {
				before = places[i]
			}
			d.remember(q, &a.Decision, before)
		}
	}
	return a, nil
}

// strikesNone reports whether the engine would note no strike for a call that d refuses: no rule of it has a ban, except
// for one that is banned.
func (d *denial) strikesNone(requests []weir.Request) bool {
	bans := 0
	for i := range requests {
		if r := requests[i].Rule; r != nil && factsOf(r).bans {
			bans++
		}
	}
	return bans == 0 || bans == 1 && d.decision.Cause == weir.ByBan
}

// remember stores a refusal in place of the denial that was there before the call.
func (d *Denier) remember(q *weir.Request, answer *weir.Decision, before *denial) {
	f := factsOf(q.Rule)
	byBan := answer.Cause == weir.ByBan
	if len(q.Key) > longestDeniedKey || f.countsDenied || f.has(weir.RefillRelease) && !byBan || f.bans && !byBan {
		return
	}
	at := d.clock.since(d.began)
	told := &denial{q.Rule, q.Key, q.Cost, at, at + min(answer.RetryAfter, longestDenied), *answer}
	if byBan { // it refuses any cost, and only one call has begun it
		told.cost, told.decision.BanBegun = 1, false
	}
	d.placeOf(q.Rule.Name(), q.Key).CompareAndSwap(before, told)
}

// left returns the decision on a cost at a later instant.
func (d *denial) left(cost int64, now time.Duration) weir.Decision {
	left, passed := d.decision, now-d.at
	if cost > d.cost && cost > factsOf(d.rule).capacity {
		left.RetryAfter = weir.Never
	}
	if left.RetryAfter != weir.Never {
		left.RetryAfter -= passed
	}
	age(&left, passed)
	return left
}

// age lets time pass since a decision, until its key is like a new one.
func age(d *weir.Decision, passed time.Duration) {
	for _, reset := range []*time.Duration{&d.ResetAfter, &d.LimitReset} {
		if *reset != weir.Never {
			*reset = max(*reset-passed, 0)
		}
	}
}

// forget forgets the refusals of keys whose units came back. Answers that are on their way are not remembered.
func (d *Denier) forget(requests []weir.Request) {
	for _, q := range requests {
		if q.Rule != nil {
			d.placeOf(q.Rule.Name(), q.Key).Store(&denial{})
		}
	}
}

// placeOf returns the place of a key. Rules of one name share it, because they share their states.
func (d *Denier) placeOf(rule, key string) *atomic.Pointer[denial] {
	at := maphash.String(d.seed, key) ^ bits.RotateLeft64(maphash.String(d.seed, rule), 32)
	return &d.places[at&uint64(len(d.places)-1)]
}

// sameLimits reports whether two rules are the same.
func sameLimits(a, b *weir.Rule) bool { return a == b || a != nil && a.String() == b.String() }

// isAlone reports whether no other request has the key and rule of the i-th: their costs would be summed.
func isAlone(requests []weir.Request, i int) bool {
	for j := range requests {
		if j != i && requests[j].Key == requests[i].Key && requests[j].Rule.Name() == requests[i].Rule.Name() {
			return false
		}
	}
	return true
}

// isValid reports whether an engine would decide a take. A single request that was refused before is valid.
func isValid(requests []weir.Request) bool {
	return len(requests) == 1 || checked(&weir.Call{Op: weir.OpTake, Requests: requests}) == nil
}

package layer

import (
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// limit holds the facts of a limit that the layers need.
type limit struct {
	refill        weir.Refill
	count         int64 // units in each period
	period, phase time.Duration
	capacity      int64
	quota         weir.Limit // if its windows are of the calendar, which have no period
	own           bool       // each key has its own windows, which begin with its first use
}

func limitOf(l weir.Limit) limit {
	d := weir.Describe(l)
	known := limit{refill: d.Refill, count: d.Rate.Count, period: d.Rate.Period, phase: d.Phase, capacity: d.Capacity, own: d.FromFirstUse}
	if d.Calendar != 0 {
		known.count, known.period, known.quota = d.Capacity, math.MaxInt64, l
	}
	return known
}

// facts are the facts of a rule that the layers need. They are made once.
type facts struct {
	rule         *weir.Rule
	limits       []limit
	slots, units *weir.Rule // the limits that are slots, and the others; nil without any
	countsDenied bool
	bans         bool
	delays       bool
	most         int64     // units of a key that may be taken ahead; 0 if none may
	capacity     int64     // the least
	alike        [][]stage // the limits whose states have names that differ by a number
	shared       atomic.Pointer[share]
}

// stage is a limit of a rule, and a rule of those limits alike that come no later.
type stage struct {
	limit int
	upTo  *weir.Rule
}

// share is a rule of the limits of one of several processes.
type share struct {
	peers int
	rule  *weir.Rule
}

// factsOf returns the facts of a rule that NewRule made.
func factsOf(r *weir.Rule) *facts { return enginekit.Keep(r, newFacts) }

func newFacts(r *weir.Rule) *facts {
	f := &facts{rule: r, capacity: math.MaxInt64}
	limits := r.Limits()
	for _, l := range limits {
		known := limitOf(l)
		f.limits, f.capacity = append(f.limits, known), min(f.capacity, known.capacity)
		d := weir.Describe(l)
		f.delays, f.countsDenied, f.bans = f.delays || d.Delays, f.countsDenied || d.CountsDenied, f.bans || d.Bans
	}
	f.slots, f.units = weir.Kit.Held(r), weir.Kit.Spent(r)
	f.alike, f.most = alikeOf(r, limits), f.mostOut()
	return f
}

// partOf returns a rule of the same name, and so of the same states.
func partOf(r *weir.Rule, limits []weir.Limit) *weir.Rule {
	part, _ := weir.NewRule(r.Name(), limits...) // valid in r, so valid here
	return part
}

// alikeOf groups limits by the names of their states without the number at the end, so that each has a rule of its own
// number. A ban has no units.
func alikeOf(r *weir.Rule, limits []weir.Limit) (groups [][]stage) {
	var names []string
	var members [][]weir.Limit
	for i, state := range enginekit.StateNames(r) {
		if weir.Describe(limits[i]).Bans {
			continue
		}
		name := state[:strings.LastIndexByte(state, 0)]
		at := slices.Index(names, name)
		if at < 0 {
			at, names, members, groups = len(names), append(names, name), append(members, nil), append(groups, nil)
		}
		members[at] = append(members[at], limits[i])
		groups[at] = append(groups[at], stage{i, partOf(r, members[at])})
	}
	return groups
}

// share returns the rule of one of several processes.
func (f *facts) share(peers int) *weir.Rule {
	if known := f.shared.Load(); known != nil && known.peers == peers {
		return known.rule
	}
	limits := f.rule.Limits()
	for i, l := range limits {
		limits[i] = weir.Kit.EqualShare(l, peers)
	}
	made := &share{peers, partOf(f.rule, limits)}
	f.shared.Store(made)
	return made.rule
}

// has reports whether a limit of the rule is of that kind.
func (f *facts) has(k weir.Refill) bool {
	return slices.ContainsFunc(f.limits, func(l limit) bool { return l.refill == k })
}

// outstanding returns how many of n units, all taken at most age ago, certainly still count under every limit except
// slots. Units that were refilled must not be given back again: others may have used them.
func (f *facts) outstanding(n int64, age time.Duration, sameWindow bool) int64 {
	for _, l := range f.limits {
		switch {
		case l.refill == weir.RefillRate:
			n -= min(n, scaled(int64(age), l.count, int64(l.period))+1)
		case l.refill == weir.RefillEach, l.refill == weir.RefillWindow && !sameWindow:
			return 0
		}
	}
	return max(n, 0)
}

// index returns the number of the window at an instant, or of a quota the second of its start. Limits whose keys have their
// own windows have none.
func (l *limit) index(now time.Time) int64 {
	if l.quota != nil {
		start, _, _ := weir.Kit.CalendarWindow(l.quota, now)
		return start.Unix()
	}
	at := now.UnixNano() - int64(l.phase)
	index := at / int64(l.period)
	if at%int64(l.period) < 0 {
		index--
	}
	return index
}

// sameWindow reports whether no window of the rule has ended between two instants of this process's clock. It does not
// know windows that begin at the first use of a key. A call with a Taken leaves those to the engine.
func (f *facts) sameWindow(a, b time.Time, tells bool) bool {
	return !slices.ContainsFunc(f.limits, func(l limit) bool {
		switch {
		case l.refill != weir.RefillWindow:
			return false
		case l.own:
			return !tells
		}
		return l.index(a) != l.index(b)
	})
}

// scaled returns a × b / c, rounded down, and the largest number if it is larger. None of them is negative.
func scaled(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, uint64(c))
	return int64(min(quotient, math.MaxInt64))
}

// mostOut returns how many units of a key may be taken ahead; 0 if none may. A stock would hide costs that are recorded
// after the work.
func (f *facts) mostOut() int64 {
	if f.rule.ChargesAfter() {
		return 0
	}
	windows := 0
	for _, known := range f.limits {
		switch known.refill {
		case weir.RefillWindow:
			windows++
		case weir.RefillRate:
		default:
			return 0
		}
	}
	most := f.capacity / aheadOf
	if most < leastBlock || len(f.limits) == 0 || f.delays || windows > 0 && len(f.limits) > 1 {
		return 0
	}
	return most
}

// slotsOf returns a call for the slots alone.
func slotsOf(call weir.Call) weir.Call {
	slots := weir.Call{Op: weir.OpReturn, Lease: call.Lease}
	for _, q := range call.Requests {
		if f := factsOf(q.Rule); f.slots != nil && q.Cost > 0 {
			q.Rule = f.slots
			slots.Requests = append(slots.Requests, q)
		}
	}
	return slots
}

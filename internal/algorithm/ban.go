package algorithm

import (
	"math"
	"slices"
)

// Ban refuses a key for a while after other limits of its rule have refused it often enough: a part beside other parts of one
// rule, never alone.
//
// A ban keeps one state of a key beside those of the other limits, and the same call decides it: in memory under the same
// locks, in Redis in the same script, in a store in the same row. An admitted call does not write it, so a key that is
// never refused has no state. A refusal by another limit of the rule is a strike, and writes the ban's state alone: the
// second exception to the rule that refusals write nothing. During a ban nothing is written at all.
//
// A strike is noted by Take, once for each rule of the call (see strike), never by Peek, Record or Give. Strikes within a time,
// of a number, begin a ban; each ban of a key is twice as long as the one before, up to a longest. A key that has not
// been banned for the length of the longest ban starts over.
//
// State: A is the instant of the last strike or of the last begin of a ban, initially math.MinInt64; B the end of the
// ban; C the level, which lengthens the next ban, and the number of strikes in the bits above; Unit the instant from
// which the state is like a fresh one. Strikes are instants that never decrease. The newest is A, the two before it are
// Promised and Converted, and Log has the older ones, the oldest first. So a state takes 200 bytes or less, and each
// strike 8 more.
type Ban struct {
	Plain
	after, within, length, longest int64
}

// MaxStrikes is the largest number of strikes that begin a ban.
const MaxStrikes = 100

const (
	maxLevel    = 63
	levelBits   = 8
	inlineOlder = 2 // strikes in Promised and Converted
)

// NewBan returns a ban after strikes within ns, which first lasts length ns and later up to longest ns.
func NewBan(after, within, length, longest int64) *Ban {
	return &Ban{after: after, within: within, length: length, longest: max(length, longest)}
}

// Wait returns the rest of the ban, for any cost.
func (b *Ban) Wait(s State, now, _ int64) int64 {
	if max(now, s.A) >= s.B {
		return 0
	}
	return subSat(s.B, now)
}

// Take returns s unchanged: an admission is no strike.
func (b *Ban) Take(s State, _, _ int64) State { return s }

// Give returns s unchanged: units that come back remove no strike.
func (b *Ban) Give(s State, _, _ int64) State { return s }

// Room returns 0 during a ban, and otherwise more than any other limit.
func (b *Ban) Room(s State, now int64) int64 {
	if b.Wait(s, now, 1) > 0 {
		return 0
	}
	return Never
}

// Fresh returns the state of a key that was never refused.
func (b *Ban) Fresh() State { return State{A: math.MinInt64, B: math.MinInt64, Unit: math.MinInt64} }

// Capacity returns the largest capacity of any limit.
func (b *Ban) Capacity() int64 { return maxUnits }

// Keep returns the time until the state is like a fresh one, for the limit that wrote it last.
func (b *Ban) Keep(s State, now int64) int64 { return max(subSat(s.Unit, now), 0) }

// Strike returns the state after another limit of the rule has refused the key, which is not banned. begun reports that a ban
// begins.
func (b *Ban) Strike(s State, now int64) (_ State, begun bool) {
	e := max(now, s.A)
	level := s.level()
	if s.B == math.MinInt64 || e >= AddSaturating(s.B, b.longest) {
		level = 0
	}
	var space [MaxStrikes + 1]int64
	strikes := s.appendStrikes(space[:0])
	for len(strikes) > 0 && subSat(e, strikes[0]) >= b.within {
		strikes = strikes[1:]
	}
	strikes = append(strikes, e)
	if int64(len(strikes)) < b.after {
		end := AddSaturating(e, b.within)
		if s.B > math.MinInt64 {
			end = max(end, AddSaturating(s.B, b.longest))
		}
		return State{A: e, B: s.B, Unit: end}.withStrikes(strikes, level), false
	}
	length := b.longest
	if level <= maxLevel && b.length <= b.longest>>level {
		length = b.length << level
		level = min(level+1, maxLevel)
	}
	until := AddSaturating(e, length)
	return State{A: e, B: until, C: level, Unit: AddSaturating(until, b.longest)}, true
}

func (s State) level() int64 { return s.C & (1<<levelBits - 1) }

func (s State) strikes() int { return int(s.C >> levelBits) }

// appendStrikes appends the strikes of a state of a ban, the oldest first.
func (s State) appendStrikes(to []int64) []int64 {
	if s.Log != nil {
		to = append(to, *s.Log...)
	}
	newest := [1 + inlineOlder]int64{s.Converted, s.Promised, s.A}
	return append(to, newest[len(newest)-min(s.strikes(), len(newest)):]...)
}

// withStrikes returns the state with a level and with strikes: at least one, the newest at s.A.
func (s State) withStrikes(strikes []int64, level int64) State {
	n := len(strikes)
	s.C = int64(n)<<levelBits | level
	if n > 1 {
		s.Promised = strikes[n-2]
	}
	if n > 2 {
		s.Converted = strikes[n-3]
	}
	if older := n - 1 - inlineOlder; older > 0 {
		log := make([]int64, older) // without room to grow: there may be many such keys
		copy(log, strikes)
		s.Log = &log
	}
	return s
}

// AppendState appends the last instant, the end of the ban, the level, the end of the state and the strikes. It appends nothing
// for a key that was never refused.
func (b *Ban) AppendState(into []int64, s State) []int64 {
	if s.A == math.MinInt64 && s.B == math.MinInt64 {
		return into
	}
	return s.appendStrikes(append(into, s.A, s.B, s.level(), s.Unit))
}

const banNumbers = 4

// RestoreState refuses strikes that are out of order or after the last instant, and levels that no ban reaches.
func (b *Ban) RestoreState(numbers []int64) (State, bool) {
	s := b.Fresh()
	if len(numbers) == 0 {
		return s, true
	}
	if len(numbers) < banNumbers || len(numbers) > banNumbers+MaxStrikes {
		return State{}, false
	}
	level, strikes := numbers[2], numbers[banNumbers:]
	s.A, s.B, s.C, s.Unit = numbers[0], numbers[1], level, numbers[3]
	if level < 0 || level > maxLevel || level > 0 && s.B == math.MinInt64 || level == 0 && len(strikes) == 0 {
		return State{}, false
	}
	for i := 1; i < len(strikes); i++ {
		if strikes[i] < strikes[i-1] {
			return State{}, false
		}
	}
	if n := len(strikes); n > 0 {
		if strikes[n-1] != s.A {
			return State{}, false
		}
		s = s.withStrikes(strikes, level)
	}
	return s, true
}

// Bans reports whether the limit is a ban.
func Bans(a Algorithm) bool { return is[*Ban](a) }

// ban returns the ban of a part, or nil.
func (p *Part) ban() *Ban {
	b, _ := p.Algorithm.(*Ban)
	return b
}

// strike notes the refusal of a call in the bans of those rules that refuse their own part. changed reports whether a
// state was written, and begun whether a ban begins. No refusal is a strike if a cost can never be admitted.
func strike(parts []Part, now int64) (changed, begun bool) {
	if slices.ContainsFunc(parts, neverFits) {
		return false, false
	}
	for i := range parts {
		p := &parts[i]
		b := p.ban()
		if b == nil || p.Cost <= 0 || p.Spared || p.wait(now) > 0 || !refusedBeside(parts, i, now) {
			continue
		}
		if p.NoRoom {
			p.Missed = true
			continue
		}
		begins := false
		p.State, begins = b.Strike(p.State, now)
		p.Changed, changed, begun = true, true, begun || begins
		p.Begun = begins
	}
	return changed, begun
}

// refusedBeside reports whether another part of the rule of the i-th part refuses its cost now. Slots whose end is unknown
// refuse, but that is no strike.
func refusedBeside(parts []Part, i int, now int64) bool {
	from, to := ruleOf(parts, i)
	return slices.ContainsFunc(parts[from:to], func(p Part) bool {
		wait := p.wait(now)
		return wait > 0 && wait < Never
	})
}

// ruleOf returns the range of the parts that have the rule of the i-th.
func ruleOf(parts []Part, i int) (from, to int) {
	from, to = i, i+1
	for from > 0 && parts[from-1].Request == parts[i].Request {
		from--
	}
	for to < len(parts) && parts[to].Request == parts[i].Request {
		to++
	}
	return from, to
}

// noteBans sets Banned of all parts of the rules whose ban refuses everything now.
func noteBans(parts []Part, now int64) {
	for i := range parts {
		if b := parts[i].ban(); b != nil {
			banned := b.Wait(parts[i].State, now, 1) > 0
			from, to := ruleOf(parts, i)
			for j := from; j < to; j++ {
				parts[j].Banned = banned
			}
		}
	}
}

// tighterThan reports whether a part has less room than another part of the same rule, which is banned as well.
func (p *Part) tighterThan(other *Part, now int64) bool {
	return p.ban() == nil && p.Request == other.Request && p.Algorithm.Room(p.State, now) < other.Algorithm.Room(other.State, now)
}

// describeBan completes the answer of a refusal by a ban: header fields announce the tightest of the other limits.
func (a *Answer) describeBan(parts []Part, now int64) {
	shown, least := a.Binding, int64(Never)
	from, to := ruleOf(parts, a.Binding)
	for i := from; i < to; i++ {
		if p := &parts[i]; p.ban() == nil && p.Algorithm.Room(p.State, now) < least {
			shown, least = i, p.Algorithm.Room(p.State, now)
		}
	}
	a.ByBan, a.Begun, a.Beside = true, parts[a.Binding].Begun, int8(shown-a.Binding)
	a.LimitReset = max(ResetAfter(parts[shown].Algorithm, parts[shown].State, now), 0)
}

// describeBeside is describe for parts with at least one ban.
func describeBeside(parts []Part, now, wait int64, binding int) Answer {
	noteBans(parts, now)
	tightest, room := 0, int64(Never)
	var reset, limitReset int64
	for i := range parts {
		p := &parts[i]
		own := max(ResetAfter(p.Algorithm, p.State, now), 0)
		if r := p.roomOf(now); r < room || p.Banned && p.tighterThan(&parts[tightest], now) {
			if tightest, room = i, r; binding < 0 {
				limitReset = own
			}
		}
		if i == binding {
			limitReset = own
		}
		reset = max(reset, own)
	}
	a := Answer{Allowed: wait == 0, Binding: binding, Limit: parts[tightest].Algorithm.Capacity(), Remaining: room, RetryAfter: wait, ResetAfter: reset, LimitReset: limitReset}
	switch {
	case binding < 0:
		a.Binding = tightest
	case parts[binding].ban() != nil:
		a.describeBan(parts, now)
	default:
		p := &parts[binding]
		a.ByGap = wait < Never && ByGap(p.Algorithm, &p.State, now, p.wait(now))
	}
	return a
}

// roomOf returns the units that a part admits now: none while its rule is banned, and no number for a ban.
func (p *Part) roomOf(now int64) int64 {
	switch {
	case p.ban() != nil:
		return Never
	case p.Banned:
		return 0
	}
	return p.Algorithm.Room(p.State, now)
}

// ResetAfter returns the time until a state answers like a fresh one.
func ResetAfter(a Algorithm, s State, now int64) int64 {
	if b, ok := a.(*Ban); ok {
		return b.Keep(s, now)
	}
	return a.Wait(s, now, a.Capacity())
}

package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

func TestMemoryAndRedisGiveTheSameAnswers(t *testing.T) {
	t.Parallel()
	duels(t, dial(t, redistest.Start(t)), randtest.Rounds(t, 150, 50), true)
}

// duels runs rounds of random operations through both engines and compares every field of every answer.
func duels(t *testing.T, client rueidis.Client, rounds int, backwards bool) {
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	kinds, answers := map[string]int{}, map[string]int{}
	for round := range rounds {
		d := &duel{T: t, random: random, now: 1_700_000_000_000_000 + random.Int64N(1e15), answers: answers, backwards: backwards}
		clock := func() int64 { return d.now * 1000 }
		d.memory = weir.NewMemory(weir.MemoryOptions{Clock: clock})
		d.redis = newEngine(t, client, redislimit.Options{Prefix: fresh(), Clock: clock, Linger: time.Hour})
		d.makeRules()
		for range 60 {
			if d.step(); t.Failed() {
				t.Fatalf("round %d differs; since then:\n%s", round, d.history)
			}
		}
		for _, r := range d.rules {
			for _, l := range r.Limits() {
				kinds[fmt.Sprintf("%T", l)]++
			}
		}
	}
	t.Logf("limits met: %v; answers: %v", kinds, answers)
	for _, answer := range []string{"take admitted", "take refused", "record refused", "take up to admitted", "take up to refused", "banned", "ban begun"} {
		if answers[answer] < rounds/4 {
			t.Errorf("%d times %s in %d rounds: it proves little", answers[answer], answer, rounds)
		}
	}
	if most := max(100, rounds/4); answers["tie"] > most {
		t.Errorf("%d ties of less than a tick, want at most %d", answers["tie"], most)
	}
	if len(kinds) != 13 {
		t.Errorf("rounds met %v, want all 13 limits", kinds)
	}
}

// duel is one clock and two engines that get the same requests.
type duel struct {
	*testing.T
	random        *rand.Rand
	now           int64 // us
	memory, redis weir.Engine
	rules         []*weir.Rule
	history       string
	answers       map[string]int
	backwards     bool // the time may run backwards
}

func (d *duel) makeRules() {
	for len(d.rules) < 3 {
		limits := []weir.Limit{d.limit()}
		for d.random.IntN(2) == 0 && len(limits) < 4 {
			limits = append(limits, d.limit())
		}
		if d.random.IntN(2) == 0 {
			limits = slices.Insert(limits, d.random.IntN(len(limits)+1), d.ban())
		}
		r, err := weir.NewRule(fmt.Sprint("rule ", len(d.rules)), limits...)
		if err != nil || d.redis.Check(r) != nil {
			continue // of limits that cannot be together, or are out of bounds
		}
		d.rules = append(d.rules, r)
		d.history += fmt.Sprintln(r)
	}
}

func (d *duel) ban() weir.Limit {
	year := int64(366 * 24 * 3600 * 1e6)
	b := weir.Ban{After: 1 + d.random.Int64N(d.upTo(4)), Within: time.Duration(year>>d.random.IntN(6)) * time.Microsecond, For: time.Duration(d.upTo(year)) * time.Microsecond}
	if d.random.IntN(3) > 0 {
		b.UpTo = min(b.For*time.Duration(d.upTo(64)), weir.MaxPeriod)
	}
	return b
}

// upTo returns a number from 1 to most; small numbers are as likely as large ones.
func (d *duel) upTo(most int64) int64 {
	n := int64(1)
	for limit := d.random.IntN(64); n < most && limit > 0; limit -= 2 {
		n *= 2
	}
	return 1 + d.random.Int64N(min(n, most))
}

func (d *duel) limit() weir.Limit {
	period := time.Duration(d.upTo(366*24*3600*1e6)) * time.Microsecond
	most := min(int64(1e9), int64(period))
	rate := weir.Per(d.upTo(most), period)
	few := weir.Per(d.upTo(min(most, 40)), period)
	switch d.random.IntN(21) / 2 {
	case 10:
		return weir.FirstWindow{Rate: rate}
	case 8:
		return weir.Quota{
			Count: d.upTo(1e9), Unit: weir.CalendarUnit(1 + d.random.IntN(5)), At: time.Duration(d.random.IntN(24*60)) * time.Minute,
			Zone: []string{"", "Europe/Paris", "Pacific/Apia"}[d.random.IntN(3)],
		}
	case 9:
		return []weir.Limit{weir.Unlimited{}, weir.DenyAll{}}[d.random.IntN(2)]
	case 0:
		return weir.TokenBucket{Rate: rate, Burst: min(3*rate.Count, d.upTo(1e9))}
	case 1:
		queue := min(3*rate.Count, d.upTo(1e9-1))
		return weir.LeakyBucket{Rate: rate, Queue: queue, NoDelay: d.random.Int64N(queue + 1)}
	case 2:
		return weir.FixedWindow{Rate: rate}
	case 3:
		return weir.SlidingWindow{Rate: rate}
	case 4:
		gap := time.Duration(d.random.Int64N(int64(period/time.Microsecond)+1)) * time.Microsecond
		return weir.SlidingLog{Rate: few, Gap: gap * time.Duration(d.random.IntN(2)), CountDenied: d.random.IntN(3) == 0}
	case 5:
		return weir.RateGate{Rate: few}
	case 6:
		return weir.Cycle{Rate: rate, Origin: time.Duration(d.random.Int64N(1e12)) * time.Microsecond}
	}
	return weir.Concurrency{Slots: d.upTo(30), Lease: period}
}

// step asks both engines for one operation, and lets time pass.
func (d *duel) step() {
	c := weir.Call{Op: weir.OpTake, Lease: uint64(d.random.IntN(3)), Requests: d.requests(), Waits: d.random.IntN(8) == 0}
	requests, verb := c.Requests, "take"
	switch d.random.IntN(18) {
	case 12, 13, 14, 15, 16, 17:
		c.Op, c.Most = weir.OpTakeUpTo, []int64{d.random.Int64N(10) - 1, d.upTo(1 << 20), math.MaxInt64}[d.random.IntN(3)]
		verb = "take up to"
		d.history += fmt.Sprintf("%d times at most: ", c.Most)
	case 0:
		c.Op, verb = weir.OpReset, "reset"
	case 1, 2:
		c.Op, verb = weir.OpPeek, "peek"
	case 3, 4, 5:
		if c.Op, verb = weir.OpRecord, "record"; d.random.IntN(2) == 0 {
			c.Op = weir.OpReturn
		}
	}
	wanted, wantErr := d.memory.Do(context.Background(), c)
	answered, gotErr := d.redis.Do(context.Background(), c)
	want, got := wanted.Decision, answered.Decision
	want.RetryAfter, want.ResetAfter, want.LimitReset, want.Delay = ticks(want.RetryAfter), ticks(want.ResetAfter), ticks(want.LimitReset), ticks(want.Delay)
	d.history += fmt.Sprintf("%d %s lease %d", d.now, c.Op, c.Lease)
	for _, q := range requests {
		d.history += fmt.Sprintf(" %s/%s %d,", q.Rule.Name(), q.Key, q.Cost)
	}
	d.history += fmt.Sprintf("\n\t%+v\n", want)
	var bad *weir.RequestError
	if (wantErr == nil) != (gotErr == nil) || errors.As(wantErr, &bad) && gotErr.Error() != wantErr.Error() {
		d.Errorf("got error %v, want %v", gotErr, wantErr)
	}
	switch {
	case wantErr != nil:
		verb += " error"
	case want.Allowed:
		verb += " admitted"
	default:
		verb += " refused"
	}
	d.answers[verb]++
	if want.Cause == weir.ByBan {
		d.answers["banned"]++
	}
	if want.BanBegun {
		d.answers["ban begun"]++
	}
	if !got.Allowed && d.tie(verb, got, want, requests) {
		d.answers["tie"]++
		got.Rule, got.Key, got.RefusedBy, got.Cause = want.Rule, want.Key, want.RefusedBy, want.Cause
		got.LimitIndex, got.LimitReset, got.BanBegun = want.LimitIndex, want.LimitReset, want.BanBegun
	}
	if got != want {
		d.Errorf("got  %+v\nwant %+v", got, want)
	}
	if answered.Times != wanted.Times {
		d.Errorf("taken %d times, want %d", answered.Times, wanted.Times)
	}
	d.pass(want)
}

// tie reports whether the two name different requests or limits whose waits differ by less than a tick. Memory, which
// distinguishes nanoseconds, names the longer one. After a record the waits before it are no longer available.
func (d *duel) tie(verb string, got, want weir.Decision, requests []weir.Request) bool {
	if got.Rule == want.Rule && got.Key == want.Key && got.RefusedBy == want.RefusedBy {
		return false
	}
	if verb == "record refused" {
		return true
	}
	var own []weir.Request
	for _, q := range requests {
		if q.Rule.Name() == got.Rule && q.Key == got.Key {
			limits := q.Rule.Limits()
			if r, err := weir.NewRule(q.Rule.Name(), limits[:min(int(got.RefusedBy)+1, len(limits))]...); err == nil { // not a ban alone
				q.Rule = r
			}
			own = append(own, q)
		}
	}
	alone, err := d.memory.Peek(context.Background(), own...)
	return err == nil && ticks(alone.RetryAfter) == want.RetryAfter
}

// pass moves the time: not at all, to an instant that matters or next to it, to any instant, or back.
func (d *duel) pass(last weir.Decision) {
	retry, reset := int64(last.RetryAfter/time.Microsecond), int64(last.ResetAfter/time.Microsecond)
	before := d.now
	year := int64(366 * 24 * 3600 * 1e6)
	switch d.random.IntN(12) {
	case 0, 1:
		d.now += min(retry, year)
	case 2:
		d.now += min(retry, year) - 1
	case 3:
		d.now += min(reset, year) - d.random.Int64N(2)
	case 4:
		d.now += min(reset, year) / 2
	case 5:
		d.now += d.upTo(year)
	case 6:
		d.now -= d.upTo(1 << 30)
	case 7:
		d.now += d.random.Int64N(min(reset, year) + 1)
	}
	if !d.backwards {
		d.now = max(d.now, before)
	}
}

func (d *duel) requests() (requests []weir.Request) {
	for len(requests) == 0 || d.random.IntN(3) == 0 && len(requests) < 4 {
		r := d.rules[d.random.IntN(len(d.rules))]
		var capacity int64 = 1 << 30
		for _, l := range r.Limits() {
			capacity = min(capacity, capacityOf(l))
		}
		cost := d.random.Int64N(4)
		switch d.random.IntN(4) {
		case 0:
			cost = d.random.Int64N(capacity + 2)
		case 1:
			cost = d.upTo(capacity)
		}
		q := r.For(fmt.Sprint("key ", d.random.IntN(2)), cost)
		if all := append(requests, q); d.backwards || !slices.ContainsFunc(all, bans) || !slices.ContainsFunc(all, func(r weir.Request) bool { return r.Key != q.Key }) {
			requests = all // of several lanes, a ban counts no refusal of one that was asked after the first refusal
		}
	}
	return requests
}

func bans(q weir.Request) bool {
	return slices.ContainsFunc(q.Rule.Limits(), func(l weir.Limit) bool { return weir.Describe(l).Bans })
}

func capacityOf(l weir.Limit) int64 {
	switch l := l.(type) {
	case weir.TokenBucket:
		return l.Burst
	case weir.LeakyBucket:
		return l.Queue + 1
	case weir.FixedWindow:
		return l.Rate.Count
	case weir.SlidingWindow:
		return l.Rate.Count
	case weir.SlidingLog:
		return l.Rate.Count
	case weir.RateGate:
		return l.Rate.Count
	case weir.Cycle:
		return l.Rate.Count
	case weir.Concurrency:
		return l.Slots
	}
	return weir.MaxCount // Unlimited; DenyAll takes any cost as well as another
}

// ticks rounds a duration up to the resolution of Redis.
func ticks(d time.Duration) time.Duration {
	if d > weir.Never-time.Microsecond {
		return weir.Never
	}
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

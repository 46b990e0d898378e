package algorithm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/weirflow/weir/internal/calendar"
	"github.com/weirflow/weir/internal/randtest"
)

func zoneNamed(name string) *time.Location {
	zone, err := calendar.Zone(name)
	if err != nil {
		panic(err)
	}
	return zone
}

// quotas are limits of one unit whose windows begin at different instants.
func quotas(random *rand.Rand, unit calendar.Unit, second int64) (all []*Quota) {
	for _, zone := range []string{"UTC", "Europe/Paris", "America/New_York", "Pacific/Apia", "Asia/Kathmandu"} {
		c := calendar.Calendar{Unit: unit, Zone: zoneNamed(zone), Month: 1, Day: 1, At: 60 * random.Int64N(24*60)}
		if unit > calendar.Day {
			c.Day = 1 + random.IntN(7)
		}
		all = append(all, NewQuota(1+random.Int64N(20), second, c))
	}
	return all
}

// quotaModel is the definition: the exact instant of the last admission, and the count since its window began.
type quotaModel struct {
	last, count int64
	fresh       bool
}

// at returns the instant at which an operation is evaluated, its window and the count that counts there.
func (m *quotaModel) at(q *Quota, t int64) (e, start, end, count int64) {
	e = t
	if !m.fresh {
		first, _ := q.Window(m.last)
		e = max(t, first)
	}
	start, end = q.Window(e)
	if !m.fresh && start <= m.last && m.last < end {
		count = m.count
	}
	return e, start, end, count
}

func (m *quotaModel) answer(q *Quota, t, n int64) Answer {
	_, _, end, count := m.at(q, t)
	a := Answer{Limit: q.limit, Remaining: max(q.limit-count, 0), Allowed: n == 0 || count+n <= q.limit}
	if count > 0 {
		a.ResetAfter, a.LimitReset = end-t, end-t
	}
	switch {
	case n > q.limit:
		a.RetryAfter, a.Allowed = Never, false
	case !a.Allowed:
		a.RetryAfter = end - t
	}
	return a
}

func (m *quotaModel) take(q *Quota, t, n int64) (taken int64) {
	e, _, _, count := m.at(q, t)
	m.last, m.count, m.fresh = max(m.lastOr(t), t), min(count+n, maxUnits), false
	return e
}

func (m *quotaModel) lastOr(t int64) int64 {
	if m.fresh {
		return t
	}
	return m.last
}

// back takes n units off the count, if taken is in its window.
func (m *quotaModel) back(q *Quota, t, taken, n int64) {
	if _, start, end, count := m.at(q, t); count > 0 && start <= taken && taken < end {
		m.count = max(count-n, 0)
	}
}

// Any mixture of zones, first days and counts on one state answers as defined, in nanoseconds and in microseconds.
func TestQuotasOfManyZonesOnOneStateAnswerAsDefined(t *testing.T) {
	for seed := range randtest.Seeds(t, 60, 60) {
		random := rand.New(rand.NewPCG(seed, 42))
		unit := calendar.Unit(1 + random.IntN(5))
		second := []int64{1e9, 1e6}[seed%2]
		all := quotas(random, unit, second)
		m, s := &quotaModel{fresh: true}, all[0].Fresh()
		now := second * 1_000_000_000
		taken := now
		for op := range 400 {
			q := all[random.IntN(1+random.IntN(len(all)))]
			step := unit.Longest() * second / 10
			now += random.Int64N(step) - random.Int64N(step)/2
			if _, end := q.Window(now); random.IntN(4) == 0 {
				now = end - random.Int64N(2) // a boundary and the instant before it
			}
			n := random.Int64N(q.limit + 2)
			what := fmt.Sprintf("seed %d op %d of %d at %d", seed, op, n, now)
			parts := []Part{{Algorithm: q, State: s, Cost: n}}
			switch random.IntN(5) {
			case 0:
				parts[0].Cost, parts[0].Taken = -n, taken
				Undo(parts, now)
				m.back(q, now, taken, n)
			case 1:
				s = q.Give(s, now, n)
				_, start, _, _ := m.at(q, now)
				m.back(q, now, start, n)
				parts[0].State = s
			case 2:
				Record(parts, now)
				if n > 0 {
					taken = m.take(q, now, n)
				}
			default:
				want := m.answer(q, now, n)
				got := Take(parts, now)
				if want.Allowed && n > 0 {
					taken = m.take(q, now, n)
					if at := TakenAt(q, parts[0].State, now); at != taken {
						t.Fatalf("%s: taken at %d, want %d", what, at, taken)
					}
					want = Answer{Allowed: true, Changed: true, Limit: q.limit, Remaining: m.answer(q, now, 0).Remaining, ResetAfter: m.answer(q, now, 0).ResetAfter, LimitReset: m.answer(q, now, 0).ResetAfter}
				}
				if got != want {
					t.Fatalf("%s: %+v, want %+v", what, got, want)
				}
			}
			s = parts[0].State
			if got, want := Peek([]Part{{Algorithm: q, State: s, Cost: 1}}, now), m.answer(q, now, 1); got != want {
				t.Fatalf("%s: afterwards %+v, want %+v", what, got, want)
			}
		}
	}
}

// A state may be evicted as soon as it is idle: no limit of the unit then tells it from a fresh one.
func TestAnIdleQuotaCountsInNoZone(t *testing.T) {
	for seed := range randtest.Seeds(t, 300, 300) {
		random := rand.New(rand.NewPCG(seed, 7))
		unit := calendar.Unit(1 + random.IntN(5))
		all := quotas(random, unit, nanoSecond)
		at := random.Int64N(4e18)
		s := all[0].Take(all[0].Fresh(), at, 1)
		idle := at + all[0].Keep(s, at)
		for _, q := range all {
			if !Idle(q, s, idle) || Idle(q, s, idle-nanoSecond) {
				t.Fatalf("seed %d: the state of one zone is idle at another instant than that of another", seed)
			}
			if room := q.Room(s, idle); room != q.limit {
				t.Fatalf("seed %d: an idle state leaves room for %d of %d", seed, room, q.limit)
			}
		}
	}
}

func TestQuotasAtTheEndsOfTimeAreFinite(t *testing.T) {
	q := quotas(rand.New(rand.NewPCG(1, 1)), calendar.Month, nanoSecond)[1]
	for _, now := range []int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64} {
		s := q.Take(q.Fresh(), now, q.limit)
		if wait := q.Wait(s, now, 1); wait < 1 || q.Room(s, now) != 0 {
			t.Errorf("at %d: a full quota waits for %d and leaves room for %d", now, wait, q.Room(s, now))
		}
		for _, later := range []int64{math.MinInt64, 0, math.MaxInt64} {
			if wait := q.Wait(s, later, 1); wait < 0 {
				t.Errorf("at %d: full since %d, it waits for %d", later, now, wait)
			}
		}
	}
}

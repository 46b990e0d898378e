package obey

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir/httplimit/internal/announce"
	"github.com/weirflow/weir/internal/randtest"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// anything is an announcement with random values, many of them odd.
func anything(random *rand.Rand) announce.Announcement {
	a := announce.Announcement{RetryAfter: announce.Unknown}
	if random.IntN(8) == 0 {
		a.RetryAfter = time.Duration(random.Int64N(int64(time.Minute)))
	}
	for range random.IntN(4) {
		a.Quotas = append(a.Quotas, announce.Quota{
			Name: fmt.Sprint(random.IntN(40)), Unit: announce.Unit(random.IntN(6)), Limit: random.Int64N(20),
			Window: time.Duration(random.IntN(3)) * 5 * time.Second, Remaining: random.Int64N(8) - 1, Reset: time.Duration(random.IntN(12)-1) * time.Second,
			Again: time.Duration(max(random.IntN(16)-10, 0)) * time.Second,
		})
	}
	return a
}

// someTokens are few, so that some announced remainders hold them, or as many as possible.
func someTokens(random *rand.Rand) Tokens {
	if random.IntN(20) == 0 {
		return NewTokens(1<<62, 1<<62, -1)
	}
	return NewTokens(random.Int64N(8), random.Int64N(4), random.Int64N(4))
}

// Whatever a server says, a request waits for a time or for an answer that is to come, and the state stays small.
func TestEachWaitEndsWithATimeOrAnAnswer(t *testing.T) {
	c := &Config{Spread: func(d time.Duration) time.Duration { return d / 2 }}
	for seed := range randtest.Seeds(t, 200, 200) {
		random := rand.New(rand.NewPCG(seed, 0))
		s, now := State{}, start
		var flying, open []Ticket
		sent := 0
		for range 400 {
			now = now.Add(time.Duration(random.Int64N(int64(time.Second))))
			need := Need{Gap: time.Second / 10, Counted: random.IntN(2) == 0, Tokens: someTokens(random)}
			v := s.Wait(now, need)
			switch {
			case v.Wait == Never && len(flying) == 0 && len(open) == 0:
				t.Fatalf("seed %d: a request waits for an answer (%s %s), and none is to come: %+v", seed, v.Reason, v.Name, s)
			case v.Wait < 0 || v.Wait > 2*time.Minute && v.Wait != Never:
				t.Fatalf("seed %d: a request waits for %v (%s)", seed, v.Wait, v.Reason)
			case v.Wait == 0 && random.IntN(3) > 0:
				flying = append(flying, s.Start(now, need))
				sent++
			case len(flying) > 0:
				i := random.IntN(len(flying))
				s.Answer(c, &flying[i], now, Kind(random.IntN(4)), anything(random))
				open = append(open, flying[i])
				flying[i] = flying[len(flying)-1]
				flying = flying[:len(flying)-1]
			case len(open) > 0:
				used := someTokens(random)
				s.End(open[0], []*Tokens{nil, &used}[random.IntN(2)])
				open = open[1:]
			default:
				now = now.Add(v.Wait)
			}
			if s.Idle(now) && (len(flying) > 0 || len(open) > 0 || s.Wait(now, Need{}).Wait > 0) {
				t.Fatalf("seed %d: a state is idle with %d requests in flight, %d open, and a wait of %+v", seed, len(flying), len(open), s.Wait(now, Need{}))
			}
		}
		if len(s.quotas) > maxQuotas || len(s.log.entries) > maxEntries || sent < 20 {
			t.Errorf("seed %d: %d quotas, %d entries after %d requests", seed, len(s.quotas), len(s.log.entries), sent)
		}
	}
}

// The answer that used the last unit says when the next one comes back. That instant stands, whether the answer to another
// request that was in flight comes before or after it, until a request was sent that knew of it.
func TestTheInstantOfTheLastUnitStands(t *testing.T) {
	left := func(n int64, again time.Duration) announce.Announcement {
		return announce.Announcement{RetryAfter: announce.Unknown, Quotas: []announce.Quota{
			{Name: "q", Limit: 10, Window: time.Second, Remaining: n, Reset: time.Second, Again: again},
		}}
	}
	for _, lastFirst := range []bool{false, true} {
		c, s := &Config{Spread: func(time.Duration) time.Duration { return 0 }}, State{}
		opening := s.Start(start, Need{})
		s.Answer(c, &opening, start, Admitted, left(2, 0))
		last, other := s.Start(start, Need{}), s.Start(start, Need{}) // the server counts the second one first
		if lastFirst {
			s.Answer(c, &last, start, Admitted, left(0, 20*time.Millisecond))
		}
		s.Answer(c, &other, start, Admitted, left(1, 0))
		if !lastFirst {
			s.Answer(c, &last, start, Admitted, left(0, 20*time.Millisecond))
		}
		if wait := s.Wait(start, Need{}).Wait; wait != 20*time.Millisecond {
			t.Errorf("the last unit's answer first: %t: the next request waits %v, want the 20 ms that it named", lastFirst, wait)
		}
		now := start.Add(20 * time.Millisecond)
		next := s.Start(now, Need{})
		s.Answer(c, &next, now, Admitted, left(4, 0))
		if wait := s.Wait(now, Need{}).Wait; wait != 0 {
			t.Errorf("after an answer with 4 units left a request waits %v", wait)
		}
	}
}

// A full log counts each request for at least a window.
func TestAFullLogForgetsNoRequestTooEarly(t *testing.T) {
	var l sendLog
	var at []time.Time
	now, window := start, time.Minute
	random := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		now = now.Add(time.Duration(random.IntN(20)) * time.Millisecond)
		l.add(now, window)
		at = append(at, now)
		for at[0].Before(now.Add(-window)) || at[0].Equal(now.Add(-window)) {
			at = at[1:]
		}
		if got := l.since(now.Add(-window)); got < int64(len(at)) || len(l.entries) > maxEntries {
			t.Fatalf("the log has %d requests of the window in %d entries, want at least %d in %d", got, len(l.entries), len(at), maxEntries)
		}
	}
	if wait := l.leaves(now, window, 1); wait <= 0 || wait > window {
		t.Errorf("the first request leaves in %v, want within %v", wait, window)
	}
	if wait := l.leaves(now, window, 1<<40); wait != Never {
		t.Errorf("more requests than there are leave in %v, want never", wait)
	}
}

package recipes

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

// An old program counts with INCR and EXPIRE, in seconds, under PREFIX:RESOURCE:SUBJECT:START.
func TestAFixedWindowSharesTheKeysOfAnOldProgram(t *testing.T) {
	server := redistest.Start(t)
	clock := newClock()
	r := FixedWindow{Client: connect(t, server.Addr), Window: 10 * time.Second, Name: Plain, Now: clock.now}
	for i := range int64(6) {
		clock.advance(3 * time.Second) // two windows end meanwhile
		seconds := clock.at.Unix()
		name := fmt.Sprintf("shop:login:alice:%d", seconds/10*10)
		before, _ := strconv.ParseInt(fmt.Sprint(orZero(server.Do("GET", name))), 10, 64)
		if got := server.Do("INCR", name); got != before+1 {
			t.Fatalf("the old program counts %v, want %d", got, before+1)
		}
		server.Do("EXPIRE", name, "10")
		if used := record(t, r, alice, 1); used != before+2 {
			t.Errorf("step %d: Record = %d, want %d with the other program's", i, used, before+2)
		}
		if used := fetch(t, r, alice); used != before+2 {
			t.Errorf("step %d: Fetch = %d, want %d", i, used, before+2)
		}
		if got := fmt.Sprint(server.Do("GET", name)); got != fmt.Sprint(before+2) {
			t.Errorf("step %d: the old program reads %s, want %d", i, got, before+2)
		}
	}
}

func orZero(reply any) any {
	if reply == nil {
		return 0
	}
	return reply
}

// The old program of the two windows reads the counts of both, weighs in milliseconds and rounds to the nearest unit.
func TestTwoWindowsShareTheKeysAndTheCountOfAnOldProgram(t *testing.T) {
	server := redistest.Start(t)
	clock := newClock()
	r := TwoWindows{Client: connect(t, server.Addr), Window: 10 * time.Second, Rounding: RoundNearest, Name: Plain, Now: clock.now}
	server.Do("SET", fmt.Sprintf("shop:login:alice:%d", clock.at.Unix()), "7")
	clock.advance(12500 * time.Millisecond)
	name := fmt.Sprintf("shop:login:alice:%d", clock.at.Unix()/10*10)
	if got := server.Do("INCR", name); got != int64(1) {
		t.Fatalf("the old program counts %v, want 1", got)
	}
	if used := record(t, r, alice, 1); used != 2+5 { // 7 × 0.75 = 5.25
		t.Errorf("Record = %d, want 7", used)
	}
	if used := r.Count(2, 7, clock.at); used != 7 {
		t.Errorf("Count(2, 7) = %d, want 7", used)
	}
	if left, _ := server.Do("PTTL", name).(int64); left < 10_000 || left > 20_000 {
		t.Errorf("the key ends in %d ms, want up to 20,000, so that the next window can read it", left)
	}
}

// Floats put some halves a little below. Everywhere else the exact count is that of the old program.
func TestTheNearestCountIsThatOfFloats(t *testing.T) {
	const window = 10 * time.Second
	r := TwoWindows{Window: window, Rounding: RoundNearest}
	start, differ := newClock().at, 0
	for before := int64(0); before <= 200; before++ {
		for ms := int64(0); ms < 10_000; ms += 7 {
			at := start.Add(time.Duration(ms) * time.Millisecond)
			floats := int64(math.Round(float64(before) * (float64(10_000-ms) / 10_000)))
			if exact := r.Count(0, before, at); exact != floats {
				differ++
				if before*(10_000-ms)%10_000 != 5_000 || exact != floats+1 {
					t.Fatalf("Count(0, %d) %d ms into a window = %d, floats give %d, and it is no half", before, ms, exact, floats)
				}
			}
		}
	}
	if differ > 100 {
		t.Errorf("%d of 287,000 counts differ, want only halves that floats miss", differ)
	}
	t.Logf("%d halves differ", differ)
}

// An old program keeps a sorted set with scores in milliseconds, or in microseconds with the namespace before the subject.
func TestALogSharesTheKeyOfAnOldProgram(t *testing.T) {
	server := redistest.Start(t)
	client := connect(t, server.Addr)
	joined := func(key Key, _ time.Time) string { return key.Namespace + key.Subject }
	for unit, name := range map[time.Duration]Naming{time.Millisecond: Plain, time.Microsecond: joined} {
		clock := newClock()
		log := Log{Client: client, Window: 10 * time.Second, Unit: unit, Name: name, Now: clock.now}
		redisKey := name(alice, time.Time{})
		old := func() any { // records an attempt and counts
			score := clock.at.UnixNano() / int64(unit)
			server.Do("ZREMRANGEBYSCORE", redisKey, "0", fmt.Sprint(score-int64(10*time.Second/unit)))
			server.Do("ZADD", redisKey, fmt.Sprint(score), fmt.Sprint(score))
			server.Do("EXPIRE", redisKey, "10")
			return server.Do("ZCARD", redisKey)
		}
		for i := range int64(4) { // both record once, every 2 s
			if got := old(); got != 2*i+1 {
				t.Errorf("%v: the old program counts %v, want %d", unit, got, 2*i+1)
			}
			if used := record(t, log, alice, 1); used != 2*i+2 {
				t.Errorf("%v: Record = %d, want %d", unit, used, 2*i+2)
			}
			log.Weigh = true
			if used := fetch(t, log, alice); used != 2*i+2 {
				t.Errorf("%v: Fetch that weighs = %d, want %d: entries of others cost 1", unit, used, 2*i+2)
			}
			log.Weigh = false
			clock.advance(2 * time.Second)
		}
		clock.advance(2 * time.Second) // the first two have left
		if got := old(); got != int64(7) {
			t.Errorf("%v: after 10 s the old program counts %v, want 7", unit, got)
		}
		server.Do("DEL", redisKey)
	}
}

func TestPlainNamesTellWindowsApart(t *testing.T) {
	key := Key{"shop", "login", "alice"}
	for want, start := range map[string]time.Time{
		"shop:login:alice":              {},
		"shop:login:alice:1800000000":   time.Unix(1_800_000_000, 0),
		"shop:login:alice:1800000000.5": time.Unix(1_800_000_000, 500_000_000),
	} {
		if got := Plain(key, start); got != want {
			t.Errorf("Plain at %v = %q, want %q", start, got, want)
		}
	}
}

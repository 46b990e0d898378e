package weir_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// One engine decides single requests on the fast path. Another decides the same requests beside a second one, on the
// slow path. The states are words, cells, and both in turn.
func TestTheFastPathDecidesLikeTheSlowPath(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -seed %d", seed)
	var windows []weir.Limit // too many for the fast path
	for hours := range 4 {
		windows = append(windows, weir.FixedWindow{Rate: weir.Per(9, time.Duration(24+hours)*time.Hour)})
	}
	for name, limits := range map[string][]weir.Limit{
		"words":      {weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 5}},
		"to and fro": {weir.TokenBucket{Rate: weir.PerSecond(11), Burst: 5}, weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 7}},
		"counts":     {weir.SlidingWindow{Rate: weir.Per(1<<29, time.Second)}, weir.SlidingWindow{Rate: weir.PerSecond(5)}},
		"logs":       {weir.SlidingLog{Rate: weir.PerSecond(5), Gap: 10 * time.Millisecond}, weir.SlidingLog{Rate: weir.PerSecond(3)}},
		"gates":      {weir.RateGate{Rate: weir.PerSecond(5)}},
		"cycles":     {weir.Cycle{Rate: weir.PerSecond(5)}, weir.Cycle{Rate: weir.PerSecond(9)}},
		"leases":     {weir.Concurrency{Slots: 5, Lease: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			now := still()
			options := weir.MemoryOptions{Clock: func() int64 { return now }, MaxKeys: 2000}
			short := weir.NewMemory(options)
			long, err := weir.LoadMemory(bytes.NewReader(saved(t, short)), options) // of the same hash
			if err != nil {
				t.Fatal(err)
			}
			other := mustRule(t, "other", windows...).For("nothing of it", 0)
			for op := range 30_000 {
				now += random.Int64N(int64(400 * time.Microsecond))
				rule := mustRule(t, "r", limits[random.IntN(len(limits))])
				q := rule.For(fmt.Sprint(random.IntN(1+random.IntN(3000))), random.Int64N(4))
				if name == "counts" && random.IntN(3) == 0 {
					q.Cost <<= 23
				}
				lease := random.Uint64N(3)
				got, err := leased(t, short, weir.OpTake, lease, q)
				if err != nil {
					t.Fatal(err)
				}
				want, err := leased(t, long, weir.OpTake, lease, q, other)
				if err != nil || got.Allowed != want.Allowed || got.RetryAfter != want.RetryAfter {
					t.Fatalf("op %d: %+v: got %+v, want %+v and %v", op, q, got, want, err)
				}
				if got, want := answer(short, "peek", q), answer(long, "peek", q); got != want {
					t.Fatalf("op %d: after %+v: got %s, want %s", op, q, got, want)
				}
			}
			// Entries become wider at other moments on either way, and then lose idle keys.
			const idle = 30
			if s, l := short.Stats(), long.Stats(); max(s.Keys+len(windows)-l.Keys, l.Keys-s.Keys-len(windows)) > idle || s.Overflow != l.Overflow {
				t.Errorf("the short way leaves %+v, the long one %+v", s, l)
			}
		})
	}
}

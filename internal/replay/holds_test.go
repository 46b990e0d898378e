package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/front"
)

// costed reads events of key, second and cost.
func costed(t *testing.T, events ...[3]int64) *Traffic {
	t.Helper()
	key, err := ParseKey("k")
	if err != nil {
		t.Fatal(err)
	}
	traffic := NewTraffic(nil, key)
	traffic.CostFrom("c")
	var log strings.Builder
	for _, e := range events {
		fmt.Fprintf(&log, "{\"time\":%d,\"k\":\"%d\",\"c\":%d}\n", 1_800_000_000+e[1], e[0], e[2])
	}
	if err := traffic.ReadLog("log", strings.NewReader(log.String())); err != nil {
		t.Fatal(err)
	}
	return traffic
}

func holds(t *testing.T, traffic *Traffic, limit string, o HoldOptions) []HoldReport {
	t.Helper()
	c, err := ParseCandidate(limit)
	if err != nil {
		t.Fatal(err)
	}
	reports, err := traffic.Holds(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return reports
}

// Five pieces of work of 40 units in a window of 100, which all run at a time.
func TestWhatIsHeldDecidesWhatIsRefusedAndWhatIsUsedBeyondTheLimit(t *testing.T) {
	const limit = "fixed window 100/h"
	traffic := costed(t, [3]int64{1, 0, 40}, [3]int64{1, 1, 40}, [3]int64{1, 2, 40}, [3]int64{1, 3, 40}, [3]int64{1, 4, 40})
	for took, want := range map[time.Duration][]HoldReport{
		0: {
			{limit, "none", 3, 2, 0, 120, 20}, // the third begins with 20 left
			{limit, "fixed 50", 2, 3, 0, 80, 0},
			{limit, "p90", 2, 3, 0, 80, 0},
		},
		time.Minute: {
			{limit, "none", 5, 0, 0, 200, 100}, // all begin before the first has told its cost
			{limit, "fixed 50", 2, 3, 0, 80, 0},
			{limit, "p90", 2, 3, 0, 80, 0},
		},
	} {
		got := holds(t, traffic, limit, HoldOptions{Estimate: front.EstimateOptions{Percent: 90, Max: 50}, Took: took})
		if !slices.Equal(got, want) {
			t.Errorf("took %v:\ngot  %+v\nwant %+v", took, got, want)
		}
	}
	if got := holds(t, traffic, limit, HoldOptions{})[1]; got != (HoldReport{limit, "fixed 100", 1, 4, 4, 40, 0}) {
		t.Errorf("the whole capacity is held: got %+v", got)
	}
}

// model replays one key in a fixed window of 100 an hour, with figures kept by hand.
func model(events [][3]int64, took int64, held func(last []int64) int64) (r HoldReport) {
	used := map[int64]int64{} // by the hour
	var last []int64
	type running struct{ began, ends, held, cost int64 }
	var all []running
	settle := func(until int64) {
		for ; len(all) > 0 && all[0].ends <= until; all = all[1:] {
			w := all[0]
			now := w.ends / 3600
			if more := w.cost - w.held; more > 0 {
				r.Beyond += max(0, more-max(0, 100-used[now]))
				used[now] += more
			} else if w.began/3600 == now {
				used[now] = max(0, used[now]+more)
			}
			r.Used += w.cost
			if w.cost > 0 {
				last = append(last, w.cost)
			}
		}
	}
	for _, e := range events {
		settle(e[1])
		hour, h := e[1]/3600, held(last)
		if used[hour]+max(h, 1) > 100 {
			if r.Refused++; e[2] <= max(0, 100-used[hour]) {
				r.Needless++
			}
			continue
		}
		r.Admitted++
		used[hour] += h
		all = append(all, running{e[1], e[1] + took, h, e[2]})
	}
	settle(1 << 40)
	return r
}

func TestHoldsAreThoseOfASlowModel(t *testing.T) {
	const limit, base = "fixed window 100/h", 1_800_000_000
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 3))
		took := random.Int64N(2000)
		var events, moved [][3]int64
		at := int64(0)
		for range 400 {
			at += 1 + random.Int64N(400)
			cost := random.Int64N(1 + random.Int64N(70))
			events, moved = append(events, [3]int64{1, at, cost}), append(moved, [3]int64{1, base + at, cost})
		}
		got := holds(t, costed(t, events...), limit, HoldOptions{Estimate: front.EstimateOptions{Percent: 80, Min: 2, Max: 60}, Took: time.Duration(took) * time.Second})
		for i, held := range []func([]int64) int64{
			func([]int64) int64 { return 0 },
			func([]int64) int64 { return 60 },
			func(last []int64) int64 {
				if len(last) < 20 {
					return 60
				}
				sorted := slices.Sorted(slices.Values(last[max(0, len(last)-100):]))
				return min(60, max(2, sorted[(len(sorted)*80+99)/100-1]))
			},
		} {
			want := model(moved, took, held)
			want.Limit, want.Holds = got[i].Limit, got[i].Holds
			if got[i] != want {
				t.Fatalf("seed %d:\ngot  %+v\nwant %+v", seed, got[i], want)
			}
		}
	}
}

func TestHoldsThatCannotBeTriedAreErrors(t *testing.T) {
	traffic := costed(t, [3]int64{1, 0, 40})
	for limit, want := range map[string]string{
		"100/h":                   "max is 101, above 100, the largest cost that the limit admits",
		"200/h and concurrency 5": "it has slots, whose units are not used up by work",
		"bursty 5/s over 1s":      "",
	} {
		c, err := ParseCandidate(limit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := traffic.Holds(c, HoldOptions{Estimate: front.EstimateOptions{Max: 101}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", limit, err, want)
		}
	}
}

package weir_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestALimitDescribesItself(t *testing.T) {
	for _, test := range []struct {
		text string
		want weir.Description // the fields that are numbers
	}{
		{"token bucket 10/s burst 20", weir.Description{Capacity: 20, Rate: weir.PerSecond(10), Burst: 20, Worst: 29, Window: 2 * time.Second, Reset: 2 * time.Second}},
		{"leaky bucket 5/s queue 10 nodelay 3", weir.Description{Capacity: 11, Rate: weir.PerSecond(5), Burst: 4, Worst: 8, Window: 2200 * time.Millisecond, Reset: 2200 * time.Millisecond, Delay: 1400 * time.Millisecond}},
		{"fixed window 100/m", weir.Description{Capacity: 100, Rate: weir.PerMinute(100), Burst: 100, Worst: 200, Window: time.Minute, Reset: time.Minute}},
		{"sliding window 100/m", weir.Description{Capacity: 100, Rate: weir.PerMinute(100), Burst: 100, Worst: 199, Window: time.Minute, Reset: 2 * time.Minute}},
		{"sliding log 5/10s gap 1s", weir.Description{Capacity: 5, Rate: weir.Per(5, 10*time.Second), Burst: 1, Worst: 5, Window: 10 * time.Second, Reset: 10 * time.Second, Gap: time.Second, Entries: 5}},
		{"rate gate 2/s", weir.Description{Capacity: 2, Rate: weir.PerSecond(2), Burst: 2, Worst: 2, Window: time.Second, Reset: time.Second, Entries: 6}},
		{"cycle 50/1s", weir.Description{Capacity: 50, Rate: weir.PerSecond(50), Burst: 50, Worst: 100, Window: time.Second, Reset: time.Second}},
		{"concurrency 20 lease 30s", weir.Description{Capacity: 20, Burst: 20, Lease: 30 * time.Second}},
		{"bursty 5/s over 4s", weir.Description{Capacity: weir.MaxCount, Rate: weir.PerSecond(5), Burst: 21, Worst: 25}},
		{"warm up 5/s over 4s", weir.Description{Capacity: weir.MaxCount, Rate: weir.PerSecond(5), Burst: 1, Worst: 5}},
		{"nginx limit_req 5/s burst 10 nodelay", weir.Description{Capacity: 11, Rate: weir.PerSecond(5), Burst: 11, Worst: 16, Window: 2200 * time.Millisecond, Reset: 2200 * time.Millisecond}},
		{"unlimited", weir.Description{Capacity: weir.MaxCount, Burst: weir.MaxCount}},
		{"deny all", weir.Description{}},
	} {
		limit, err := weir.ParseLimit(test.text)
		if err != nil {
			t.Fatal(err)
		}
		got := weir.Describe(limit)
		if got.RefillText == "" || got.Waiting == nil || strings.HasSuffix(got.RefillText, ".") || got.Note != "" && !strings.HasSuffix(got.Note, ".") {
			t.Errorf("%s: its words are %q and %q, and it waits as %v", test.text, got.RefillText, got.Note, got.Waiting)
		}
		numbers := weir.Description{Capacity: got.Capacity, Rate: got.Rate, Burst: got.Burst, Worst: got.Worst, Window: got.Window, Reset: got.Reset,
			Gap: got.Gap, Delay: got.Delay, Lease: got.Lease, Entries: got.Entries}
		if numbers != test.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.text, numbers, test.want)
		}
	}
}

// The capacity is what a fresh key admits, and after the reset a key is like a new one.
func TestADescriptionHoldsForALimiter(t *testing.T) {
	for _, text := range limitsOfAllKinds {
		limit, err := weir.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		d, now := weir.Describe(limit), int64(1e18)
		lim, err := weir.NewWith(limit, weir.Options{Clock: func() int64 { return now }})
		if err != nil {
			t.Fatal(err)
		}
		if got := lim.Peek(0).Limit; got != d.Capacity {
			t.Errorf("%s: the Limit of a decision is %d, and the description says %d", text, got, d.Capacity)
		}
		if d.Owes || d.Reset == 0 {
			continue
		}
		lim.Take(d.Capacity)
		if now += int64(d.Reset); lim.Peek(0).ResetAfter != 0 {
			t.Errorf("%s: not like new after %v", text, d.Reset)
		}
	}
	if got := weir.Describe(weir.TokenBucket{}); got.Waiting != nil || got.Capacity != 0 {
		t.Errorf("an invalid limit is described as %+v", got)
	}
}

// An equal share refills at the exact n-th part of the rate, or at one unit a period where that part would be out of bounds. It
// is never below the share of whole counts that the layers had before, and n of them hold no more than the limit.
func TestEqualSharesRefillAsTheLimitDoes(t *testing.T) {
	for _, text := range append([]string{"token bucket 10/s burst 3", "leaky bucket 10/s queue 4 nodelay 4", "1/366d", "cycle 7/1s origin 3ms", "sliding log 5/10s gap 9s", "sliding window 3/h"}, limitsOfAllKinds...) {
		limit, err := weir.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		d := weir.Describe(limit)
		if d.Stateless != (d.Refill == weir.RefillStateless) {
			t.Errorf("%s: stateless is %t, and it refills by kind %d", text, d.Stateless, d.Refill)
		}
		for _, n := range []int{1, 2, 3, 7, 1000} {
			part := weir.Describe(weir.Kit.EqualShare(limit, n))
			if part.Waiting == nil {
				t.Fatalf("%s by %d: %v is invalid", text, n, weir.Kit.EqualShare(limit, n))
			}
			// Units of the limit and of n parts in the time of the part's period, as units times the limit's period.
			before := max(1, d.Rate.Count/int64(n))
			switch whole, all := product(d.Rate.Count, int64(part.Rate.Period)), product(part.Rate.Count, int64(d.Rate.Period), int64(n)); {
			case d.Rate.Count == 0 || d.Owes:
			case all.Cmp(whole) > 0 && part.Rate.Count > 1 && part.Rate.Period == d.Rate.Period:
				t.Errorf("%s by %d: each refills %v, together more than the limit", text, n, part.Rate)
			case d.Refill == weir.RefillRate && part.Rate.Period != d.Rate.Period && all.Cmp(whole) != 0:
				t.Errorf("%s by %d: each refills %v, not the part", text, n, part.Rate)
			case d.Refill != weir.RefillRate && part.Rate != (weir.Rate{Count: before, Period: d.Rate.Period}):
				t.Errorf("%s by %d: each refills %v, want %d in each period", text, n, part.Rate, before)
			}
			if most := max(d.Capacity, int64(n)); !d.Stateless && !d.Owes && part.Capacity*int64(n) > most {
				t.Errorf("%s by %d: each holds %d, together more than %d", text, n, part.Capacity, most)
			}
		}
	}
}

// product returns the product of factors.
func product(factors ...int64) *big.Int {
	p := big.NewInt(1)
	for _, n := range factors {
		p.Mul(p, big.NewInt(n))
	}
	return p
}

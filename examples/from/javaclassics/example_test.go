// Package javaclassics_test has the examples of docs/from/java-classics.md.
package javaclassics_test

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/simulate"
)

// The classic driver offers 10 requests at 1/s up to 1000 at 100/s to classes of 10 requests a second, and to the
// limit of Weir's below each of them. It prints how many are admitted each second.
func Example_driver() {
	limit := func(text string) simulate.Subject {
		parsed, err := weir.ParseLimit(text)
		if err != nil {
			panic(err)
		}
		subject, err := simulate.NewSubject(parsed)
		if err != nil {
			panic(err)
		}
		return subject
	}
	reports, err := simulate.ClassicDriver().Run(
		simulate.SubjectFunc("LeakyBucket", leakyBucket(10)),
		limit("rate gate 1/100ms"),
		simulate.SubjectFunc("TokenBucket, thread", tokenBucket(10, 10, time.Second)),
		limit("cycle 10/s from first use"),
		simulate.SubjectFunc("TokenBucket, timer of 64/s", tokenBucket(10, 1, 7*time.Second/64)),
		simulate.SubjectFunc("TokenBucketLazyRefill", tokenBucketLazyRefill(10)),
		limit("token bucket 10/s burst 10"),
		simulate.SubjectFunc("FixedWindowCounter", fixedWindowCounter(10)),
		limit("fixed window 10/s"),
		simulate.SubjectFunc("SlidingWindowLog", slidingWindowLog(10)),
		limit("sliding log 10/s count denied"),
		limit("sliding log 10/s"),
		simulate.SubjectFunc("SlidingWindow", slidingWindow(10)),
		limit("sliding window 10/s"),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, r := range reports {
		if i%8 == 0 {
			fmt.Printf("\n%-30s", r.Algorithm)
		}
		if r.Ended {
			fmt.Printf("%7.2f", r.Rate)
		} else {
			fmt.Printf("%7s", "never")
		}
	}
	// Output:
	// LeakyBucket                      1.00   2.00   5.00  10.00  10.05  10.04  10.02  10.01
	// rate gate 1/100ms                1.00   2.00   5.00  10.00  10.05  10.04  10.02  10.01
	// TokenBucket, thread              1.00   2.00   5.00  10.00  10.53  10.42  10.20  10.10
	// cycle 10/s from first use        1.00   2.00   5.00  10.00  10.53  10.42  10.20  10.10
	// TokenBucket, timer of 64/s       1.00   2.00   5.00  10.00   9.62   9.52   9.33   9.23
	// TokenBucketLazyRefill            1.00   2.00   5.00  10.00  10.53  10.38  10.20  10.10
	// token bucket 10/s burst 10       1.00   2.00   5.00  10.00  10.53  10.42  10.20  10.10
	// FixedWindowCounter               1.00   2.00   5.00  10.00  10.53  10.42  10.20  10.10
	// fixed window 10/s                1.00   2.00   5.00  10.00  10.53  10.42  10.20  10.10
	// SlidingWindowLog                 1.00   2.00   5.00  10.00  never  never  never  never
	// sliding log 10/s count denied    1.00   2.00   5.00  10.00  never  never  never  never
	// sliding log 10/s                 1.00   2.00   5.00  10.00  10.28  10.26  10.17  10.09
	// SlidingWindow                    1.00   2.00   5.00  never  never  never  never  never
	// sliding window 10/s              1.00   2.00   5.00   9.18   9.09   9.07   9.04   9.02
}

// The example of the texts about fixed windows, with 2 requests a minute: four go within five seconds.
func Example_boundary() {
	for _, text := range []string{"fixed window 2/m", "sliding log 2/m"} {
		limit, err := weir.ParseLimit(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		lim, err := weir.New(limit)
		if err != nil {
			fmt.Println(err)
			return
		}
		midnight := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		fmt.Print(text, ":")
		for _, second := range []int{58, 59, 61, 62} {
			fmt.Print(" ", lim.AllowAt(midnight.Add(time.Duration(second)*time.Second), 1))
		}
		fmt.Println()
	}
	// Output:
	// fixed window 2/m: true true true true
	// sliding log 2/m: true true false false
}

// The sum of the sliding window: 9 requests in the first minute, 5 in the second, and one more at 01:15, when a
// quarter of the minute has passed.
func Example_weights() {
	midnight := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := midnight.Add(30 * time.Second)
	lim, err := weir.NewWith(weir.SlidingWindow{Rate: weir.PerMinute(10)}, weir.Options{Clock: func() int64 { return now.UnixNano() }})
	if err != nil {
		fmt.Println(err)
		return
	}
	lim.Take(9)
	now = midnight.Add(70 * time.Second)
	lim.Record(5)
	d := lim.TakeAt(midnight.Add(75*time.Second), 1)
	fmt.Println(d.Allowed, "for", d.RetryAfter)
	// Output:
	// false for 18.333333334s
}

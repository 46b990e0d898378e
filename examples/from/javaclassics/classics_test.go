package javaclassics_test

import "time"

// The classic classes as functions for simulate.SubjectFunc. Each decides as its class does, faults included, with
// max requests a second.

// limiter begins with a fresh state.
type limiter func(start time.Time) func(now time.Time) bool

// leakyBucket keeps requests 1000/max whole milliseconds apart.
func leakyBucket(most int64) limiter {
	return func(start time.Time) func(time.Time) bool {
		next := start
		return func(now time.Time) bool {
			if now.Before(next) {
				return false
			}
			next = now.Add(time.Duration(1000/most) * time.Millisecond)
			return true
		}
	}
}

// tokenBucket gets some tokens at regular times: all of them each second from a thread, or one from a timer.
func tokenBucket(most, some int64, every time.Duration) limiter {
	return func(start time.Time) func(time.Time) bool {
		tokens, next := most, start.Add(every)
		return func(now time.Time) bool {
			for ; !now.Before(next); next = next.Add(every) {
				tokens = min(tokens+some, most)
			}
			return take(&tokens)
		}
	}
}

// tokenBucketLazyRefill adds whole tokens when it is asked, and drops the fraction of a token.
func tokenBucketLazyRefill(most int64) limiter {
	return func(start time.Time) func(time.Time) bool {
		tokens, last := most, start
		return func(now time.Time) bool {
			if gained := int64(now.Sub(last).Seconds() * float64(most)); gained > 0 {
				tokens, last = min(tokens+gained, most), now
			}
			return take(&tokens)
		}
	}
}

func take(tokens *int64) bool {
	if *tokens == 0 {
		return false
	}
	*tokens--
	return true
}

// fixedWindowCounter counts every attempt in its second.
func fixedWindowCounter(most int64) limiter {
	return func(time.Time) func(time.Time) bool {
		windows := map[int64]int64{}
		return func(now time.Time) bool {
			windows[now.Unix()]++
			return windows[now.Unix()] <= most
		}
	}
}

// slidingWindowLog writes every attempt down before it counts.
func slidingWindowLog(most int64) limiter {
	return func(time.Time) func(time.Time) bool {
		var log []time.Time
		return func(now time.Time) bool {
			for len(log) > 0 && !log[0].After(now.Add(-time.Second)) {
				log = log[1:]
			}
			log = append(log, now)
			return int64(len(log)) <= most
		}
	}
}

// slidingWindow counts every attempt in its second, weighs the second before, and rounds the sum down.
func slidingWindow(most int64) limiter {
	return func(time.Time) func(time.Time) bool {
		windows := map[int64]int64{}
		return func(now time.Time) bool {
			second, into := now.Unix(), time.Duration(now.Nanosecond()).Seconds()
			windows[second]++
			return int64(float64(windows[second-1])*(1-into)+float64(windows[second])) <= most
		}
	}
}

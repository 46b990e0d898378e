// Package rediscell_test has the example of docs/from/redis-cell.md.
package rediscell_test

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// CL.THROTTLE user123 15 30 60: 30 tokens in 60 seconds, and 16 at once. Each line is the five integers of the reply.
func Example_throttle() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.Per(30, time.Minute), Burst: 15 + 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	reply(lim.TakeAt(now, 1))
	reply(lim.TakeAt(now, 15))
	reply(lim.TakeAt(now, 1))
	reply(lim.TakeAt(now, 17)) // more than fits at any time
	reply(lim.TakeAt(now.Add(3*time.Second), 1))
	// Output:
	// 0 16 15 -1 2
	// 0 16 0 -1 32
	// 1 16 0 2 32
	// 1 16 0 -1 32
	// 0 16 0 -1 31
}

func reply(d weir.Decision) {
	limited, retry := 0, -1
	if !d.Allowed {
		limited = 1
		if d.RetryAfter != weir.Never {
			retry = seconds(d.RetryAfter)
		}
	}
	fmt.Println(limited, d.Limit, d.Remaining, retry, seconds(d.ResetAfter))
}

// seconds rounds up, so that a client never comes back too early.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

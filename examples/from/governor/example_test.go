// Package governor is the code of docs/from/governor.md: what users of Rust's governor write with Weir, with the numbers of its
// documentation.
package governor

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Quota::per_second(50) admits fifty at once, and then one every 20 ms.
func Example_direct() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(50), Burst: 50})
	if err != nil {
		fmt.Println(err)
		return
	}
	admitted := 0
	for lim.AllowAt(began, 1) {
		admitted++
	}
	fmt.Println(admitted, "at once, the next after", lim.TakeAt(began, 1).RetryAfter)
	fmt.Println(lim.AllowAt(began.Add(20*time.Millisecond-1), 1), lim.AllowAt(began.Add(20*time.Millisecond), 1))
	// Output:
	// 50 at once, the next after 20ms
	// false true
}

// A batch is admitted whole or not at all. One that can never fit is told apart from one that must wait.
func Example_batch() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(50), Burst: 50})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("30:", lim.TakeAt(began, 30).Allowed)
	fmt.Println("30:", lim.TakeAt(began, 30).RetryAfter)
	fmt.Println("51:", lim.TakeAt(began, 51).RetryAfter == weir.Never)
	// Output:
	// 30: true
	// 30: 200ms
	// 51: true
}

// Keys with a limit of their own each. Idle keys are evicted.
func Example_keyed() {
	quotas := map[string]int64{"free": 5, "pro": 100}
	keyed, err := weir.NewKeyedFunc(func(plan string) weir.Limit {
		return weir.TokenBucket{Rate: weir.PerMinute(quotas[plan]), Burst: quotas[plan]}
	}, weir.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, plan := range []string{"free", "pro"} {
		d := keyed.TakeAt(began, plan, 5)
		fmt.Println(plan, d.Allowed, "remaining", d.Remaining)
	}
	// Output:
	// free true remaining 0
	// pro true remaining 95
}

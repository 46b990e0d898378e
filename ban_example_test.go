package weir_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

func loginRule() (*weir.Rule, error) {
	return weir.NewRule("login",
		weir.TokenBucket{Rate: weir.PerMinute(5)},
		weir.Ban{After: 5, Within: 10 * time.Minute, For: time.Minute, UpTo: 24 * time.Hour})
}

// A client that keeps hammering is out for a minute, then for two, then for four, up to a day.
func ExampleBan() {
	now := int64(0)
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	rule, err := loginRule()
	if err != nil {
		panic(err)
	}
	for range 400 { // a request every second
		d, err := engine.Take(context.Background(), rule.For("192.0.2.1", 1))
		if err != nil {
			panic(err)
		}
		if d.BanBegun {
			fmt.Printf("banned at %v for %v\n", time.Duration(now), d.RetryAfter)
		}
		now += int64(time.Second)
	}
	// Output:
	// banned at 9s for 1m0s
	// banned at 1m18s for 2m0s
	// banned at 3m27s for 4m0s
}

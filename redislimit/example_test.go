package redislimit_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit"
)

// A limit that holds across machines. If Redis cannot decide, the caller chooses what to do: an error never means
// that anything was admitted.
func Example() {
	engine, err := redislimit.Open("redis://127.0.0.1:6379", redislimit.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	login, err := weir.ParseRule("login=token bucket 5/m and fixed window 100/d")
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Millisecond)
	defer cancel()
	d, err := engine.Take(ctx, login.For("alice", 1))
	var failed *redislimit.Error
	switch {
	case errors.As(err, &failed):
		fmt.Println("Redis could not decide:", failed.Reason)
	case !d.Allowed:
		fmt.Println("come back in", d.RetryAfter)
	}
}

// A client of the caller's own, for options that a URL does not have.
func ExampleNew() {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:      []string{"10.0.0.1:6379", "10.0.0.2:6379"},
		ConnWriteTimeout: time.Second,
		DisableCache:     true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	engine, err := redislimit.New(client, redislimit.Options{Prefix: "shop", Batch: 256})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(engine.Stats())
}

// histogram stands for a histogram of a metrics library.
type histogram struct{}

func (h histogram) WithLabelValues(...string) histogram { return h }
func (histogram) Observe(float64)                       {}

// Metrics of each call.
func ExampleOptions_observe() {
	var seconds, shared histogram
	observe := func(ctx context.Context, call redislimit.ScriptCall) {
		outcome := cmp.Or(string(call.Outcome), "answered")
		seconds.WithLabelValues(outcome).Observe(call.Took.Seconds())
		shared.Observe(float64(call.Decisions))
	}
	engine, err := redislimit.Open("redis://127.0.0.1:6379", redislimit.Options{Observe: observe})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
}

// In a cluster, one call decides all keys of one colocation.
func ExampleEngine_Take_together() {
	engine, err := redislimit.Open("redis-cluster://10.0.0.1:7000,10.0.0.2:7000", redislimit.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	users, err1 := weir.NewRule("users", weir.TokenBucket{Rate: weir.PerSecond(10)})
	tenants, err2 := weir.NewRule("tenants", weir.SlidingWindow{Rate: weir.PerMinute(1000)})
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
		return
	}
	d, err := engine.Take(context.Background(),
		users.For("alice", 1).Colocate("acme"),
		tenants.For("acme", 1))
	fmt.Println(d.Allowed, d.Rule, err)
}

// A take whose reply was lost is asked again, without counting it twice.
func ExampleEngine_Do_again() {
	engine, err := redislimit.Open("redis://127.0.0.1:6379", redislimit.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	login, err := weir.NewRule("login", weir.TokenBucket{Rate: weir.PerMinute(5)})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, requestID := context.Background(), "7f1c"
	take := weir.Call{Op: weir.OpTake, Requests: []weir.Request{login.For("alice", 1)}, Identity: requestID}
	answer, err := engine.Do(ctx, take)
	for tries := 0; err != nil && tries < 3; tries++ {
		answer, err = engine.Do(ctx, take)
	}
	fmt.Println(answer.Decision.Allowed, err)
}

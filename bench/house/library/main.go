// Command library makes calls of Weir's packages, for command house:
//
//	library WALK CALLS REDIS_URL
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "library:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%d arguments, want a walk, a number of calls and a URL", len(args))
	}
	at, err := strconv.Atoi(args[0])
	if err != nil || at < 0 || at >= len(walks) {
		return fmt.Errorf("walk %q is not one of %d", args[0], len(walks))
	}
	calls, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	call, err := walks[at](args[2])
	for i := 0; i < calls && err == nil; i++ {
		err = call(context.Background())
	}
	return err
}

var errRefused = errors.New("refused")

// walks make one call each. The order is that of the names in command house.
var walks = []func(redis string) (func(context.Context) error, error){
	func(string) (func(context.Context) error, error) {
		limiter, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(1_000_000), Burst: 1_000_000})
		return func(context.Context) error {
			if !limiter.Allow() {
				return errRefused
			}
			return nil
		}, err
	},
	func(string) (func(context.Context) error, error) {
		return take(weir.NewMemory(weir.MemoryOptions{}), "login=token bucket 1000000/s", "tenant=fixed window 1000000/m")
	},
	func(redis string) (func(context.Context) error, error) {
		engine, err := redislimit.Open(redis, redislimit.Options{})
		if err != nil {
			return nil, err
		}
		return take(engine, "login=token bucket 1000000/s")
	},
	func(redis string) (func(context.Context) error, error) {
		return wait(redis, "login=token bucket 1000000/s")
	},
	// A caller waits for the one before it, though it comes when that one has settled.
	func(redis string) (func(context.Context) error, error) {
		return wait(redis, "vendor=token bucket 50/s burst 1")
	},
}

func take(engine weir.Engine, rules ...string) (func(context.Context) error, error) {
	var requests []weir.Request
	for _, text := range rules {
		rule, err := weir.ParseRule(text)
		if err != nil {
			return nil, err
		}
		requests = append(requests, rule.For("alice", 1))
	}
	return func(ctx context.Context) error {
		d, err := engine.Take(ctx, requests...)
		if err == nil && !d.Allowed {
			err = errRefused
		}
		return err
	}, nil
}

func wait(redis, text string) (func(context.Context) error, error) {
	rule, err := weir.ParseRule(text)
	if err != nil {
		return nil, err
	}
	engine, err := redislimit.Open(redis, redislimit.Options{})
	if err != nil {
		return nil, err
	}
	queue, err := pace.NewQueue(engine, pace.QueueOptions{})
	return func(ctx context.Context) error {
		_, err := queue.Wait(ctx, rule.For("acme", 1))
		return err
	}, err
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// spending is the processor time of decisions: where callers saturate the processors, it decides how many they get.
type spending struct {
	control   *redis.Client
	total     usage
	decisions int
	failed    error
}

// of runs a window and adds what it spends. A window after an error does not count.
func (s *spending) of(ctx context.Context, run func() reading) reading {
	before, err := usageNow(ctx, []*redis.Client{s.control})
	if err != nil {
		s.failed = err
		return run()
	}
	r := run()
	after, err := usageNow(ctx, []*redis.Client{s.control})
	if err != nil {
		s.failed = err
		return r
	}
	spent := after.since(before)
	s.total.client += spent.client
	s.total.redis += spent.redis
	s.decisions += r.decisions
	return r
}

func (s *spending) each() time.Duration {
	return (s.total.client + s.total.redis) / time.Duration(max(s.decisions, 1))
}

func (s *spending) String() string {
	n := float64(max(s.decisions, 1))
	return fmt.Sprintf("%.1f µs (callers %.1f, Redis %.1f)", us(s.total.client+s.total.redis)/n, us(s.total.client)/n, us(s.total.redis)/n)
}

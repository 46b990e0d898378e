package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirflow/weir/bench/internal/measure"
)

// measure runs the cell on empty servers with a new peer.
func (c cell) measure(ctx context.Context, addrs []string, window time.Duration) (measure.Figures, error) {
	var controls []*redis.Client
	for _, addr := range addrs {
		control, end := dialGoRedis(addr)
		defer end()
		if err := control.FlushAll(ctx).Err(); err != nil {
			return nil, err
		}
		controls = append(controls, control)
	}
	ask, endPeer, err := c.peer.make(strings.Join(addrs, ","))
	if err != nil {
		return nil, err
	}
	defer endPeer()
	// Open connections, load scripts and create keys before the clock starts.
	if _, err := c.load(ctx, ask, window/5); err != nil {
		return nil, err
	}
	var got tally
	spent, err := spend(ctx, controls, func() (err error) {
		got, err = c.load(ctx, ask, window)
		return err
	})
	if err != nil {
		return nil, err
	}
	return got.figures(c.refused, spent)
}

// tally counts the answers of one caller or of all.
type tally struct {
	admitted, decided, errors int
	failure                   error
	latencies                 []time.Duration
}

// load runs the callers of the cell for a time.
func (c cell) load(ctx context.Context, ask ask, duration time.Duration) (tally, error) {
	keys := keysOf(c.keys)
	tallies := make([]tally, c.callers)
	deadline := time.Now().Add(duration)
	var all sync.WaitGroup
	for i := range tallies {
		// Allocated beforehand, so that its cost is not the peer's.
		tallies[i].latencies = make([]time.Duration, 0, int(duration.Seconds()*600_000)/c.callers+100)
		all.Go(func() { tallies[i].call(ctx, c, ask, keys, i*len(keys)/c.callers, deadline) })
	}
	all.Wait()
	var sum tally
	for _, t := range tallies {
		sum.admitted += t.admitted
		sum.decided += t.decided
		sum.errors += t.errors
		sum.failure = errors.Join(sum.failure, t.failure)
		sum.latencies = append(sum.latencies, t.latencies...)
	}
	if sum.errors > 0 && !c.peer.flawed {
		return sum, fmt.Errorf("%d of %d calls failed: %w", sum.errors, len(sum.latencies), sum.failure)
	}
	return sum, ctx.Err()
}

// stride visits all keys of a power of ten before the first one repeats, without visiting neighbours in a row.
const stride = 7919

// call makes at least one call, so that every connection of a warm-up has its script.
func (t *tally) call(ctx context.Context, c cell, ask ask, keys []string, at int, deadline time.Time) {
	batch := make([]string, c.batch)
	for now := time.Now(); len(t.latencies) == 0 || now.Before(deadline) && ctx.Err() == nil; {
		for i := range batch {
			batch[i] = keys[at]
			at = (at + stride) % len(keys)
		}
		admitted, err := ask(ctx, batch)
		then := time.Now()
		t.latencies = append(t.latencies, then.Sub(now))
		now = then
		if err != nil {
			t.errors++
			if t.failure == nil {
				t.failure = err
			}
			continue
		}
		t.admitted += admitted
		t.decided += len(batch)
	}
}

// figures checks the workload and divides by the number of decisions.
func (t tally) figures(refused bool, spent usage) (measure.Figures, error) {
	want := t.decided
	if refused {
		want = 0
	}
	if t.decided == 0 || t.admitted != want {
		return nil, fmt.Errorf("admitted %d of %d decisions, want %d", t.admitted, t.decided, want)
	}
	if spent.exec <= 0 {
		return nil, errors.New("no script ran")
	}
	slices.Sort(t.latencies)
	calls, n := len(t.latencies), float64(t.decided)
	return measure.Figures{
		perSecond: n / spent.took.Seconds(), p50: us(t.latencies[calls/2]), p99: us(t.latencies[calls*99/100]),
		client: us(spent.client) / n, redisCPU: us(spent.redis) / n, inScript: us(spent.exec) / n,
		"errors %": 100 * float64(t.errors) / float64(calls), "others' CPU %": 100 * spent.others(),
	}, nil
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func keysOf(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%06d", i)
	}
	return keys
}

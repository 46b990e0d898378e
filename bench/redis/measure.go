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
)

// sample is the result of one repetition of a cell. Times are per decision, except p50 and p99, which are per call.
type sample struct {
	perSecond           float64
	p50, p99            float64 // us
	client, redis, exec float64 // us
	errors              float64 // share of the calls
	others              float64 // share of the processors used by other programs
}

// results are the samples of each cell, by repetition.
type results map[id][]sample

// servers are the servers of a run.
type servers struct {
	single  string
	cluster []string // its masters
}

// of returns the servers of a cell.
func (s servers) of(c cell) []string {
	if c.cluster {
		return s.cluster
	}
	return []string{s.single}
}

// measureAll measures every cell once in each repetition.
func measureAll(ctx context.Context, on servers, cells []cell, repetitions int, progress func(string)) (results, error) {
	all := results{}
	for r := range repetitions {
		progress(fmt.Sprintf("repetition %d of %d, %d cells", r+1, repetitions, len(cells)))
		for _, c := range cells {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			s, err := measureCell(ctx, on.of(c), c)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", c.id(), err)
			}
			all[c.id()] = append(all[c.id()], s)
		}
	}
	return all, nil
}

// measureCell runs one cell on empty servers with a new peer.
func measureCell(ctx context.Context, addrs []string, c cell) (sample, error) {
	var controls []*redis.Client
	for _, addr := range addrs {
		control, end := dialGoRedis(addr)
		defer end()
		if err := control.FlushAll(ctx).Err(); err != nil {
			return sample{}, err
		}
		controls = append(controls, control)
	}
	ask, endPeer, err := c.peer.make(strings.Join(addrs, ","))
	if err != nil {
		return sample{}, err
	}
	defer endPeer()
	// Open connections, load scripts and create keys before the clock starts.
	if _, err := load(ctx, c, ask, c.duration/5); err != nil {
		return sample{}, err
	}
	return timed(ctx, controls, c, ask)
}

func timed(ctx context.Context, controls []*redis.Client, c cell, ask ask) (sample, error) {
	before, err := usageNow(ctx, controls)
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	got, err := load(ctx, c, ask, c.duration)
	took := time.Since(began)
	if err != nil {
		return sample{}, err
	}
	after, err := usageNow(ctx, controls)
	if err != nil {
		return sample{}, err
	}
	return got.sample(c, took, after.since(before))
}

// tally counts the answers of one caller or of all.
type tally struct {
	admitted, decided, errors int
	failure                   error
	latencies                 []time.Duration
}

// load runs the callers of the cell for the duration.
func load(ctx context.Context, c cell, ask ask, duration time.Duration) (tally, error) {
	keys := keysOf(c.keys)
	tallies := make([]tally, c.callers)
	deadline := time.Now().Add(duration)
	var all sync.WaitGroup
	for i := range tallies {
		// Allocated beforehand, so that its cost is not the peer's.
		tallies[i].latencies = make([]time.Duration, 0, int(duration.Seconds()*600_000)/c.callers+100)
		all.Go(func() { caller(ctx, &tallies[i], c, ask, keys, i*len(keys)/c.callers, deadline) })
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
	if sum.errors > 0 && c.peer.flawed == "" {
		return sum, fmt.Errorf("%d of %d calls failed: %w", sum.errors, len(sum.latencies), sum.failure)
	}
	return sum, ctx.Err()
}

// stride visits all keys of a power of ten before the first one repeats, without visiting neighbours in a row.
const stride = 7919

// caller makes at least one call, so that every connection of a warm-up has its script.
func caller(ctx context.Context, t *tally, c cell, ask ask, keys []string, at int, deadline time.Time) {
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

// sample checks the workload and divides by the number of decisions.
func (t tally) sample(c cell, took time.Duration, spent usage) (sample, error) {
	want := t.decided
	if c.refused {
		want = 0
	}
	if t.decided == 0 || t.admitted != want {
		return sample{}, fmt.Errorf("admitted %d of %d decisions, want %d", t.admitted, t.decided, want)
	}
	if spent.exec <= 0 {
		return sample{}, errors.New("no script ran")
	}
	slices.Sort(t.latencies)
	calls, n := len(t.latencies), float64(t.decided)
	return sample{
		perSecond: n / took.Seconds(),
		p50:       us(t.latencies[calls/2]),
		p99:       us(t.latencies[calls*99/100]),
		client:    us(spent.client) / n,
		redis:     us(spent.redis) / n,
		exec:      us(spent.exec) / n,
		errors:    float64(t.errors) / float64(calls),
		others:    spent.others(took),
	}, nil
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/redislimit"
)

// A fleet is processes that ask for one key more often than its limit admits. Each has an engine of its own, as if it were a process,
// and callers that come at random.
const (
	fleetSize   = 30
	fleetRate   = 500  // of the limit
	fleetAsks   = 1000 // a second, of all processes
	fleetGroup  = "one key of 500/s, asked for 1000 times a second by 30 processes"
	callsEach   = "calls to Redis a decision"
	ofPossible  = "admitted of the possible"
	mostOfLeast = "admissions of the process with the most, for one of that with the least"
)

type fleet struct {
	line    string
	layered around
}

var fleets = []fleet{
	{"Redis", bare},
	{"Redis, Prefetch", prefetch},
}

func prefetch(e weir.Engine) (weir.Engine, func(), error) {
	prefetched, err := layer.Prefetch(e, layer.PrefetchOptions{})
	if err != nil {
		return nil, nil, err
	}
	return prefetched, prefetched.Close, nil
}

func fleetTargets() []measure.Target {
	name := func(f fleet) string { return measure.Row{Group: fleetGroup, Line: f.line}.Name() }
	ahead := name(fleets[1])
	return []measure.Target{
		{Name: "30 processes on one key: calls to Redis with Prefetch over without", Figure: callsEach, Format: "%.2f ×", Bound: 0.4, Cases: []measure.Case{{Row: ahead, Over: []string{name(fleets[0])}}}},
		{Name: "30 processes on one key: admitted of the possible", Figure: ofPossible, Format: "%.3f", Bound: 0.98, AtLeast: true, Cases: []measure.Case{{Row: ahead}}},
	}
}

// measure has the processes ask for some windows, after the burst is used up.
func (f fleet) measure(ctx context.Context, o *measure.Options) (measure.Figures, error) {
	control := redis.NewClient(&redis.Options{Addr: o.Place})
	defer func() { _ = control.Close() }()
	if err := control.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	limit, window := weir.TokenBucket{Rate: weir.PerSecond(fleetRate), Burst: fleetRate}, 5*o.Window
	var asks [fleetSize]ask
	for i := range asks {
		ask, end, err := redisBelow(limit, f.layered)(o.Place)
		if err != nil {
			return nil, err
		}
		defer end()
		asks[i] = ask
	}
	if err := useUp(ctx, o.Place, limit); err != nil {
		return nil, err
	}
	if _, err := fleetLoad(ctx, asks[:], o.Window); err != nil { // the layers learn how hot the key is
		return nil, err
	}
	before, err := scriptCalls(ctx, control)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	counts, err := fleetLoad(ctx, asks[:], window)
	if err != nil {
		return nil, err
	}
	possible := fleetRate * time.Since(began).Seconds()
	after, err := scriptCalls(ctx, control)
	if err != nil {
		return nil, err
	}
	return f.figures(counts, after-before, possible, window)
}

func (f fleet) figures(counts []fleetCount, calls, possible float64, window time.Duration) (measure.Figures, error) {
	asked, admitted := 0, 0
	var each []int
	for _, c := range counts {
		asked, admitted, each = asked+c.asked, admitted+c.admitted, append(each, c.admitted)
	}
	if want := fleetAsks * window.Seconds() * 0.8; float64(asked) < want {
		return nil, fmt.Errorf("%s: %d decisions, want %.0f at least", f.line, asked, want)
	}
	if most := possible + fleetRate; float64(admitted) > most { // what was taken ahead before, a tenth of the limit each at most
		return nil, fmt.Errorf("%s: %d admitted, want %.0f at most", f.line, admitted, most)
	}
	return measure.Figures{callsEach: calls / float64(asked), ofPossible: float64(admitted) / possible, mostOfLeast: float64(slices.Max(each)) / float64(max(slices.Min(each), 1))}, nil
}

// useUp takes the whole burst.
func useUp(ctx context.Context, addr string, limit weir.TokenBucket) error {
	rule, err := weir.NewRule("bench", limit)
	if err != nil {
		return err
	}
	engine, err := redislimit.Open("redis://"+addr, redislimit.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()
	d, err := engine.Take(ctx, rule.For("k", limit.Burst))
	if err == nil && !d.Allowed {
		err = fmt.Errorf("the burst of a new key is refused: %v", d)
	}
	return err
}

type fleetCount struct{ asked, admitted int }

// fleetLoad has each process ask at random instants for a time.
func fleetLoad(ctx context.Context, asks []ask, window time.Duration) (counts []fleetCount, err error) {
	counts = make([]fleetCount, len(asks))
	failed := make(chan error, len(asks))
	began := time.Now()
	var all sync.WaitGroup
	for i, ask := range asks {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			mean := float64(time.Second) * float64(len(asks)) / fleetAsks
			for at := time.Duration(0); ; {
				if at += time.Duration(random.ExpFloat64() * mean); at >= window {
					return
				}
				time.Sleep(time.Until(began.Add(at)))
				admitted, err := ask(ctx, "k")
				if err != nil {
					failed <- err
					return
				}
				if counts[i].asked++; admitted {
					counts[i].admitted++
				}
			}
		})
	}
	all.Wait()
	if len(failed) > 0 {
		return nil, <-failed
	}
	return counts, ctx.Err()
}

var scriptCall = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`)

// scriptCalls returns how often the script of decisions was called.
func scriptCalls(ctx context.Context, control *redis.Client) (float64, error) {
	text, err := control.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	found := scriptCall.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("INFO commandstats of Redis tells no calls of a script")
	}
	return strconv.ParseFloat(found[1], 64)
}

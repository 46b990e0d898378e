package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/measure"
)

const (
	lineWaiters = 10_000
	linePerSec  = 1_000_000 // release rate of the line
	latePerSec  = 1000

	released = "waiting callers released at 1e6/s"
	lateness = "lateness of turns at 1000/s on the real clock"
)

// waitingRows measure queued callers that are released, and the delay of turns after their instants.
func waitingRows(quick bool) []measure.Row {
	list := []measure.Row{{Group: released, Line: "weir", Measure: func(context.Context, *measure.Options) (measure.Figures, error) { return releaseLine() }}}
	turns := 3000
	if quick {
		turns = 100
	}
	for _, t := range lateTurns() {
		list = append(list, measure.Row{Group: lateness, Line: t.name, Once: true, Measure: func(context.Context, *measure.Options) (measure.Figures, error) {
			return t.measure(turns)
		}})
	}
	return list
}

// releaseLine queues callers at a limit that admits nothing, then raises the rate and times their release. Neighbours that
// ran out of order also depend on the scheduler.
func releaseLine() (measure.Figures, error) {
	l, err := weir.New(weir.TokenBucket{Rate: weir.PerDay(1), Burst: 1})
	if err != nil || !l.Allow() {
		return nil, fmt.Errorf("the first call was refused: %w", err)
	}
	var gone atomic.Int64
	order := make([]int64, lineWaiters)
	failures := make([]error, lineWaiters)
	var callers sync.WaitGroup
	for i := range lineWaiters {
		callers.Go(func() {
			failures[i] = l.Wait(context.Background())
			order[i] = gone.Add(1)
		})
		for l.Waiting() <= i { // so that the order of arrival is known
			runtime.Gosched()
		}
	}
	start := time.Now()
	if err := l.SetLimit(weir.TokenBucket{Rate: weir.PerSecond(linePerSec), Burst: 1}); err != nil {
		return nil, err
	}
	callers.Wait()
	f := measure.Figures{"callers/s": lineWaiters / time.Since(start).Seconds(), "out of order": 0}
	for i, err := range failures {
		if err != nil {
			return nil, fmt.Errorf("caller %d: %w", i, err)
		}
		if i > 0 && order[i] < order[i-1] {
			f["out of order"]++
		}
	}
	return f, nil
}

// lateTurn waits for the next of latePerSec turns a second.
type lateTurn struct {
	name   string
	strict bool // two turns never come closer than their interval
	make   func() (wait func() error, err error)
}

func lateTurns() []lateTurn {
	every := time.Second / latePerSec
	list := []lateTurn{
		{"time.Sleep alone", false, func() (func() error, error) {
			next := time.Now()
			return func() error {
				next = next.Add(every)
				time.Sleep(time.Until(next))
				return nil
			}, nil
		}},
		{"x_time_rate", false, func() (func() error, error) {
			l := rate.NewLimiter(latePerSec, 1)
			return func() error { return l.Wait(context.Background()) }, nil
		}},
		{"uber_noslack", false, func() (func() error, error) {
			l := uber.New(latePerSec, uber.WithoutSlack)
			return func() error { l.Take(); return nil }, nil
		}},
	}
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerSecond(latePerSec), Burst: 1},
		weir.LeakyBucket{Rate: weir.PerSecond(latePerSec), Queue: 1},
		weir.RateGate{Rate: weir.Per(1, every)},
	} {
		_, strict := limit.(weir.RateGate)
		list = append(list, lateTurn{"weir " + limit.String(), strict, func() (func() error, error) {
			l, err := weir.New(limit)
			return func() error { return l.Wait(context.Background()) }, err
		}})
	}
	return list
}

// measure takes turns one after another.
func (t lateTurn) measure(count int) (measure.Figures, error) {
	wait, err := t.make()
	if err != nil {
		return nil, err
	}
	at := make([]time.Duration, count+1)
	start := time.Now()
	for i := range at {
		if err := wait(); err != nil {
			return nil, err
		}
		at[i] = time.Since(start)
	}
	all := late(at, time.Second/latePerSec, t.strict)
	slices.Sort(all)
	return measure.Figures{"median ns": float64(all[count/2]), "p99 ns": float64(all[count*99/100]), "worst µs": float64(all[count-1]) / 1000}, nil
}

// late returns the lateness of each turn except the first. For a strict limit, a turn is due one interval after the
// turn before. Other limits keep to a grid while no turn is late by a whole interval; the grid is the one that fits
// the most punctual turn.
func late(at []time.Duration, every time.Duration, strict bool) []time.Duration {
	all := make([]time.Duration, 0, len(at))
	due, punctual := at[0], time.Duration(0)
	for i := 1; i < len(at); i++ {
		due = max(due+every, at[i-1])
		if strict {
			due = at[i-1] + every
		}
		all = append(all, at[i]-due)
		punctual = min(punctual, at[i]-due)
	}
	for i := range all {
		all[i] -= punctual
	}
	return all
}

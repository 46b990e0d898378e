package measure

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
	"github.com/weirflow/weir/bench/internal/peers"
)

// Waiting is the cost of waiting.
type Waiting struct {
	Allow, Wait Series  // ns of a call that does not block, by repetition
	Allocs      float64 // per Wait
	Lines       []Line  // by repetition
	Lateness    []Lateness
}

// Line is the release of queued callers.
type Line struct {
	Waiters    int
	PerSecond  float64
	Took       time.Duration // from the change of the rate to the last release
	OutOfOrder int           // pairs of neighbours that ran in reverse order
}

// Lateness is the delay of turns after their instants.
type Lateness struct {
	Name          string
	PerSecond     int
	Turns         int
	P50, P99, Max time.Duration
	Drift         float64 // excess over the planned time of all turns, as a share
}

const (
	lineWaiters = 10_000
	linePerSec  = 1_000_000 // release rate of the line
	latePerSec  = 1000
)

func (r *Results) waiting() error {
	w := &Waiting{}
	r.Config.Progress("waiting")
	for range r.Config.Repetitions {
		if err := w.uncontended(r.Config.Duration); err != nil {
			return err
		}
		line, err := releaseLine(lineWaiters, linePerSec)
		if err != nil {
			return err
		}
		w.Lines = append(w.Lines, line)
	}
	for _, turn := range turns() {
		lateness, err := lateness(turn, r.Config.LateTurns)
		if err != nil {
			return err
		}
		w.Lateness = append(w.Lateness, lateness)
	}
	r.Waiting = w
	return nil
}

// waits calls Wait of a weir.Limiter.
type waits struct{ l *weir.Limiter }

func (a waits) Take() (bool, error) {
	err := a.l.Wait(context.Background())
	return err == nil, err
}

// allows calls Allow of a weir.Limiter.
type allows struct{ l *weir.Limiter }

func (a allows) Take() (bool, error) { return a.l.Allow(), nil }

func (w *Waiting) uncontended(d time.Duration) error {
	l, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 1e9})
	if err != nil {
		return fmt.Errorf("measure: waiting: %w", err)
	}
	ask := func(peer peers.Single) (Sample, counts) {
		return parallel(1, after(d), func(_ int, stop func(int64) bool) counts { return askSingle(peer, stop) })
	}
	allow, asked := ask(allows{l})
	wait, waited := ask(waits{l})
	if asked.admitted != asked.ops || waited.admitted != waited.ops {
		return fmt.Errorf("measure: waiting: %d of %d calls of Allow and %d of %d of Wait were admitted, want all",
			asked.admitted, asked.ops, waited.admitted, waited.ops)
	}
	w.Allow, w.Wait, w.Allocs = append(w.Allow, allow.NsPerOp), append(w.Wait, wait.NsPerOp), wait.AllocsPerOp
	return nil
}

// releaseLine queues callers at a limit that admits nothing, then raises the rate and times their release.
func releaseLine(waiters int, perSecond int64) (Line, error) {
	runtime.GOMAXPROCS(runtime.NumCPU())
	l, err := weir.New(weir.TokenBucket{Rate: weir.PerDay(1), Burst: 1})
	if err != nil || !l.Allow() {
		return Line{}, fmt.Errorf("measure: line: the first call was refused: %w", err)
	}
	var released atomic.Int64
	order := make([]int64, waiters)
	failures := make([]error, waiters)
	var callers sync.WaitGroup
	for i := range waiters {
		callers.Go(func() {
			failures[i] = l.Wait(context.Background())
			order[i] = released.Add(1)
		})
		for l.Waiting() <= i { // so that the order of arrival is known
			runtime.Gosched()
		}
	}
	start := time.Now()
	if err := l.SetLimit(weir.TokenBucket{Rate: weir.PerSecond(perSecond), Burst: 1}); err != nil {
		return Line{}, fmt.Errorf("measure: line: %w", err)
	}
	callers.Wait()
	line := Line{Waiters: waiters, Took: time.Since(start)}
	line.PerSecond = float64(waiters) / line.Took.Seconds()
	for i, err := range failures {
		if err != nil {
			return Line{}, fmt.Errorf("measure: line: caller %d: %w", i, err)
		}
		if i > 0 && order[i] < order[i-1] {
			line.OutOfOrder++
		}
	}
	return line, nil
}

// turn waits for the next of latePerSec turns a second.
type turn struct {
	name   string
	strict bool // two turns never come closer than their interval
	wait   func() error
}

func turns() []turn {
	every := time.Second / latePerSec
	x := rate.NewLimiter(latePerSec, 1)
	noSlack := uber.New(latePerSec, uber.WithoutSlack)
	next := time.Now()
	list := []turn{
		{"time.Sleep alone", false, func() error {
			next = next.Add(every)
			time.Sleep(time.Until(next))
			return nil
		}},
		{"x_time_rate", false, func() error { return x.Wait(context.Background()) }},
		{"uber_noslack", false, func() error { noSlack.Take(); return nil }},
	}
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerSecond(latePerSec), Burst: 1},
		weir.LeakyBucket{Rate: weir.PerSecond(latePerSec), Queue: 1},
		weir.RateGate{Rate: weir.Per(1, every)},
	} {
		l, err := weir.New(limit)
		_, strict := limit.(weir.RateGate)
		list = append(list, turn{"weir " + limit.String(), strict, func() error {
			if err != nil {
				return err
			}
			return l.Wait(context.Background())
		}})
	}
	return list
}

// lateness takes turns one after another.
func lateness(t turn, count int) (Lateness, error) {
	at := make([]time.Duration, count+1)
	start := time.Now()
	for i := range at {
		if err := t.wait(); err != nil {
			return Lateness{}, fmt.Errorf("measure: lateness: %s: %w", t.name, err)
		}
		at[i] = time.Since(start)
	}
	every := time.Second / latePerSec
	late := late(at, every, t.strict)
	slices.Sort(late)
	planned := time.Duration(count) * every
	return Lateness{
		Name: t.name, PerSecond: latePerSec, Turns: count,
		P50: quantile(late, 0.5), P99: quantile(late, 0.99), Max: quantile(late, 1),
		Drift: float64(at[count]-at[0]-planned) / float64(planned),
	}, nil
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

package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/picture"
	"github.com/weirflow/weir/pace"
)

var waiting = &measure.Bench{
	Program: "bench/cliffs -waiting", Title: "Waiting callers", Report: "-", Reps: 1, Window: time.Second,
	About: "The least cost of a join with a leave, and of a grant, beside waiting callers.",
	Rows: func(*measure.Options) (list []measure.Row, err error) {
		for kind := range kinds {
			for _, n := range lineLengths {
				list = append(list, measure.Row{Group: kinds[kind].name, Line: fmt.Sprint(n, " waiting"), Ours: true,
					Measure: func(context.Context, *measure.Options) (measure.Figures, error) { return measureWaiting(kind, n) }})
			}
		}
		return list, nil
	},
	Columns: []measure.Column{{Figure: "join and leave ns", Format: "%.0f"}, {Figure: "grant ns", Format: "%.0f"}},
	After:   drawWaiting,
}

// A waiting window joins and leaves, or grants, this number of times.
const waitingCalls = 100

// lineLengths are the numbers of waiting callers.
var lineLengths = []int{10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000}

// lined is something that callers wait for.
type lined struct {
	wait    func(ctx context.Context, caller int) error
	waiting func() int
	grant   func() // lets waitingCalls callers go
}

// leaving is the context of a caller that joins a line and leaves it at once. Its deadline is far away, so that its turn
// has to be known.
type leaving struct {
	context.Context
	asked bool
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (l *leaving) Deadline() (time.Time, bool) { return time.Now().Add(1000 * time.Hour), true }
func (l *leaving) Done() <-chan struct{}       { return closed }

func (l *leaving) Err() error {
	if !l.asked {
		l.asked = true
		return nil
	}
	return context.Canceled
}

const hugeBurst = 1 << 30

// slowBucket gets a unit an hour.
func slowBucket() weir.Limit { return weir.TokenBucket{Rate: weir.Per(1, time.Hour), Burst: hugeBurst} }

func limiterLine(options weir.Options, turn func(caller int) weir.Turn) (lined, error) {
	lim, err := weir.NewWith(slowBucket(), options)
	if err != nil {
		return lined{}, err
	}
	lim.Record(hugeBurst)
	return lined{
		wait:    func(ctx context.Context, caller int) error { return lim.WaitTurn(ctx, turn(caller)) },
		waiting: lim.Waiting,
		grant:   func() { lim.Return(waitingCalls) },
	}, nil
}

// queueLine makes callers wait for a key of their own and one for all, or only for that one.
func queueLine(hosts int) (lined, error) {
	memory := weir.NewMemory(weir.MemoryOptions{})
	queue, err := pace.NewQueue(memory, pace.QueueOptions{Queue: 1 << 20})
	if err != nil {
		return lined{}, err
	}
	total, err := weir.NewRule("total", slowBucket())
	if err != nil {
		return lined{}, err
	}
	host, err := weir.NewRule("host", weir.TokenBucket{Rate: weir.PerSecond(1_000_000_000), Burst: hugeBurst})
	if err != nil {
		return lined{}, err
	}
	requests := func(caller int) []weir.Request {
		if hosts == 0 {
			return []weir.Request{total.For("all", 1)}
		}
		return []weir.Request{host.For(strconv.Itoa(caller%hosts), 1), total.For("all", 1)}
	}
	ctx := context.Background()
	var back []*pace.Acquired // each gives its units to the callers
	for range 2 * maxWindows {
		a, err := queue.Acquire(ctx, total.For("all", waitingCalls))
		if err != nil {
			return lined{}, err
		}
		back = append(back, a)
	}
	if _, err := memory.Record(ctx, total.For("all", hugeBurst-2*maxWindows*waitingCalls)); err != nil {
		return lined{}, err
	}
	return lined{
		wait: func(ctx context.Context, caller int) error {
			_, err := queue.Wait(ctx, requests(caller)...)
			return err
		},
		waiting: queue.Waiting,
		grant:   func() { _ = back[0].Cancel(ctx); back = back[1:] },
	}, nil
}

// maxWindows bounds the windows of one line.
const maxWindows = 40

// kinds are the kinds of lines.
var kinds = []struct {
	name string
	make func() (lined, error)
}{
	{"Limiter", func() (lined, error) {
		return limiterLine(weir.Options{Queue: 1 << 20}, func(int) weir.Turn { return weir.Turn{Cost: 1} })
	}},
	{"Limiter, Weights", func() (lined, error) {
		return limiterLine(weir.Options{Queue: 1 << 20, Weights: []int64{1, 3}}, func(caller int) weir.Turn { return weir.Turn{Cost: 1, Class: caller % 2} })
	}},
	{"Limiter, 100 flows", func() (lined, error) {
		return limiterLine(weir.Options{Queue: 1 << 20}, func(caller int) weir.Turn { return weir.Turn{Cost: 1, Flow: strconv.Itoa(caller % 100)} })
	}},
	{"Queue, one key", func() (lined, error) { return queueLine(0) }},
	{"Queue, 1000 hosts and a total", func() (lined, error) { return queueLine(1000) }},
}

// measureWaiting returns the ns of a join with a leave, and of a grant, beside n waiting callers.
func measureWaiting(kind, n int) (measure.Figures, error) {
	l, err := kinds[kind].make()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	var gone, sleeping atomic.Int64
	come := func(callers int) {
		target := l.waiting() + callers
		for i := range callers {
			sleeping.Add(1)
			go func() { _ = l.wait(ctx, i); gone.Add(1); sleeping.Add(-1) }()
		}
		for l.waiting() < target {
			runtime.Gosched()
		}
	}
	come(n)
	join, grant := 1e18, 1e18
	for range maxWindows {
		start := time.Now()
		for i := range waitingCalls {
			_ = l.wait(&leaving{Context: ctx}, i)
		}
		join = min(join, float64(time.Since(start))/waitingCalls)
		come(waitingCalls)
		target := gone.Load() + waitingCalls
		start = time.Now()
		l.grant()
		for gone.Load() < target {
			runtime.Gosched()
		}
		grant = min(grant, float64(time.Since(start))/waitingCalls)
	}
	stop()
	for sleeping.Load() > 0 {
		runtime.Gosched()
	}
	return measure.Figures{"join and leave ns": join, "grant ns": grant}, nil
}

// drawWaiting draws the ns of a join with a leave, and of a grant, over the waiting callers.
func drawWaiting(r *measure.Results, o *measure.Options) error {
	if o.Quick || o.Only.String() != "" {
		return nil
	}
	p := picture.Plot{Title: "ns of a join with a leave (line) and of a grant (dashed), over the waiting callers", X: "waiting callers", Y: ns,
		Width: 10, Height: 5, LogX: true, LogY: true, Least: 100, Most: 100_000}
	for i, kind := range kinds {
		joins, grants := picture.Line{Name: kind.name, Colour: i}, picture.Line{Colour: i, Dashed: true}
		for _, n := range lineLengths {
			name := measure.Row{Group: kind.name, Line: fmt.Sprint(n, " waiting")}.Name()
			joins.X, joins.Y = append(joins.X, float64(n)), append(joins.Y, r.Series(name, "join and leave ns").Median())
			grants.X, grants.Y = append(grants.X, float64(n)), append(grants.Y, r.Series(name, "grant ns").Median())
		}
		p.Lines = append(p.Lines, joins, grants)
	}
	return p.Save("bench/WAITING.svg")
}

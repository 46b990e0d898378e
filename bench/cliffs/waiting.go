package main

import (
	"context"
	"fmt"
	"image/color"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/picture"
	"github.com/weirflow/weir/pace"
)

// A waiting window joins and leaves, or grants, this number of times.
const waitingCalls = 100

// lineLengths are the numbers of waiting callers.
var lineLengths = []int{10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000}

// lined is something that callers wait for.
type lined struct {
	name    string
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

func limiterLine(name string, options weir.Options, turn func(caller int) weir.Turn) (lined, error) {
	lim, err := weir.NewWith(slowBucket(), options)
	if err != nil {
		return lined{}, err
	}
	lim.Record(hugeBurst)
	return lined{
		name:    name,
		wait:    func(ctx context.Context, caller int) error { return lim.WaitTurn(ctx, turn(caller)) },
		waiting: lim.Waiting,
		grant:   func() { lim.Record(-waitingCalls) },
	}, nil
}

// queueLine makes callers wait for a key of their own and one for all, or only for that one.
func queueLine(name string, hosts int) (lined, error) {
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
		name: name,
		wait: func(ctx context.Context, caller int) error {
			_, err := queue.Wait(ctx, requests(caller)...)
			return err
		},
		waiting: queue.Waiting,
		grant:   func() { _ = back[0].Cancel(ctx); back = back[1:] },
	}, nil
}

// maxWindows bounds the windows of one line.
const maxWindows = 100

func newLined(i int) (lined, error) {
	one := func(int) weir.Turn { return weir.Turn{Cost: 1} }
	switch i {
	case 0:
		return limiterLine("Limiter", weir.Options{Queue: 1 << 20}, one)
	case 1:
		return limiterLine("Limiter, Weights", weir.Options{Queue: 1 << 20, Weights: []int64{1, 3}}, func(caller int) weir.Turn { return weir.Turn{Cost: 1, Class: caller % 2} })
	case 2:
		return limiterLine("Limiter, 100 flows", weir.Options{Queue: 1 << 20}, func(caller int) weir.Turn { return weir.Turn{Cost: 1, Flow: strconv.Itoa(caller % 100)} })
	case 3:
		return queueLine("Queue, one key", 0)
	default:
		return queueLine("Queue, 1000 hosts and a total", 1000)
	}
}

const linedKinds = 5

// measureWaiting returns the ns of a join with a leave, and of a grant, beside n waiting callers.
func (c *config) measureWaiting(kind, n int) (name string, join, grant float64, err error) {
	l, err := newLined(kind)
	if err != nil {
		return "", 0, 0, err
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
	join, grant = 1e18, 1e18
	for range min(c.windows, maxWindows) {
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
	return l.name, join, grant, nil
}

// drawWaiting draws the ns of a join with a leave, and of a grant, over the waiting callers.
func drawWaiting(c *config, path string) error {
	p := plot.New()
	p.Title.Text = "ns of a join with a leave (line) and of a grant (dashed), over the waiting callers"
	p.X.Scale, p.X.Label.Text = plot.LogScale{}, "waiting callers"
	p.X.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Y.Scale, p.Y.Label.Text = plot.LogScale{}, "ns"
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Y.Min, p.Y.Max = 100, 100_000
	p.Add(plotter.NewGrid())
	for kind := range linedKinds {
		var name string
		var joins, grants plotter.XYs
		for _, n := range lineLengths {
			of, join, grant, err := c.measureWaiting(kind, n)
			if err != nil {
				return fmt.Errorf("waiting: %w", err)
			}
			fmt.Printf("%-30s %7d waiting: %6.0f ns a join with a leave, %6.0f ns a grant\n", of, n, join, grant)
			name = of
			joins, grants = append(joins, plotter.XY{X: float64(n), Y: join}), append(grants, plotter.XY{X: float64(n), Y: grant})
		}
		for i, points := range []plotter.XYs{joins, grants} {
			line, marks, err := plotter.NewLinePoints(points)
			if err != nil {
				return fmt.Errorf("plot: %w", err)
			}
			line.Color = color.RGBA{R: uint8(200 * (kind % 2)), G: uint8(60 * kind), B: uint8(220 * (kind / 2 % 2)), A: 255}
			marks.Color, marks.Radius = line.Color, vg.Points(2)
			p.Add(line, marks)
			if i == 0 {
				p.Legend.Add(name, line)
			} else {
				line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
			}
		}
	}
	if err := picture.Save(p, 10*vg.Inch, 5*vg.Inch, path); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/localredis"
	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/redislimit"
)

// The round trips, the callers of closed loops, and the parts of what bare EVALSHA manages that open loops ask for.
var (
	trips      = []time.Duration{100 * time.Microsecond, 3 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond}
	callerRows = []int{16, 128, 1024}
	loadParts  = []int{8, 4, 2}
)

const (
	saturating   = 4096 // callers that saturate, up to a round trip of saturates; beyond it as many more as it is longer
	saturates    = 10 * time.Millisecond
	leastLoad    = 500 // decisions a second of an open loop
	distanceKeys = 1000
)

var distances = &measure.Bench{
	Program: "bench/redis -distance", Title: "Redis at a distance", Report: "-", Reps: 3, Window: 900 * time.Millisecond,
	About: "The engine beside bare EVALSHA through a link that delays, in neighbouring windows. Processor times are those of callers and Redis.",
	Setup: func(ctx context.Context) (string, func(), error) {
		server, err := localredis.Start(ctx)
		if err != nil {
			return "", nil, err
		}
		return server.Addr, server.End, nil
	},
	Rows: distanceRows,
	Columns: []measure.Column{
		{Figure: "bare p50 ms", Format: "%.2f"}, {Figure: "engine p50 ms", Format: "%.2f"}, {Figure: "p50 ×", Format: "%.2f"}, {Figure: "p90 ×", Format: "%.2f"},
		{Figure: "bare /s", Format: "%.0f"}, {Figure: "engine /s", Format: "%.0f"}, {Figure: "/s ×", Format: "%.2f"},
		{Figure: "bare CPU µs", Format: "%.1f"}, {Figure: "engine CPU µs", Format: "%.1f"},
	},
	Targets: distanceTargets,
}

// place is a distance from the server, with a link and two askers once a row has needed them.
type place struct {
	trip         time.Duration
	control      *redis.Client
	bare, engine asker
	end          func()  // of the link; unused, but the link ends with the last reference to it
	capacity     float64 // decisions/s of bare calls that saturate
}

// crowdAt returns how many callers saturate at a distance. Most of a crowd that is too small is always on the way.
func crowdAt(trip time.Duration) int { return int(saturating * max(trip, saturates) / saturates) }

func crowdLine(trip time.Duration) string {
	return fmt.Sprintf("%d callers, which saturate", crowdAt(trip))
}

func openLine(part int) string {
	if part == 0 {
		return fmt.Sprintf("open loop, %d/s", leastLoad)
	}
	return fmt.Sprintf("open loop, 1/%d of what saturates", part)
}

func (p *place) group() string { return fmt.Sprintf("a round trip of %v", p.trip) }

func distanceRows(*measure.Options) (list []measure.Row, err error) {
	for _, trip := range trips {
		p := &place{trip: trip}
		add := func(line string, run func(ask asker, window time.Duration) reading) {
			list = append(list, measure.Row{Group: p.group(), Line: line, Ours: true, Measure: func(ctx context.Context, o *measure.Options) (measure.Figures, error) {
				return p.measure(ctx, o, run)
			}})
		}
		for _, callers := range append([]int{crowdAt(trip)}, callerRows...) {
			line := fmt.Sprintf("%d callers", callers)
			if callers == crowdAt(trip) {
				line = crowdLine(trip)
			}
			add(line, func(ask asker, window time.Duration) reading {
				got := closedLoop(ask, callers, window)
				if ask.bare && callers == crowdAt(trip) {
					p.capacity = got.perSecond
				}
				return got
			})
		}
		for _, part := range append([]int{0}, loadParts...) {
			add(openLine(part), func(ask asker, window time.Duration) reading {
				load := leastLoad
				if part > 0 {
					load = max(load, int(p.capacity)/part)
				}
				return openLoop(ask, load, window)
			})
		}
	}
	return list, nil
}

func distanceTargets([]measure.Row) (list []measure.Target) {
	for _, trip := range trips {
		p := &place{trip: trip}
		add := func(name, figure string, bound float64, atLeast bool, lines ...string) {
			t := measure.Target{Name: fmt.Sprintf("%v, %s", trip, name), Figure: figure, Format: "%.2f ×", Bound: bound, AtLeast: atLeast}
			for _, line := range lines {
				t.Cases = append(t.Cases, measure.Case{Row: measure.Row{Group: p.group(), Line: line}.Name()})
			}
			list = append(list, t)
		}
		open, closed := []string{openLine(0)}, []string{}
		for _, part := range loadParts {
			open = append(open, openLine(part))
		}
		for _, callers := range callerRows {
			closed = append(closed, fmt.Sprintf("%d callers", callers))
		}
		add("open loops, p50 of bare", "p50 ×", 1.1, false, open...)
		add("open loops, p90 of bare", "p90 ×", 1.3, false, open...)
		add("fixed callers, decisions/s of bare", "/s ×", 0.95, true, closed...)
		add("saturation, decisions/s of bare", "/s ×", 2, true, crowdLine(trip))
	}
	return list
}

// measure compares a window of the engine with one of bare calls.
func (p *place) measure(ctx context.Context, o *measure.Options, run func(asker, time.Duration) reading) (measure.Figures, error) {
	if p.control == nil {
		if err := p.open(o.Place); err != nil {
			return nil, err
		}
	}
	var got [2]reading
	var spent [2]usage
	for i, ask := range []asker{p.bare, p.engine} {
		var err error
		if spent[i], err = spend(ctx, []*redis.Client{p.control}, func() error { got[i] = run(ask, o.Window); return nil }); err != nil {
			return nil, err
		}
	}
	b, e := got[0], got[1]
	each := func(i int) float64 { return us(spent[i].client+spent[i].redis) / float64(got[i].decisions) }
	return measure.Figures{
		"bare p50 ms": us(b.p50) / 1000, "engine p50 ms": us(e.p50) / 1000, "p50 ×": float64(e.p50) / float64(b.p50), "p90 ×": float64(e.p90) / float64(b.p90),
		"bare /s": b.perSecond, "engine /s": e.perSecond, "/s ×": e.perSecond / b.perSecond, "bare CPU µs": each(0), "engine CPU µs": each(1),
	}, nil
}

// open opens the link and the askers, which end with the program.
func (p *place) open(server string) error {
	link, end, err := localredis.StartLink(server, p.trip/2)
	if err != nil {
		return err
	}
	p.end = end
	if p.bare, err = newBareAsker(link); err != nil {
		return err
	}
	if p.engine, err = newEngineAsker(link); err != nil {
		return err
	}
	p.control, _ = dialGoRedis(server)
	return nil
}

// asker makes one decision on a key.
type asker struct {
	ask  func(ctx context.Context, key string)
	bare bool
}

// patience returns the context of a caller, the same for both: a caller of a limiter has a deadline.
func patience(window time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), window+time.Minute)
}

func newClient(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
}

func newBareAsker(addr string) (asker, error) {
	client, err := newClient(addr)
	script := rueidis.NewLuaScript(bareScript)
	return asker{bare: true, ask: func(ctx context.Context, key string) {
		if err := script.Exec(ctx, client, []string{"bare:" + key}, []string{"1", "1000000"}).Error(); err != nil {
			panic(err) // the comparison is void
		}
	}}, err
}

func newEngineAsker(addr string) (asker, error) {
	client, err := newClient(addr)
	if err != nil {
		return asker{}, err
	}
	engine, err := redislimit.New(client, redislimit.Options{})
	if err != nil {
		return asker{}, err
	}
	rule, err := weir.NewRule("r", weir.TokenBucket{Rate: weir.PerSecond(1_000_000)})
	return asker{ask: func(ctx context.Context, key string) {
		if _, err := engine.Take(ctx, rule.For(key, 1)); err != nil {
			panic(err)
		}
	}}, err
}

// reading is what one window measured.
type reading struct {
	p50, p90  time.Duration
	perSecond float64
	decisions int
}

func readingOf(took []time.Duration, window time.Duration) reading {
	slices.Sort(took)
	n := len(took)
	return reading{took[n/2], took[n*9/10], float64(n) / window.Seconds(), n}
}

// openLoop asks at random times, as many callers that know nothing of each other do.
func openLoop(ask asker, perSecond int, window time.Duration) reading {
	n := max(int(float64(perSecond)*window.Seconds()), 10)
	took := make([]time.Duration, n)
	var callers sync.WaitGroup
	random := rand.New(rand.NewPCG(1, 1))
	began := time.Now()
	next := began
	for i := range n {
		next = next.Add(time.Duration(random.ExpFloat64() / float64(perSecond) * float64(time.Second)))
		if wait := time.Until(next); wait > 0 {
			time.Sleep(wait)
		}
		callers.Go(func() {
			begin := time.Now()
			ctx, cancel := patience(0)
			defer cancel()
			ask.ask(ctx, fmt.Sprint("k", i%distanceKeys))
			took[i] = time.Since(begin)
		})
	}
	callers.Wait()
	return readingOf(took, time.Since(began))
}

// closedLoop has each caller ask again as soon as it is answered. What a caller needs for itself is made beforehand and
// kept apart from that of others, so that its cost is not that of the decisions.
func closedLoop(ask asker, callers int, window time.Duration) reading {
	var all sync.WaitGroup
	var over atomic.Bool
	took := make([][]time.Duration, callers)
	began := time.Now()
	for c := range callers {
		all.Go(func() {
			key := fmt.Sprint("c", c)
			own := make([]time.Duration, 0, int(window.Seconds()*600_000)/callers+100)
			ctx, cancel := patience(window)
			defer cancel()
			for !over.Load() {
				begin := time.Now()
				ask.ask(ctx, key)
				own = append(own, time.Since(begin))
			}
			took[c] = own
		})
	}
	time.Sleep(window)
	over.Store(true)
	all.Wait()
	return readingOf(slices.Concat(took...), time.Since(began))
}

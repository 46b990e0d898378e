package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/localredis"
	"github.com/weirflow/weir/redislimit"
)

// The distances, the callers of closed loops, and the parts of what bare EVALSHA manages that open loops ask for.
var (
	trips       = []time.Duration{100 * time.Microsecond, 3 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond}
	callerRows  = []int{16, 128, 1024}
	loadParts   = []int{8, 4, 2}
	distanceKey = 1000
)

const (
	saturating  = 4096 // callers that saturate, up to a round trip of saturates; beyond it as many more as it is longer
	saturates   = 10 * time.Millisecond
	leastLoad   = 500 // decisions a second of an open loop
	p50Aim      = 1.1
	p90Aim      = 1.3
	callersAim  = 0.95
	saturateAim = 2.0
)

// aim is what the engine should reach beside bare EVALSHA, and the row that comes closest to missing it.
type aim struct {
	name  string
	bound float64
	most  bool // the bound is the most, otherwise the least
	worst float64
	row   string
}

func (a *aim) see(value float64, row string) {
	if a.row == "" || a.most == (value > a.worst) {
		a.worst, a.row = value, row
	}
}

func (a *aim) String() string {
	sign, verdict := "≥", "reached"
	if a.most {
		sign = "≤"
	}
	if a.worst != a.bound && a.most == (a.worst > a.bound) {
		verdict = "MISSED"
	}
	return fmt.Sprintf("%s: %s %s %.2f ×, at worst %.2f × (%s)", verdict, a.name, sign, a.bound, a.worst, a.row)
}

// aims are those of one distance, and what bare calls and the engine spend where callers saturate the processors.
type aims struct {
	p50, p90, callers, saturation aim
	bare, engine                  spending
}

func newAims(control *redis.Client) *aims {
	return &aims{
		aim{name: "open loops, p50 of bare", bound: p50Aim, most: true},
		aim{name: "open loops, p90 of bare", bound: p90Aim, most: true},
		aim{name: "fixed callers, decisions/s of bare", bound: callersAim},
		aim{name: "saturation, decisions/s of bare", bound: saturateAim},
		spending{control: control}, spending{control: control},
	}
}

// printDistances compares the engine with bare EVALSHA through a link that delays, in turns of one window each. It
// prints the best window of each, and for each distance whether the aims were reached.
func printDistances(ctx context.Context, addr string, window time.Duration, repetitions int, only *regexp.Regexp) error {
	trips := slices.DeleteFunc(slices.Clone(trips), func(trip time.Duration) bool { return !only.MatchString(trip.String()) })
	if len(trips) == 0 {
		return fmt.Errorf("-only %q: no round trip matches", only)
	}
	fmt.Println("| round trip | load | bare p50 | engine p50 | | bare p90 | engine p90 | | bare /s | engine /s | |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
	control, hangUp := dialGoRedis(addr)
	defer hangUp()
	judged := map[time.Duration]*aims{}
	for _, trip := range trips {
		link, end, err := localredis.StartLink(addr, trip/2)
		if err != nil {
			return err
		}
		judged[trip] = newAims(control)
		err = printDistance(ctx, link, trip, window, repetitions, judged[trip])
		end()
		if err != nil {
			return err
		}
	}
	for _, trip := range trips {
		a := judged[trip]
		if err := cmp.Or(a.bare.failed, a.engine.failed); err != nil {
			return err
		}
		for _, one := range []*aim{&a.p50, &a.p90, &a.callers, &a.saturation} {
			fmt.Printf("%v, %v\n", trip, one)
		}
		fmt.Printf("%v, %d callers: a decision takes %v of the processors with bare calls and %v with the engine, %.2f × as long; the link is not counted\n",
			trip, crowdAt(trip), &a.bare, &a.engine, ratio(a.bare.each(), a.engine.each()))
	}
	return nil
}

// crowdAt returns how many callers saturate at a distance. Most of a crowd that is too small is always on the way.
func crowdAt(trip time.Duration) int { return int(saturating * max(trip, saturates) / saturates) }

func printDistance(ctx context.Context, link string, trip, window time.Duration, repetitions int, judged *aims) error {
	bare, err := newBareAsker(link)
	if err != nil {
		return err
	}
	defer bare.close()
	engine, err := newEngineAsker(link)
	if err != nil {
		return err
	}
	defer engine.close()
	bare.spent, engine.spent = &judged.bare, &judged.engine
	compare := func(load string, run func(ask asker) reading) (b, e reading) {
		if ctx.Err() != nil {
			return reading{1, 1, 1, 1}, reading{1, 1, 1, 1}
		}
		for range repetitions {
			b, e = b.better(run(bare)), e.better(run(engine))
		}
		fmt.Printf("| %v | %s | %v | %v | %.2f | %v | %v | %.2f | %.0f | %.0f | %.2f |\n", trip, load, short(b.p50), short(e.p50), ratio(e.p50, b.p50),
			short(b.p90), short(e.p90), ratio(e.p90, b.p90), b.perSecond, e.perSecond, e.perSecond/b.perSecond)
		return b, e
	}
	callers := func(n int, a *aim, run func(ask asker) reading) (capacity float64) {
		load := fmt.Sprintf("%d callers", n)
		b, e := compare(load, run)
		a.see(e.perSecond/b.perSecond, load)
		return b.perSecond
	}
	crowd := crowdAt(trip)
	capacity := callers(crowd, &judged.saturation, func(ask asker) reading {
		return ask.spent.of(ctx, func() reading { return closedLoop(ask, crowd, window) })
	})
	for _, n := range callerRows {
		callers(n, &judged.callers, func(ask asker) reading { return closedLoop(ask, n, window) })
	}
	loads := []int{leastLoad}
	for _, part := range loadParts {
		loads = append(loads, max(int(capacity)/part, leastLoad))
	}
	for _, perSecond := range loads {
		load := fmt.Sprintf("%d/s, open loop", perSecond)
		b, e := compare(load, func(ask asker) reading { return openLoop(ask, perSecond, window) })
		judged.p50.see(ratio(e.p50, b.p50), load)
		judged.p90.see(ratio(e.p90, b.p90), load)
	}
	return ctx.Err()
}

func short(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// asker makes one decision on a key.
type asker struct {
	ask   func(ctx context.Context, key string)
	close func()
	spent *spending // where callers saturate
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
	if err != nil {
		return asker{}, err
	}
	script := rueidis.NewLuaScript(bareScript)
	return asker{ask: func(ctx context.Context, key string) {
		if err := script.Exec(ctx, client, []string{"bare:" + key}, []string{"1", "1000000"}).Error(); err != nil {
			panic(err) // the comparison is void
		}
	}, close: client.Close}, nil
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
	if err != nil {
		return asker{}, err
	}
	return asker{ask: func(ctx context.Context, key string) {
		if _, err := engine.Take(ctx, rule.For(key, 1)); err != nil {
			panic(err)
		}
	}, close: func() { engine.Close(); client.Close() }}, nil
}

// reading is what one window measured.
type reading struct {
	p50, p90  time.Duration
	perSecond float64
	decisions int
}

// better returns the better figures of two windows: on a shared machine, disturbances only make them worse.
func (r reading) better(other reading) reading {
	if r.p50 == 0 {
		return other
	}
	return reading{min(r.p50, other.p50), min(r.p90, other.p90), max(r.perSecond, other.perSecond), r.decisions + other.decisions}
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
			ask.ask(ctx, fmt.Sprint("k", i%distanceKey))
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

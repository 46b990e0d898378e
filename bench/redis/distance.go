package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
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
	saturating  = 4096 // callers that saturate
	leastLoad   = 500  // decisions a second of an open loop
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

// aims are those of one distance.
type aims struct{ p50, p90, callers, saturation aim }

func newAims() *aims {
	return &aims{
		aim{name: "open loops, p50 of bare", bound: p50Aim, most: true},
		aim{name: "open loops, p90 of bare", bound: p90Aim, most: true},
		aim{name: "fixed callers, decisions/s of bare", bound: callersAim},
		aim{name: "saturation, decisions/s of bare", bound: saturateAim},
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
	judged := map[time.Duration]*aims{}
	for _, trip := range trips {
		link, err := startLink(addr, trip/2)
		if err != nil {
			return err
		}
		judged[trip] = newAims()
		err = printDistance(ctx, link, trip, window, repetitions, judged[trip])
		link.close()
		if err != nil {
			return err
		}
	}
	for _, trip := range trips {
		a := judged[trip]
		for _, one := range []*aim{&a.p50, &a.p90, &a.callers, &a.saturation} {
			fmt.Printf("%v, %v\n", trip, one)
		}
	}
	return nil
}

func printDistance(ctx context.Context, link *link, trip, window time.Duration, repetitions int, judged *aims) error {
	bare, err := newBareAsker(link.addr())
	if err != nil {
		return err
	}
	defer bare.close()
	engine, err := newEngineAsker(link.addr())
	if err != nil {
		return err
	}
	defer engine.close()
	compare := func(load string, run func(ask asker) reading) (b, e reading) {
		if ctx.Err() != nil {
			return reading{1, 1, 1}, reading{1, 1, 1}
		}
		for range repetitions {
			b, e = b.better(run(bare)), e.better(run(engine))
		}
		fmt.Printf("| %v | %s | %v | %v | %.2f | %v | %v | %.2f | %.0f | %.0f | %.2f |\n", trip, load, short(b.p50), short(e.p50), ratio(e.p50, b.p50),
			short(b.p90), short(e.p90), ratio(e.p90, b.p90), b.perSecond, e.perSecond, e.perSecond/b.perSecond)
		return b, e
	}
	callers := func(n int, a *aim) (capacity float64) {
		load := fmt.Sprintf("%d callers", n)
		b, e := compare(load, func(ask asker) reading { return closedLoop(ask, n, window) })
		a.see(e.perSecond/b.perSecond, load)
		return b.perSecond
	}
	capacity := callers(saturating, &judged.saturation)
	for _, n := range callerRows {
		callers(n, &judged.callers)
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
	ask   func(key string)
	close func()
}

// patience is the context of each call, the same for both: a caller of a limiter has a deadline.
func patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 10*time.Second)
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
	return asker{func(key string) {
		ctx, cancel := patience()
		defer cancel()
		if err := script.Exec(ctx, client, []string{"bare:" + key}, []string{"1", "1000000"}).Error(); err != nil {
			panic(err) // the comparison is void
		}
	}, client.Close}, nil
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
	return asker{func(key string) {
		ctx, cancel := patience()
		defer cancel()
		if _, err := engine.Take(ctx, rule.For(key, 1)); err != nil {
			panic(err)
		}
	}, func() { engine.Close(); client.Close() }}, nil
}

// reading is what one window measured.
type reading struct {
	p50, p90  time.Duration
	perSecond float64
}

// better returns the better figures of two windows: on a shared machine, disturbances only make them worse.
func (r reading) better(other reading) reading {
	if r.p50 == 0 {
		return other
	}
	return reading{min(r.p50, other.p50), min(r.p90, other.p90), max(r.perSecond, other.perSecond)}
}

func readingOf(took []time.Duration, window time.Duration) reading {
	slices.Sort(took)
	n := len(took)
	return reading{took[n/2], took[n*9/10], float64(n) / window.Seconds()}
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
			ask.ask(fmt.Sprint("k", i%distanceKey))
			took[i] = time.Since(begin)
		})
	}
	callers.Wait()
	return readingOf(took, time.Since(began))
}

// closedLoop has each caller ask again as soon as it is answered.
func closedLoop(ask asker, callers int, window time.Duration) reading {
	var all sync.WaitGroup
	var over atomic.Bool
	took := make([][]time.Duration, callers)
	began := time.Now()
	for c := range callers {
		all.Go(func() {
			key := fmt.Sprint("c", c)
			for !over.Load() {
				begin := time.Now()
				ask.ask(key)
				took[c] = append(took[c], time.Since(begin))
			}
		})
	}
	time.Sleep(window)
	over.Store(true)
	all.Wait()
	return readingOf(slices.Concat(took...), time.Since(began))
}

// link passes bytes on after a delay, in each direction.
type link struct {
	listener net.Listener
	server   string
	delay    time.Duration
}

func startLink(server string, delay time.Duration) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener, server, delay}
	go l.accept()
	return l, nil
}

func (l *link) addr() string { return l.listener.Addr().String() }

func (l *link) close() { _ = l.listener.Close() }

func (l *link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		go l.pipe(server, client)
		go l.pipe(client, server)
	}
}

// chunk is bytes and the time at which they arrive.
type chunk struct {
	at   time.Time
	room *[chunkSize]byte
	n    int
}

// Chunks are used again. Otherwise the link would have the collector run most of the time, between those that it joins.
const chunkSize = 64 << 10

var rooms = sync.Pool{New: func() any { return new([chunkSize]byte) }}

func (l *link) pipe(to, from net.Conn) {
	chunks := make(chan chunk, 1<<14)
	go func() {
		defer func() { _ = to.Close() }()
		nap, awake := naps()
		defer awake()
		for c := range chunks {
			if wait := time.Until(c.at); wait > 0 {
				nap(wait)
			}
			if _, err := to.Write(c.room[:c.n]); err != nil {
				_ = from.Close() // ends the reader
			}
			rooms.Put(c.room)
		}
	}()
	defer close(chunks)
	for {
		room := rooms.Get().(*[chunkSize]byte)
		n, err := from.Read(room[:])
		if n > 0 {
			chunks <- chunk{time.Now().Add(l.delay), room, n}
		}
		if err != nil {
			return
		}
	}
}

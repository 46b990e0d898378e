// Program redis compares the Redis engine with other limiters and with bare scripts. It starts its own redis-servers
// on the loopback interface: a single server and a cluster of three masters. It judges the Redis targets.
//
//	go run ./bench/redis            everything, five minutes; writes bench/REDIS.md
//	go run ./bench/redis -base v1.0.0    every row before and after, in pairs of windows, to standard output
//	go run ./bench/redis -quick     a trial; prints figures that mean nothing
//	go run ./bench/redis -only '128 callers.*10000 keys'    prints the rows whose names match
package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/bench/internal/localredis"
	"github.com/weirflow/weir/bench/internal/measure"
)

func main() { loopback.Main() }

const about = `One redis-server on the loopback interface, and a cluster of three, with nothing on disk. Client and servers share the cores, so
rates are of this machine, and CPU times carry over. CPU and the time in scripts (commandstats; of throttled only its second
step) are of one decision, latencies of a call. Every decision is admitted, or refused where the row says so, and none ends in an
error. Only those of throttled do, whose compare-and-swap from the client fails when others change the key meanwhile. The
bare batch reads all keys by one MGET, as ours does, and writes each by a SET. Logs, gates and slots are as long as their limit
lets them be: for each unit that comes another one leaves, or all are refused. A cluster on one machine shows what it costs,
not what it would gain on machines of its own.`

var loopback = &measure.Bench{
	Program: "bench/redis", Title: "Redis", About: about, Report: "bench/REDIS.md", Pairs: "-",
	Reps: 5, Window: 900 * time.Millisecond, Rounds: 4, PairReps: 2, PairWindow: 250 * time.Millisecond,
	Setup: func(context.Context) (string, func(), error) {
		single, endSingle, err := localredis.Start()
		if err != nil {
			return "", nil, err
		}
		cluster, endCluster, err := localredis.StartCluster()
		if err != nil {
			endSingle()
			return "", nil, err
		}
		return single + " " + strings.Join(cluster, ","), func() { endCluster(); endSingle() }, nil
	},
	Rows: func(*measure.Options) ([]measure.Row, error) { return rows(), nil },
	Columns: []measure.Column{
		{Figure: perSecond, Format: "%.0f", More: true}, {Figure: p50, Format: "%.0f"}, {Figure: p99, Format: "%.0f"}, {Figure: client, Format: "%.2f"},
		{Figure: redisCPU, Format: "%.2f"}, {Figure: inScript, Format: "%.2f"}, {Figure: "errors %", Format: "%.2g"}, {Figure: "others' CPU %", Format: "%.0f"},
	},
	Targets: targets,
}

// The figures.
const (
	perSecond = "decisions/s"
	p50       = "p50 µs"
	p99       = "p99 µs"
	client    = "client CPU µs"
	redisCPU  = "Redis CPU µs"
	inScript  = "in script µs"
)

// cell is one peer with one workload.
type cell struct {
	peer    peer
	callers int
	keys    int
	batch   int // keys per call
	refused bool
	cluster bool // on the cluster instead of the single server
}

const (
	manyKeys = 10_000
	fewKeys  = 2_000
)

func (c cell) group() string {
	where := fmt.Sprintf("%d keys", c.keys)
	switch {
	case c.batch > 1 && c.cluster:
		return fmt.Sprintf("batches of %d on the cluster", c.batch)
	case c.batch > 1:
		return fmt.Sprintf("batches of %d", c.batch)
	case c.keys == 1:
		where = "one key"
	}
	if c.cluster {
		where += " on the cluster"
	}
	return "one decision a call, " + where
}

func (c cell) line() string {
	switch {
	case c.batch == 1:
		return fmt.Sprintf("%s, %d callers", c.peer.name, c.callers)
	case c.refused:
		return fmt.Sprintf("%s, %d keys, refused", c.peer.name, c.keys)
	}
	return fmt.Sprintf("%s, %d keys", c.peer.name, c.keys)
}

func (c cell) name() string { return measure.Row{Group: c.group(), Line: c.line()}.Name() }

// row returns the row that measures the cell.
func (c cell) row() measure.Row {
	ours := c.peer.name == nameWeir || c.peer.name == nameFewLanes || slices.ContainsFunc(algorithms(), func(a algorithm) bool { return a.name == c.peer.name })
	return measure.Row{Group: c.group(), Line: c.line(), Ours: ours, Measure: func(ctx context.Context, o *measure.Options) (measure.Figures, error) {
		single, cluster, _ := strings.Cut(o.Place, " ")
		addrs, window := []string{single}, o.Window
		if c.cluster {
			addrs = strings.Split(cluster, ",")
		}
		if c.batch > 1 {
			window /= 2
		}
		return c.measure(ctx, addrs, window)
	}}
}

var callerCounts = []int{1, 16, 128}

func rows() (list []measure.Row) {
	for _, c := range cells() {
		list = append(list, c.row())
	}
	return list
}

// cells returns all measurements. Batches come from one goroutine; that of the token bucket is compared with one caller,
// the others with the bare script.
func cells() (list []cell) {
	calls := func(peers []peer, keys int, cluster bool) {
		for _, callers := range callerCounts {
			for _, p := range peers {
				list = append(list, cell{peer: p, callers: callers, keys: keys, batch: 1, cluster: cluster})
			}
		}
	}
	calls(singles(), manyKeys, false)
	calls(singles(), 1, false)
	calls(clustered(), manyKeys, true)
	batches := func(p peer, keys int, refused, cluster bool) {
		list = append(list, cell{peer: p, callers: 1, keys: keys, batch: batchSize, refused: refused, cluster: cluster})
	}
	ours := peer{name: nameWeir, make: algorithms()[0].admitting()}
	batches(ours, manyKeys, false, false)
	batches(ours, manyKeys, false, true)
	for _, keys := range []int{manyKeys, fewKeys} {
		batches(peer{name: nameBareBatch, make: bareEach}, keys, false, false)
	}
	for _, a := range algorithms() {
		batches(peer{name: a.name, make: a.admitting()}, a.keys(), false, false)
		batches(peer{name: a.name, make: a.denying()}, a.keys(), true, false)
	}
	return list
}

// targets returns the targets for one Redis server.
func targets([]measure.Row) (list []measure.Target) {
	add := func(name, figure string, bound float64, atLeast bool, ours, over cell) {
		list = append(list, measure.Target{Name: name, Figure: figure, Format: "%.3g ×", Bound: bound, AtLeast: atLeast, More: figure == perSecond,
			Cases: []measure.Case{{Row: ours.name(), Over: []string{over.name()}}}})
	}
	at := func(name string, callers, keys int) cell {
		return cell{peer: peer{name: name}, callers: callers, keys: keys, batch: 1}
	}
	for _, keys := range []int{manyKeys, 1} {
		for _, t := range []struct {
			callers      int
			figure, over string
			bound        float64
			atLeast      bool
		}{
			{128, perSecond, nameRedisRate, 4, true}, {128, perSecond, nameBareRueidis, 2, true},
			{128, client, nameRedisRate, 1.0 / 7, false}, {128, redisCPU, nameRedisRate, 1.0 / 3, false}, {128, p99, nameBareRueidis, 1, false},
			{16, perSecond, nameRedisRate, 1.6, true}, {16, perSecond, nameBareRueidis, 1.5, true}, {16, p99, nameBareRueidis, 1, false}, {1, p50, nameBareRueidis, 1.15, false},
		} {
			name := fmt.Sprintf("%d callers, %d key(s): %s over %s", t.callers, keys, t.figure, t.over)
			add(name, t.figure, t.bound, t.atLeast, at(nameWeir, t.callers, keys), at(t.over, t.callers, keys))
		}
	}
	batch := func(name string, keys int, refused bool) cell {
		return cell{peer: peer{name: name}, callers: 1, keys: keys, batch: batchSize, refused: refused}
	}
	add("one goroutine, a batch of 100: decisions/s over redis_rate", perSecond, 17, true, batch(nameWeir, manyKeys, false), at(nameRedisRate, 1, manyKeys))
	for _, a := range algorithms() {
		bare := batch(nameBareBatch, a.keys(), false)
		add(a.name+", batch of 100: time in the script over a bare one", inScript, 1.5, false, batch(a.name, a.keys(), false), bare)
		add(a.name+", the same, all refused", inScript, 1.5, false, batch(a.name, a.keys(), true), bare)
	}
	return list
}

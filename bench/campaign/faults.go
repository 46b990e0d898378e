package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

// breaker causes the faults of one world, one after the other.
type breaker struct {
	*world
	ctx       context.Context
	random    *rand.Rand
	processes int
	deliver   func(process int, o order)
	say       func(format string, values ...any)
	failover  time.Time       // when the last one ended
	move      *redistest.Move // of a slot, that has not ended
}

// faultKind is a fault that a breaker can cause. cause returns a detail for the report.
type faultKind struct {
	name   string
	loses  bool // the table grants another burst
	weight int
	cause  func(b *breaker, f *fault)
}

// Sentinel begins no second failover within twice its timeout.
const betweenFailovers = 7 * time.Second

var faultsOfProcesses = []faultKind{
	{"stalled replies", false, 3, (*breaker).stall},
	{"connections cut in a reply", false, 4, (*breaker).cut},
	{"delay", false, 2, (*breaker).slow},
	{"clock steps", false, 2, (*breaker).clock},
}

var faultsOfWorlds = [...][]faultKind{
	worldServer: {
		{"kill and restart, with memory", false, 3, (*breaker).restart},
		{"kill and restart, without memory", true, 1, (*breaker).restartEmpty},
		{"hang", false, 3, func(b *breaker, f *fault) { b.hang(f, b.server) }},
		{"script flush", false, 2, func(b *breaker, _ *fault) { b.server.FlushScripts() }},
	},
	worldSentinel: {
		{"failover from a killed master", true, 1, (*breaker).sentinelKill},
		{"failover from a hung master", true, 1, (*breaker).sentinelHang},
		{"failover by command", true, 1, (*breaker).sentinelCommand},
		{"hang", false, 2, (*breaker).sentinelPause},
		{"script flush", false, 2, func(b *breaker, _ *fault) { b.sentinel.Master.FlushScripts() }},
	},
	worldCluster: {
		{"failover from a killed master", true, 2, (*breaker).clusterKill},
		{"failover from a hung master", true, 1, (*breaker).clusterHang},
		{"failover by command", false, 2, (*breaker).clusterCommand},
		{"reshard", false, 4, (*breaker).reshard},
		{"script flush", false, 2, (*breaker).clusterFlush},
	},
}

// After some faults there is none for a while. Then each line has to move on its own.
const (
	calmEvery = 8
	calm      = 10 * time.Second
)

// run causes faults until ctx ends, or until the servers cannot be mended.
func (b *breaker) run() {
	kinds := append(append([]faultKind(nil), faultsOfProcesses...), faultsOfWorlds[b.number]...)
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	b.guard("the start", func() { b.look() })
	for n := 1; b.wait(b.between(300*time.Millisecond, 2*time.Second)) && !b.given; n++ {
		if n%calmEvery == 0 && !b.wait(calm) {
			return
		}
		b.guard("no fault", func() { b.unasked(0) })
		pick := b.random.IntN(total)
		for _, k := range kinds {
			if pick -= k.weight; pick < 0 {
				b.cause(k)
				break
			}
		}
	}
}

// unasked notes a failover since the last look that nothing asked for, of other lanes than expected: on a busy machine a
// server can seem dead.
func (b *breaker) unasked(expected uint64) {
	since := b.seen
	lanes := b.look() &^ expected
	if lanes == 0 {
		return
	}
	defer func() {
		to := now()
		b.faults = append(b.faults, fault{Kind: "failover, unasked", From: since, To: to, Loses: true, Lanes: lanes, Both: to - since})
	}()
	if s := b.sentinel; s != nil && s.Now() == s.Replica {
		b.follow() // until then the old master may admit, too
	}
	if b.cluster != nil {
		b.cluster.AwaitHealth()
	}
}

// cause causes a fault and waits until the servers are well again.
func (b *breaker) cause(k faultKind) {
	f := fault{Kind: k.name, From: now(), Loses: k.loses}
	if k.loses {
		f.Lanes = allLanes
	}
	b.guard(k.name, func() {
		defer func() {
			f.To = now()
			b.faults = append(b.faults, f)
		}()
		k.cause(b, &f)
	})
	b.guard(k.name, func() { b.unasked(f.Lanes | f.moves) })
}

// wait reports whether the campaign still goes on after d.
func (b *breaker) wait(d time.Duration) bool {
	pause(b.ctx, d)
	return b.ctx.Err() == nil
}

func (b *breaker) between(least, most time.Duration) time.Duration {
	return least + time.Duration(b.random.Int64N(int64(most-least)))
}

// send orders a fault of one process, or of all.
func (b *breaker) send(f *fault, o order) {
	o.World = b.number
	process := b.random.IntN(b.processes + 1)
	if process < b.processes {
		f.Detail = fmt.Sprintf("process %d, %v %v %d", process, o.For, o.Delay, o.Times)
		b.deliver(process, o)
		return
	}
	f.Detail = fmt.Sprintf("all processes, %v %v %d", o.For, o.Delay, o.Times)
	for process := range b.processes {
		b.deliver(process, o)
	}
}

func (b *breaker) stall(f *fault) {
	o := order{What: "stall", For: b.between(50*time.Millisecond, 2500*time.Millisecond)}
	b.send(f, o)
	b.wait(o.For)
}

func (b *breaker) cut(f *fault) {
	b.send(f, order{What: "cut", Times: 1 + b.random.Int64N(6)})
}

func (b *breaker) slow(f *fault) {
	o := order{What: "slow", For: b.between(time.Second, 4*time.Second), Delay: b.between(time.Millisecond, 20*time.Millisecond)}
	b.send(f, o)
	b.wait(o.For)
}

// mostAhead bounds how far the clocks of processes are set.
const mostAhead = 10 * time.Second

func (b *breaker) clock(f *fault) {
	b.send(f, order{What: "clock", For: b.between(-mostAhead, mostAhead)})
}

package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

// Figures of memory and of single decisions, and the groups of their rows.
const (
	bytesAKey    = "heap bytes a key"
	collectionMs = "full collection ms"
	p9999        = "p99.99 µs"

	memoryOfLarge = "memory of 10M keys"
	growth        = "single decisions, growth"
	forgetting    = "single decisions, forgetting"
)

// held is a limit under which a key stays alive for an hour after one call.
var held = peers.Limit{Burst: 1000, Refill: time.Hour, Window: 30 * 24 * time.Hour, LogCount: 1000, LogPeriod: time.Hour}

// memoryRows measure the memory of a peer, and single decisions while it grows and while it evicts idle keys.
func memoryRows(peer peers.KeyedPeer, quick bool) (list []measure.Row) {
	few, large := 1_000_000, 10_000_000
	if quick {
		few, large = few/20, large/20
	}
	add := func(group string, measured func() (measure.Figures, error)) {
		one := row(peer.Info, group, "", func(context.Context, *measure.Options) (measure.Figures, error) { return measured() })
		one.Once = true
		list = append(list, one)
	}
	if leavesOut(peer, few) {
		return nil
	}
	add("memory of 1M keys", func() (measure.Figures, error) { return footprint(peer, few) })
	if peer.Compact {
		add(memoryOfLarge, func() (measure.Figures, error) { return footprint(peer, large) })
	}
	add(growth, func() (measure.Figures, error) { return grow(peer, 2*few) })
	add(forgetting, func() (measure.Figures, error) { return forget(peer, few) })
	return list
}

// footprint compares the heap before and after. It counts the text of a key if the peer keeps it.
func footprint(peer peers.KeyedPeer, keys int) (measure.Figures, error) {
	peers.Close(current.made)
	current = lot{}
	heap, resident := memoryInUse()
	made, err := peer.New(held)
	if err != nil {
		return nil, err
	}
	defer peers.Close(made)
	if err := fill(made, 0, keys); err != nil {
		return nil, err
	}
	heapAfter, residentAfter := memoryInUse()
	f := measure.Figures{
		bytesAKey: (heapAfter - heap) / float64(keys), "resident bytes": (residentAfter - resident) / float64(keys), collectionMs: fullCollection(),
	}
	return f, remembers(made, keys)
}

// memoryInUse returns the memory after a collection. The resident memory is 0 without /proc.
func memoryInUse() (heap, resident float64) {
	runtime.GC() // twice: the second frees what finalizers released
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	content, _ := os.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(content); len(fields) > 1 {
		resident, _ = strconv.ParseFloat(string(fields[1]), 64)
	}
	return float64(stats.HeapAlloc), resident * float64(os.Getpagesize())
}

// fullCollection returns the median of several, in ms.
func fullCollection() float64 {
	var series measure.Series
	for range 11 {
		start := time.Now()
		runtime.GC()
		series = append(series, time.Since(start).Seconds()*1000)
	}
	return series.Median()
}

// grow gives an empty peer many new keys, so that its storage doubles many times.
func grow(peer peers.KeyedPeer, keys int) (measure.Figures, error) {
	made, err := share(new(int), func() (peers.Keyed, error) { return peer.New(held) })
	if err != nil {
		return nil, err
	}
	f, err := timed(made, keys, workload.Key)
	if err != nil {
		return nil, err
	}
	return f, remembers(made, keys)
}

// idleAfter is the time after which a key becomes idle, in the phase of eviction.
const idleAfter = 500 * time.Millisecond

// forget fills a peer, lets all keys become idle, and then alternates between fresh keys and a few busy keys.
func forget(peer peers.KeyedPeer, keys int) (measure.Figures, error) {
	made, err := share(new(int), func() (peers.Keyed, error) {
		return peer.New(peers.Limit{Burst: 2, Refill: idleAfter / 2, Window: idleAfter, LogCount: 2, LogPeriod: idleAfter, Idle: idleAfter})
	})
	if err != nil {
		return nil, err
	}
	if err := fill(made, 0, keys); err != nil {
		return nil, err
	}
	time.Sleep(2 * idleAfter) // two windows, for limits that weigh the previous one
	const busy = 1000
	f, err := timed(made, 2*keys, func(i int) string {
		if i%2 == 1 {
			return workload.Key(i / 2 % busy)
		}
		return workload.Key(keys + i) // fresh
	})
	if counter, ok := made.(peers.Counter); ok && err == nil {
		f["keys evicted"] = float64(2*keys - counter.Len())
	}
	return f, err
}

// timed times decisions one by one, including two readings of the clock. The row of the loop shows the machine's own
// delays.
func timed(peer peers.Keyed, count int, key func(int) string) (measure.Figures, error) {
	times := make([]uint32, count)
	runtime.GC()
	for i := range times {
		text := key(i)
		start := time.Now()
		_, err := peer.Take(text)
		times[i] = uint32(min(time.Since(start), math.MaxUint32))
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(times)
	at := func(q float64) float64 { return float64(times[int(q*float64(count-1))]) }
	return measure.Figures{"median ns": at(0.5), "p99 ns": at(0.99), p9999: at(0.9999) / 1000, "worst µs": at(1) / 1000}, nil
}

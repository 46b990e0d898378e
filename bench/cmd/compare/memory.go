package main

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
)

const (
	bytesAKey     = "heap bytes a key"
	collectionMs  = "full collection ms"
	memoryOfLarge = "memory of 10M keys"
)

// held is a limit under which a key stays alive for an hour after one call.
var held = peers.Limit{Burst: 1000, Refill: time.Hour, Window: 30 * 24 * time.Hour, LogCount: 1000, LogPeriod: time.Hour}

// memoryRows measure the memory of a peer.
func memoryRows(peer peers.Peer, quick bool) (list []measure.Row) {
	few, large := 1_000_000, 10_000_000
	if quick {
		few, large = few/20, large/20
	}
	add := func(group string, measured func() (measure.Figures, error)) {
		one := row(peer, group, "", func(context.Context, *measure.Options) (measure.Figures, error) { return measured() })
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
	return list
}

// footprint compares the heap before and after. It counts the text of a key if the peer keeps it.
func footprint(peer peers.Peer, keys int) (measure.Figures, error) {
	current.Stop()
	current.owner, current.Limiter = nil, peers.Limiter{}
	heap, resident := memoryInUse()
	made, err := peer.New(held)
	if err != nil {
		return nil, err
	}
	defer made.Stop()
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

package measure

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/weirflow/weir/bench/internal/peers"
)

// Footprint is the memory that a peer uses for keys.
type Footprint struct {
	Peer     string
	Keys     int
	Heap     float64 // bytes per key of the heap after a collection
	Resident float64 // bytes per key of the process; 0 if unknown
	// The time of a full collection with the keys alive: the median and the least of several.
	FullGC, LeastGC time.Duration
}

// held is a limit under which a key stays alive for an hour after one call.
var held = peers.Limit{
	Burst: 1000, Refill: time.Hour, Window: 30 * 24 * time.Hour, LogCount: 1000, LogPeriod: time.Hour,
}

func (r *Results) memory() error {
	for _, peer := range r.Config.Keyeds {
		if !r.Config.leavesOut(peer, r.Config.MemoryKeys) {
			r.Config.Progress("memory: %s, %d keys", peer.Name, r.Config.MemoryKeys)
			if err := r.footprint(peer, r.Config.MemoryKeys); err != nil {
				return err
			}
		}
		if peer.Compact && r.Config.LargeKeys > 0 && !r.Config.leavesOut(peer, r.Config.LargeKeys) {
			r.Config.Progress("memory: %s, %d keys", peer.Name, r.Config.LargeKeys)
			if err := r.footprint(peer, r.Config.LargeKeys); err != nil {
				return err
			}
		}
	}
	return r.latencies()
}

// footprint compares the heap before and after. It counts the text of a key if the peer keeps it.
func (r *Results) footprint(peer peers.KeyedPeer, keys int) error {
	heap, resident := memoryInUse()
	made, err := peer.New(held)
	if err != nil {
		return fmt.Errorf("measure: %s: %w", peer.Name, err)
	}
	defer peers.Close(made)
	if err := fill(made, 0, keys); err != nil {
		return fmt.Errorf("measure: %s: %w", peer.Name, err)
	}
	if err := remembers(made, keys); err != nil {
		return fmt.Errorf("measure: %s: %w", peer.Name, err)
	}
	heapAfter, residentAfter := memoryInUse()
	median, least := fullCollection()
	r.Footprints = append(r.Footprints, Footprint{
		Peer: peer.Name, Keys: keys, FullGC: median, LeastGC: least,
		Heap:     (heapAfter - heap) / float64(keys),
		Resident: (residentAfter - resident) / float64(keys),
	})
	runtime.KeepAlive(made)
	return nil
}

// memoryInUse returns the memory after a collection.
func memoryInUse() (heap, resident float64) {
	runtime.GC() // twice: the second frees what finalizers released
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc), residentMemory()
}

// residentMemory returns 0 without /proc.
func residentMemory() float64 {
	content, err := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(content)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return float64(pages) * float64(os.Getpagesize())
}

func fullCollection() (median, least time.Duration) {
	var series Series
	for range 11 {
		start := time.Now()
		runtime.GC()
		series = append(series, float64(time.Since(start)))
	}
	low, _ := series.Range()
	return time.Duration(series.Median()), time.Duration(low)
}

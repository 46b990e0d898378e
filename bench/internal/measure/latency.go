package measure

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

// Latency is the time of single decisions of one worker in a phase, including two readings of the clock. The row of
// the loop shows the machine's own delays.
type Latency struct {
	Peer, Phase             string
	Ops                     int
	Median, P99, P9999, Max time.Duration
	Forgotten               int // keys evicted meanwhile; -1 if the peer does not report it
}

// Phases of a Latency.
const (
	Growth     = "growth"     // a new peer and keys that never repeat
	Forgetting = "forgetting" // all keys except a few have become idle
)

// idleAfter is the time after which a key becomes idle, in the phase of eviction.
const idleAfter = 500 * time.Millisecond

func (r *Results) latencies() error {
	for _, peer := range r.Config.Keyeds {
		if r.Config.leavesOut(peer, r.Config.MemoryKeys) {
			continue
		}
		r.Config.Progress("worst decisions: %s", peer.Name)
		if err := r.growth(peer, 2*r.Config.MemoryKeys); err != nil {
			return fmt.Errorf("measure: %s: growth: %w", peer.Name, err)
		}
		if err := r.forgetting(peer, r.Config.MemoryKeys); err != nil {
			return fmt.Errorf("measure: %s: forgetting: %w", peer.Name, err)
		}
	}
	return nil
}

// growth gives an empty peer many new keys, so that its storage doubles many times.
func (r *Results) growth(peer peers.KeyedPeer, keys int) error {
	made, err := peer.New(held)
	if err != nil {
		return err
	}
	defer peers.Close(made)
	memoryInUse()
	times := make([]uint32, keys)
	for i := range times {
		if times[i], err = timed(made, workload.Key(i)); err != nil {
			return err
		}
	}
	r.Latencies = append(r.Latencies, summary(peer.Name, Growth, times, -1))
	return remembers(made, keys)
}

// forgetting fills a peer, lets all keys become idle, and then alternates between fresh keys and a few busy keys.
func (r *Results) forgetting(peer peers.KeyedPeer, keys int) error {
	made, err := peer.New(peers.Limit{
		Burst: 2, Refill: idleAfter / 2, Window: idleAfter, LogCount: 2, LogPeriod: idleAfter, Idle: idleAfter,
	})
	if err != nil {
		return err
	}
	defer peers.Close(made)
	if err := fill(made, 0, keys); err != nil {
		return err
	}
	memoryInUse()
	time.Sleep(2 * idleAfter) // two windows, for limits that weigh the previous one
	const busy = 1000
	times := make([]uint32, 2*keys)
	for i := range times {
		key := workload.Key(keys + i) // fresh
		if i%2 == 1 {
			key = workload.Key(i / 2 % busy)
		}
		if times[i], err = timed(made, key); err != nil {
			return err
		}
	}
	forgotten := -1
	if counter, ok := made.(peers.Counter); ok {
		forgotten = 2*keys - counter.Len()
	}
	r.Latencies = append(r.Latencies, summary(peer.Name, Forgetting, times, forgotten))
	return nil
}

// timed returns the time of one decision in ns, up to 4 s.
func timed(peer peers.Keyed, key string) (uint32, error) {
	start := time.Now()
	_, err := peer.Take(key)
	return uint32(min(time.Since(start), math.MaxUint32)), err
}

func summary(peer, phase string, times []uint32, forgotten int) Latency {
	slices.Sort(times)
	at := func(q float64) time.Duration { return time.Duration(quantile(times, q)) }
	return Latency{
		Peer: peer, Phase: phase, Ops: len(times), Forgotten: forgotten,
		Median: at(0.5), P99: at(0.99), P9999: at(0.9999), Max: at(1),
	}
}

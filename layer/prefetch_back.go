package layer

import (
	"context"
	"time"

	"github.com/weirflow/weir"
)

// drop gives back a stock whose time has ended. The caller holds the lock of s.
func (p *Prefetched) drop(s *stock, now time.Duration) {
	if s.left > 0 && now >= s.ends {
		p.sendLater(p.back(s, now))
	}
}

// change gives back a stock whose key has other limits now. The caller holds the lock of s.
func (p *Prefetched) change(s *stock, rule *weir.Rule) {
	p.sendLater(p.back(s, p.now()))
	s.rule, s.used = rule, 0
}

func (p *Prefetched) sendLater(back []weir.Call) {
	if len(back) > 0 {
		go p.send(back)
	}
}

// back empties the stock, and returns the undo of the units that certainly still count. There may be none: a
// bucket has refilled meanwhile, or the window may end before the units are back. The caller holds the lock of s.
func (p *Prefetched) back(s *stock, now time.Duration) []weir.Call {
	f := factsOf(s.rule)
	sameWindow := f.limits[0].refill == weir.RefillWindow && now+returnTime < s.ends
	n := f.outstanding(s.left, max(now-s.took, 0)+returnTime, sameWindow)
	p.counts.lost.Add(uint64(s.left - n))
	s.left, s.block = 0, s.block/2
	if n == 0 {
		return nil
	}
	q := weir.Request{Rule: s.rule, Key: s.name.key, Colocation: s.name.colocation, Cost: n}
	return []weir.Call{{Op: weir.OpReturn, Requests: []weir.Request{q}, Taken: s.taken}}
}

// send gives units back at the engine.
func (p *Prefetched) send(calls []weir.Call) {
	for len(calls) > 0 {
		n := min(len(calls), returnsBatch)
		batch := &weir.Batch{Calls: calls[:n], Results: make([]weir.Result, n)}
		ctx, cancel := context.WithTimeout(context.Background(), returnTime)
		_, err := guarded(ctx, weir.Call{Op: weir.OpEach, Each: batch}, p.next)
		cancel()
		for i, r := range batch.Results {
			if cost := uint64(calls[i].Requests[0].Cost); err == nil && r.Err == nil {
				p.counts.returned.Add(cost)
			} else {
				p.counts.lost.Add(cost)
			}
		}
		calls = calls[n:]
	}
}

// sweep starts the goroutine that looks for idle stocks, while there are any.
func (p *Prefetched) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.sweeping && !p.closed.Load() {
		p.sweeping = true
		go p.sweepAll()
	}
}

func (p *Prefetched) sweepAll() {
	tick := time.NewTicker(max(p.options.MaxAge/8, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-p.end:
			return
		case <-tick.C:
		}
		p.send(p.idle(p.now(), false))
		p.mu.Lock()
		if p.keys.Load() == 0 {
			p.sweeping = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}

// idle takes out the stocks that were not used lately, or all of them, and forgets keys without one.
func (p *Prefetched) idle(now time.Duration, all bool) (back []weir.Call) {
	for i := range p.shards {
		shard := &p.shards[i]
		shard.mu.Lock()
		for name, s := range shard.all {
			s.mu.Lock()
			rests := now - s.used
			if s.left > 0 && s.fill == nil && (all || now >= s.ends || rests >= p.options.MaxAge/4) {
				back = append(back, p.back(s, now)...)
			}
			if s.gone = s.left == 0 && s.fill == nil && (all || rests > p.options.MaxAge); s.gone {
				delete(shard.all, name)
				p.keys.Add(-1)
			}
			s.mu.Unlock()
		}
		shard.mu.Unlock()
	}
	return back
}

// Close gives back all units that were taken ahead. Later calls go to the engine.
func (p *Prefetched) Close() {
	if !p.closed.Swap(true) {
		close(p.end)
	}
	p.send(p.idle(p.now(), true))
}

// PrefetchStats count the units taken ahead.
type PrefetchStats struct {
	Keys     int    // keys that are looked at
	Out      int64  // units taken ahead that are not used
	Here     uint64 // takes that were decided here
	Asked    uint64 // takes that asked the engine
	Returned uint64 // units that went back
	Lost     uint64 // units that did not, because they were refilled or their window ended
}

// Stats returns the current counts.
func (p *Prefetched) Stats() PrefetchStats {
	c := &p.counts
	stats := PrefetchStats{Keys: int(p.keys.Load()), Here: c.here.Load(), Asked: c.asked.Load(), Returned: c.returned.Load(), Lost: c.lost.Load()}
	for i := range p.shards {
		shard := &p.shards[i]
		shard.mu.RLock()
		for _, s := range shard.all {
			s.mu.Lock()
			stats.Out += s.left
			s.mu.Unlock()
		}
		shard.mu.RUnlock()
	}
	return stats
}

// now returns the time since just before p began, so that 0 is no instant.
func (p *Prefetched) now() time.Duration { return p.clock.since(p.began) + 1 }

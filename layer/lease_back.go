package layer

import (
	"context"
	"time"

	"github.com/weirflow/weir"
)

// drop gives back a stock whose time has ended. The caller holds the lock of s.
func (l *Leased) drop(s *stock, now time.Duration) {
	if s.left > 0 && now >= s.ends {
		l.sendLater(l.back(s, now))
	}
}

// change gives back a stock whose key has other limits now. The caller holds the lock of s.
func (l *Leased) change(s *stock, rule *weir.Rule) {
	l.sendLater(l.back(s, l.now()))
	s.rule, s.used = rule, 0
}

func (l *Leased) sendLater(back []weir.Call) {
	if len(back) > 0 {
		go l.send(back)
	}
}

// back takes what is left out of the stock, and returns the undo of what of it certainly still counts. It may be none: a
// bucket has refilled meanwhile, or the window may end before the units are back. The caller holds the lock of s.
func (l *Leased) back(s *stock, now time.Duration) []weir.Call {
	f := factsOf(s.rule)
	sameWindow := f.limits[0].refill == weir.RefillWindow && now+returnTime < s.ends
	n := f.outstanding(s.left, max(now-s.took, 0)+returnTime, sameWindow)
	l.counts.lost.Add(uint64(s.left - n))
	s.left, s.block = 0, s.block/2
	if n == 0 {
		return nil
	}
	q := weir.Request{Rule: s.rule, Key: s.name.key, Colocation: s.name.colocation, Cost: n}
	return []weir.Call{{Op: weir.OpReturn, Requests: []weir.Request{q}, Taken: s.taken}}
}

// send gives units back at the engine.
func (l *Leased) send(calls []weir.Call) {
	for len(calls) > 0 {
		n := min(len(calls), returnsBatch)
		batch := &weir.Batch{Calls: calls[:n], Results: make([]weir.Result, n)}
		ctx, cancel := context.WithTimeout(context.Background(), returnTime)
		_, err := guarded(ctx, weir.Call{Op: weir.OpEach, Each: batch}, l.next)
		cancel()
		for i, r := range batch.Results {
			if cost := uint64(calls[i].Requests[0].Cost); err == nil && r.Err == nil {
				l.counts.returned.Add(cost)
			} else {
				l.counts.lost.Add(cost)
			}
		}
		calls = calls[n:]
	}
}

// sweep starts the goroutine that looks for idle stocks, while there are any.
func (l *Leased) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.sweeping && !l.closed.Load() {
		l.sweeping = true
		go l.sweepAll()
	}
}

func (l *Leased) sweepAll() {
	tick := time.NewTicker(max(l.options.Hold/8, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-l.end:
			return
		case <-tick.C:
		}
		l.send(l.idle(l.now(), false))
		l.mu.Lock()
		if l.keys.Load() == 0 {
			l.sweeping = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}

// idle takes out the stocks that were not used lately, or all of them, and forgets keys without one.
func (l *Leased) idle(now time.Duration, all bool) (back []weir.Call) {
	for i := range l.shards {
		shard := &l.shards[i]
		shard.mu.Lock()
		for name, s := range shard.all {
			s.mu.Lock()
			rests := now - s.used
			if s.left > 0 && s.fill == nil && (all || now >= s.ends || rests >= l.options.Hold/4) {
				back = append(back, l.back(s, now)...)
			}
			if s.gone = s.left == 0 && s.fill == nil && (all || rests > l.options.Hold); s.gone {
				delete(shard.all, name)
				l.keys.Add(-1)
			}
			s.mu.Unlock()
		}
		shard.mu.Unlock()
	}
	return back
}

// Close gives back all that is out on lease. Later calls go to the engine.
func (l *Leased) Close() {
	if !l.closed.Swap(true) {
		close(l.end)
	}
	l.send(l.idle(l.now(), true))
}

// LeaseStats say what is out on lease.
type LeaseStats struct {
	Keys     int    // that are looked at
	Out      int64  // units on lease
	Here     uint64 // takes that were decided here
	Asked    uint64 // takes that asked the engine
	Returned uint64 // units that went back
	Lost     uint64 // units that did not, because they have come back by themselves, or their window ended
}

// Stats returns the current counts.
func (l *Leased) Stats() LeaseStats {
	c := &l.counts
	stats := LeaseStats{Keys: int(l.keys.Load()), Here: c.here.Load(), Asked: c.asked.Load(), Returned: c.returned.Load(), Lost: c.lost.Load()}
	for i := range l.shards {
		shard := &l.shards[i]
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

// now returns the time since just before l began, so that 0 is no instant.
func (l *Leased) now() time.Duration { return l.clock.since(l.began) + 1 }

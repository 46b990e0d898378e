package layer

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// GuardStats count the work of a Guard, done and in progress.
type GuardStats struct {
	Away     bool   // the policy answers, and the engine is only tried
	Opened   uint64 // how often the engine went away
	Failures uint64 // failures of calls of the engine

	Denied  uint64 // calls that Deny answered
	Allowed uint64 // calls that Allow answered
	Local   uint64 // calls that Local answered, and
	Refused uint64 // takes among these that it refused

	Hanging  int    // calls that their callers have left
	Owed     int    // keys with units to record
	Queued   int    // settlements to make
	Recorded uint64 // units that the engine has recorded
	Lost     uint64 // units that it could not record, or that were not given back because their time is unknown

	RoundTrip time.Duration // to the engine, on average; 0 before it is known
	// DeadlineTooShort reports that Deadline is below three round trips: healthy calls may miss it.
	DeadlineTooShort bool
}

// Stats returns the current counts.
func (g *Guarded) Stats() GuardStats {
	g.owed.mu.Lock()
	keys, queued := len(g.owed.debts), len(g.owed.queue)
	g.owed.mu.Unlock()
	c := &g.counts
	trip := time.Duration(g.trips.average.Load())
	return GuardStats{
		Away: g.breaker.open.Load(), Opened: c.opened.Load(), Failures: c.failures.Load(),
		Denied: c.denied.Load(), Allowed: c.allowed.Load(), Local: c.local.Load(), Refused: c.refused.Load(),
		Hanging: int(g.detached.hanging.Load()), Owed: keys, Queued: queued, Recorded: c.recorded.Load(), Lost: c.lost.Load(),
		RoundTrip: trip, DeadlineTooShort: g.tooShort(trip),
	}
}

// tooShort reports whether the deadline is below three round trips.
func (g *Guarded) tooShort(trip time.Duration) bool { return g.options.Deadline < 3*trip }

// trips are the measured round trips, of answers alone: an outage says nothing about the way to the engine.
type trips struct {
	average  atomic.Int64
	measured atomic.Int64
	told     atomic.Bool
	asking   atomic.Bool // a call of measure is under way
}

// tripsKnown is how many round trips it takes to judge the deadline.
const tripsKnown = 8

// add adds a round trip, and warns once if the deadline is too short.
func (t *trips) add(g *Guarded, trip time.Duration) {
	n := t.measured.Add(1)
	average := t.average.Load()
	average += (int64(trip) - average) / min(n, tripsKnown)
	t.average.Store(average)
	if n >= tripsKnown && g.tooShort(time.Duration(average)) && !t.told.Swap(true) {
		g.log(slog.LevelWarn, "the deadline is below three round trips to the engine", slog.Duration("deadline", g.options.Deadline), slog.Duration("trip", time.Duration(average)))
	}
}

// measureOver is how much longer than the deadline measure waits for an answer.
const measureOver = 10

// measure finds the round trip to an engine that has answered a probe too late. It may be slow rather than away.
func (g *Guarded) measure(probe weir.Call) {
	if probe.Op == weir.OpEach && len(probe.Each.Calls) > 0 {
		probe = probe.Each.Calls[0]
	}
	if len(probe.Requests) == 0 || g.trips.asking.Swap(true) {
		return
	}
	peek := weir.Call{Op: weir.OpPeek, Requests: slices.Clone(probe.Requests)}
	go func() {
		defer g.trips.asking.Store(false)
		began := time.Now()
		if _, err := g.within(context.Background(), peek, measureOver*g.options.Deadline, g.next); err == nil {
			g.trips.add(g, time.Since(began))
		}
	}()
}

// changes tells of changes in order, on a goroutine of its own. While OnChange does not return, the oldest of them are
// dropped, in pairs, so that reports still alternate.
type changes struct {
	mu      sync.Mutex
	waiting []GuardChange
	telling bool
}

const mostChanges = 64

func (c *changes) add(g *Guarded, change GuardChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= mostChanges {
		c.waiting = slices.Delete(c.waiting, 0, 2)
	}
	c.waiting = append(c.waiting, change)
	if !c.telling {
		c.telling = true
		go c.tell(g)
	}
}

func (c *changes) tell(g *Guarded) {
	for {
		c.mu.Lock()
		if len(c.waiting) == 0 {
			c.telling = false
			c.mu.Unlock()
			return
		}
		change := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.mu.Unlock()
		g.told(change)
	}
}

// log writes a line. A logger that panics in the background would end the program.
func (g *Guarded) log(level slog.Level, line string, attrs ...slog.Attr) {
	defer func() { _ = recover() }()
	g.options.Logger.LogAttrs(context.Background(), level, "layer: guard: "+line, attrs...)
}

// told logs a change and calls the function of the program, which may panic.
func (g *Guarded) told(change GuardChange) {
	defer func() {
		if p := recover(); p != nil {
			g.log(slog.LevelError, "OnChange panicked", slog.Any("panic", p))
		}
	}()
	if change.Away {
		g.log(slog.LevelWarn, "the engine is away, and the policy answers", slog.String("policy", g.options.policies()), slog.Any("cause", change.Cause))
	} else {
		g.log(slog.LevelInfo, "the engine is back")
	}
	if g.options.OnChange != nil {
		g.options.OnChange(change)
	}
}

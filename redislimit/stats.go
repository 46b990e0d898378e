package redislimit

import "sync/atomic"

// counters are Stats as they are counted.
type counters struct {
	calls, decisions, late, givenBack atomic.Uint64
	inFlight, undoing                 atomic.Int64
}

// Stats count what an engine did since it was made, and what is under way.
type Stats struct {
	Calls     uint64 // calls of the script
	Decisions uint64 // decided by them
	Late      uint64 // whose answer came after their caller had gone
	GivenBack uint64 // of these, admitted ones that were given back

	Queued   int // decisions that wait for a call just now
	InFlight int // calls that are out just now
	Undoing  int // takes that are being undone just now
}

// Stats are the counts so far.
func (e *Engine) Stats() Stats {
	queued := 0
	lanes := e.committers()
	for i := range lanes {
		queued += lanes[i].waiting()
	}
	return Stats{
		Queued:    queued,
		InFlight:  int(e.stats.inFlight.Load()),
		Undoing:   int(e.stats.undoing.Load()),
		Calls:     e.stats.calls.Load(),
		Decisions: e.stats.decisions.Load(),
		Late:      e.stats.late.Load(),
		GivenBack: e.stats.givenBack.Load(),
	}
}

package redislimit

import "sync/atomic"

// counters are the counters of Stats.
type counters struct {
	calls, decisions, late, givenBack, abandoned, unrecorded atomic.Uint64
	inFlight, undoing                                        atomic.Int64
	unheard                                                  atomic.Int64 // calls in flight whose callers have left
}

// mostUndoing bounds the undos and releases that an engine repeats.
const mostUndoing = 10_000

// Stats counts what an engine has done, and what is in progress.
type Stats struct {
	Calls     uint64 // calls of the script
	Decisions uint64 // made by them
	Late      uint64 // answered after their caller had gone
	GivenBack uint64 // late admitted decisions that were undone
	Abandoned uint64 // undos that were given up; their units stay spent
	// Unrecorded counts records that a log or gate refused because it has too many entries; their costs are not
	// counted.
	Unrecorded uint64

	Queued   int // decisions that are waiting for a call
	InFlight int // calls in flight
	Undoing  int // takes that are being undone
	Held     int // slots of reservations that are renewed, or whose release is repeated, by key
}

// Stats returns the current counts.
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
		Held:      e.holds.number(),
		Calls:     e.stats.calls.Load(),
		Decisions: e.stats.decisions.Load(),
		Late:      e.stats.late.Load(),
		GivenBack: e.stats.givenBack.Load(),
		Abandoned: e.stats.abandoned.Load(),

		Unrecorded: e.stats.unrecorded.Load(),
	}
}

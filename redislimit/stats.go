package redislimit

// Stats counts the work of an engine, done and in progress.
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
	return Stats{
		Queued:    e.calls.Queued(),
		InFlight:  int(e.calls.Stats.InFlight.Load()),
		Undoing:   e.calls.Undoing(),
		Held:      e.keeper.Number(),
		Calls:     e.calls.Stats.Calls.Load(),
		Decisions: e.calls.Stats.Decisions.Load(),
		Late:      e.calls.Stats.Late.Load(),
		GivenBack: e.calls.Stats.GivenBack.Load(),
		Abandoned: e.calls.Stats.Abandoned.Load(),

		Unrecorded: e.calls.Stats.Unrecorded.Load(),
	}
}

package line

// length returns the number of waiters and bookings.
func (l *line) length() int { return l.queue.Len() + len(l.bookings) }

// full reports whether the line has no room.
func (l *line) full() bool { return l.length() >= l.owner.Capacity }

// arrive notes an arrival and returns its number.
func (l *line) arrive(cost, at int64) uint64 {
	l.arrivals++
	l.smallest, l.largest, l.newest = min(l.smallest, cost), max(l.largest, cost), max(l.newest, at)
	return l.arrivals
}

// inTurn reports whether all waiters arrived before the head of the line is due and none has a promised instant. Then
// only the costs determine the releases.
func (l *line) inTurn() bool { return len(l.bookings) == 0 && !l.ranBack }

// single reports whether all waiters go in order of arrival.
func (l *line) single() bool { return l.queue.Single() && len(l.owner.Weights) < 2 }

// flowFor returns the flow that a newcomer joins. Behind a booking all go in order of arrival, because its instant was
// promised.
func (l *line) flowFor(flow Flow) Flow {
	if len(l.bookings) > 0 {
		return l.queue.Own()
	}
	return flow
}

// hopeless reports whether w can never be released, after a change of the limit.
func (l *line) hopeless(w *Waiter) bool { return w.Cost > l.subject.algorithm.Capacity() }

// weight returns the weight of a flow for a turn that names one, or 0.
func (q *Lines) weight(flow Flow, named int64) int64 {
	switch {
	case named > 0:
		return named
	case flow.Name == "" && flow.Class < len(q.Weights):
		return q.Weights[flow.Class]
	}
	return 1
}

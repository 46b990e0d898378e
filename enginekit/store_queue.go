package enginekit

import "slices"

// mostAsks bounds the asks of a flight.
const mostAsks = 4096

// enter queues asks in order, and sends what can leave.
func (e *StoreEngine) enter(asks ...*question) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ready := false
	for _, a := range asks {
		for i := range a.call.Parts {
			r := e.row(rowKey(&a.call.Parts[i]))
			at := slices.Index(a.rows, r)
			if at < 0 {
				at = len(a.rows)
				a.rows = append(a.rows, r)
				ready = ready || !r.busy && r.queued == 0
				r.queued++
			}
			a.at = append(a.at, at)
		}
		e.queue = append(e.queue, a)
	}
	if ready {
		e.dispatch()
	}
}

// row returns the row of a key. It forgets another one if there are too many. The caller holds the mutex.
func (e *StoreEngine) row(key string) *row {
	if r := e.rows[key]; r != nil {
		return r
	}
	if len(e.rows) >= e.options.Rows {
		for name, r := range e.rows {
			if !r.busy && r.queued == 0 {
				delete(e.rows, name)
				break
			}
		}
	}
	r := &row{key: key}
	e.rows[key] = r
	return r
}

// dispatch starts flights with the asks whose rows are not busy. The caller holds the mutex.
func (e *StoreEngine) dispatch() {
	for e.flights < e.options.Flights {
		batch := e.batch()
		if len(batch) == 0 {
			return
		}
		e.flights++
		go e.fly(batch)
	}
}

// batch takes the asks of a flight out of the queue, in order. An ask that uses a busy row stays, and so do later asks for
// any of its rows: none goes before it. The caller holds the mutex.
func (e *StoreEngine) batch() (batch []*question) {
	taken, kept := map[*row]bool{}, map[*row]bool{}
	rest := e.queue[:0]
	for i, a := range e.queue {
		if len(taken) >= e.options.Batch || len(batch) >= mostAsks {
			rest = append(rest, e.queue[i:]...)
			break
		}
		if slices.ContainsFunc(a.rows, func(r *row) bool { return r.busy || kept[r] }) {
			for _, r := range a.rows {
				kept[r] = true
			}
			rest = append(rest, a)
			continue
		}
		for _, r := range a.rows {
			r.queued--
			taken[r] = true
		}
		a.place = inFlight
		batch = append(batch, a)
	}
	clear(e.queue[len(rest):])
	e.queue = rest
	for r := range taken {
		r.busy = true
	}
	return batch
}

// release frees rows for other flights. The caller holds the mutex.
func (e *StoreEngine) release(rows []*row) {
	for _, r := range rows {
		r.busy, r.group, r.next, r.changed, r.loaded, r.conflicts = false, nil, nil, false, false, 0
	}
}

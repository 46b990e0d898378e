package filter

import "container/heap"

// turns chooses the next held line. The lines of a key keep their order.
type turns interface {
	add(key string, l *line, now int64)
	// due returns when the next line may pass. There must be a line.
	due() int64
	// next removes and returns the line that is due, or nil if the limit refuses it after all.
	next(now int64) *line
}

// lane holds the lines of one key, in order. It exists while the key has lines.
type lane struct {
	key   string
	lines []*line
	due   int64 // when the first line is due
}

func (l *lane) pop() *line {
	first := l.lines[0]
	l.lines[0] = nil
	l.lines = l.lines[1:]
	return first
}

// lanes are found by key.
type lanes map[string]*lane

// add appends a line to the lane of its key and reports whether the lane is new.
func (m lanes) add(key string, l *line) (_ *lane, begun bool) {
	a := m[key]
	if a == nil {
		a = &lane{key: key}
		m[key] = a
	}
	a.lines = append(a.lines, l)
	return a, len(a.lines) == 1
}

// apart gives each key a limit of its own. Lines that are due at the same instant pass in the order of the input.
type apart struct {
	gate  *gate
	lanes lanes
	heap  laneHeap
	count int64
}

func newApart(g *gate) *apart { return &apart{gate: g, lanes: lanes{}} }

func (a *apart) add(key string, l *line, now int64) {
	l.number = a.count
	a.count++
	if lane, begun := a.lanes.add(key, l); begun {
		lane.due = a.gate.due(key, l.asked, now, 1)
		heap.Push(&a.heap, lane)
	}
}

func (a *apart) due() int64 { return a.heap[0].due }

func (a *apart) next(now int64) *line {
	lane := a.heap[0]
	again, spent := a.gate.spend(lane.key, lane.lines[0].asked, now, 1)
	if !spent {
		lane.due = again
		heap.Fix(&a.heap, 0)
		return nil
	}
	l := lane.pop()
	if len(lane.lines) == 0 {
		heap.Pop(&a.heap)
		delete(a.lanes, lane.key)
		return l
	}
	lane.due = a.gate.due(lane.key, lane.lines[0].asked, now, 1)
	heap.Fix(&a.heap, 0)
	return l
}

// laneHeap orders lanes by the time at which their first line is due.
type laneHeap []*lane

func (h laneHeap) Len() int { return len(h) }

func (h laneHeap) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].lines[0].number < h[j].lines[0].number
}

func (h laneHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *laneHeap) Push(x any) { *h = append(*h, x.(*lane)) }

func (h *laneHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}

// shared gives keys turns of one line each under one limit.
type shared struct {
	gate  *gate
	lanes lanes
	ring  []*lane // the next turn comes first
	at    int64   // when the next turn is due
}

func newShared(g *gate) *shared { return &shared{gate: g, lanes: lanes{}} }

func (s *shared) add(key string, l *line, now int64) {
	lane, begun := s.lanes.add(key, l)
	if !begun {
		return
	}
	s.ring = append(s.ring, lane)
	if len(s.ring) == 1 {
		s.plan(now)
	}
}

func (s *shared) plan(now int64) {
	s.at = s.gate.due("", s.ring[0].lines[0].asked, now, 1)
}

func (s *shared) due() int64 { return s.at }

func (s *shared) next(now int64) *line {
	again, spent := s.gate.spend("", s.ring[0].lines[0].asked, now, 1)
	if !spent {
		s.at = again
		return nil
	}
	lane := s.ring[0]
	s.ring[0] = nil
	s.ring = s.ring[1:]
	l := lane.pop()
	if len(lane.lines) > 0 {
		s.ring = append(s.ring, lane)
	} else {
		delete(s.lanes, lane.key)
	}
	if len(s.ring) > 0 {
		s.plan(now)
	}
	return l
}

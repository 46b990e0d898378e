package histories

import "slices"

// weights are those of the flows. Tags are virtual time in halves, so that they are whole for both weights.
var weights = [...]int64{1, 1, 2}

const tagsPerUnit = 2

// flows is the model's state of start-time fair queueing. It is forgotten with the line.
type flows struct {
	virtual int64               // the start of the caller served last
	finish  [len(weights)]int64 // of the last caller served
	arrived int
}

// place is the place of a caller. The first caller of a flow has a start; a first caller that leaves passes it on, with
// its number.
type place struct {
	flow, number int
	start        int64
}

func (s *standing) first(flow int) int {
	return slices.IndexFunc(s.line, func(c caller) bool { return c.place.flow == flow })
}

// enter returns the place of a newcomer. A flow starts at virtual time, rounded up to its units, or at its finish.
func (s *standing) enter(flow int) place {
	s.flows.arrived++
	p := place{flow: flow, number: s.flows.arrived}
	if s.first(flow) < 0 {
		unit := tagsPerUnit / weights[flow]
		p.start = max((s.flows.virtual+unit-1)/unit*unit, s.flows.finish[flow])
	}
	return p
}

// remove removes a caller that did not go.
func (s *standing) remove(i int) {
	gone := s.line[i].place
	heads := s.first(gone.flow) == i
	s.line = slices.Delete(s.line, i, i+1)
	if next := s.first(gone.flow); heads && next >= 0 {
		s.line[next].place = gone
	}
	s.end()
}

// serve removes a caller that goes, and charges its flow.
func (s *standing) serve(i int) {
	c := s.line[i]
	finish := c.place.start + c.cost*tagsPerUnit/weights[c.place.flow]
	s.flows.virtual, s.flows.finish[c.place.flow] = c.place.start, finish
	s.line = slices.Delete(s.line, i, i+1)
	if next := s.first(c.place.flow); next >= 0 {
		s.line[next].place.start = finish
	}
	s.end()
}

func (s *standing) end() {
	if len(s.line) == 0 {
		s.flows = flows{}
	}
}

// sort puts the caller first that goes next: the first of a flow with the earliest start, and of equal ones with the
// earliest arrival. Without flows it is first already.
func (s *standing) sort() {
	next := -1
	for i, c := range s.line {
		if s.first(c.place.flow) == i && (next < 0 || c.place.before(s.line[next].place)) {
			next = i
		}
	}
	c := s.line[next]
	s.line = slices.Insert(slices.Delete(s.line, next, next+1), 0, c)
}

func (p place) before(q place) bool {
	return p.start < q.start || p.start == q.start && p.number < q.number
}

package calls

// queue holds the submissions that wait for a call, oldest first. Removing any of them takes constant time.
type queue struct {
	first, last *Submission
	decisions   int
}

func (q *queue) push(s *Submission) {
	s.place = place{before: q.last, waiting: true}
	if q.last != nil {
		q.last.place.behind = s
	} else {
		q.first = s
	}
	q.last = s
	q.decisions += len(s.Decisions)
}

// remove removes s and reports whether it was in the queue.
func (q *queue) remove(s *Submission) bool {
	if !s.place.waiting {
		return false
	}
	before, behind := s.place.before, s.place.behind
	if before != nil {
		before.place.behind = behind
	} else {
		q.first = behind
	}
	if behind != nil {
		behind.place.before = before
	} else {
		q.last = before
	}
	s.place = place{}
	q.decisions -= len(s.Decisions)
	return true
}

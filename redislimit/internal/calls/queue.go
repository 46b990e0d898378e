package calls

// queue holds the submissions that wait for a call, oldest first. Removing any of them takes constant time.
type queue struct {
	first, last *Submission
	decisions   int
}

func (q *queue) push(s *Submission) {
	s.position = position{before: q.last, waiting: true}
	if q.last != nil {
		q.last.position.behind = s
	} else {
		q.first = s
	}
	q.last = s
	q.decisions += len(s.Decisions)
}

// remove removes s and reports whether it was in the queue.
func (q *queue) remove(s *Submission) bool {
	if !s.position.waiting {
		return false
	}
	before, behind := s.position.before, s.position.behind
	if before != nil {
		before.position.behind = behind
	} else {
		q.first = behind
	}
	if behind != nil {
		behind.position.before = before
	} else {
		q.last = before
	}
	s.position = position{}
	q.decisions -= len(s.Decisions)
	return true
}

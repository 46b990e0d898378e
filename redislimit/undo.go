package redislimit

import (
	"cmp"
	"time"
)

// How an undo that failed is repeated.
const (
	undoPause     = 50 * time.Millisecond // doubles with each try
	undoPauseMost = 5 * time.Second
	undoLongest   = time.Minute // as long as Redis knows an identity
)

// undo is a take that the engine undoes in the background.
type undo struct {
	engine *Engine
	what   []decision // undos, or a take up to that is asked again to learn what to undo
	until  time.Time  // later the undo would bring nothing back
	pause  time.Duration
	task   task
}

// undoUnanswered undoes a take with an identity that may have been made.
func (e *Engine) undoUnanswered(asked decision) {
	if asked.op == opUpTo { // how often it took the costs is unknown: Redis answers again, and then undoes that
		e.undoLater(asked)
		return
	}
	e.undoLater(asked.undoOf(1))
}

// undoLater undoes takes of one lane. It repeats an undo with an identity that failed, because Redis undoes that once,
// and only if it knows the take. It drops any other undo that failed: the next server may be one without the take.
func (e *Engine) undoLater(what ...decision) {
	if e.stats.undoing.Load() >= mostUndoing {
		e.stats.abandoned.Add(1)
		return
	}
	effect := time.Duration(0)
	for i := range what {
		effect = max(effect, duration(int64(what[i].spent())))
	}
	u := &undo{engine: e, what: what, until: time.Now().Add(min(effect, undoLongest)), pause: undoPause}
	u.task.run, u.task.dropped = func(time.Time) { u.send() }, u.abandon
	e.stats.undoing.Add(1)
	u.send()
}

func (u *undo) send() {
	s := &submission{done: make(chan struct{}, 1), decisions: make([]decision, len(u.what))}
	for i := range u.what {
		s.decisions[i] = u.what[i]
		s.decisions[i].parts = append([]part(nil), u.what[i].parts...)
	}
	s.after = func() { u.answered(s) }
	u.engine.committer(s.lane()).send(s)
}

// answered ends the undo or plans the next try.
func (u *undo) answered(s *submission) {
	var left []decision
	for i := range s.decisions {
		err := cmp.Or(s.err, s.decisions[i].err)
		if err == nil {
			if u.what[i].op == opUpTo {
				u.engine.undoLater(s.decisions[i].undoOf(s.decisions[i].count()))
			}
			continue
		}
		if u.what[i].identity == "" {
			u.engine.stats.abandoned.Add(1)
			continue
		}
		left = append(left, u.what[i])
	}
	next := time.Now().Add(u.pause)
	u.what, u.pause = left, min(2*u.pause, undoPauseMost)
	if len(left) == 0 || next.After(u.until) {
		u.abandon()
		return
	}
	u.engine.background.at(next, &u.task)
}

// abandon ends the undo, and gives up what is left of it.
func (u *undo) abandon() {
	u.engine.stats.abandoned.Add(uint64(len(u.what)))
	u.engine.stats.undoing.Add(-1)
}

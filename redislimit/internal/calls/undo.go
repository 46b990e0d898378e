package calls

import (
	"cmp"
	"time"

	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// How an undo that failed is repeated.
const (
	undoPause     = 50 * time.Millisecond // doubles with each try
	undoPauseMost = 5 * time.Second
	undoLongest   = time.Minute // as long as Redis knows an identity
)

// MostUndoing bounds the undos and releases that an engine repeats.
const MostUndoing = 10_000

// undo is a take that the engine undoes in the background.
type undo struct {
	lanes *Lanes
	what  []wire.Decision // undos, or a take up to that is asked again to learn what to undo
	until time.Time       // later the undo would bring nothing back
	pause time.Duration
}

// UndoUnanswered undoes a take with an identity that may have been made.
func (l *Lanes) UndoUnanswered(asked wire.Decision) {
	if asked.Op == wire.OpUpTo { // how often it took the costs is unknown: Redis answers again, and then undoes that
		l.UndoLater(asked)
		return
	}
	l.UndoLater(asked.UndoOf(1))
}

// UndoLater undoes takes of one lane. It repeats an undo with an identity that failed, because Redis undoes that once,
// and only if it knows the take. It drops any other undo that failed: the next server may be one without the take.
func (l *Lanes) UndoLater(what ...wire.Decision) {
	if l.Stats.Undoing.Load() >= MostUndoing {
		l.Stats.Abandoned.Add(1)
		return
	}
	effect := time.Duration(0)
	for i := range what {
		effect = max(effect, stored.Duration(int64(what[i].Spent())))
	}
	u := &undo{lanes: l, what: what, until: time.Now().Add(min(effect, undoLongest)), pause: undoPause}
	l.Stats.Undoing.Add(1)
	u.send()
}

func (u *undo) send() {
	s := NewSubmission(make([]wire.Decision, len(u.what))...)
	for i := range u.what {
		s.Decisions[i] = u.what[i]
		s.Decisions[i].Parts = append([]wire.Part(nil), u.what[i].Parts...)
	}
	s.After = func() { u.answered(s) }
	u.lanes.Committer(s.lane()).Send(s)
}

// answered ends the undo or plans the next try.
func (u *undo) answered(s *Submission) {
	var left []wire.Decision
	for i := range s.Decisions {
		err := cmp.Or(s.Err, s.Decisions[i].Err)
		if err == nil {
			if u.what[i].Op == wire.OpUpTo {
				u.lanes.UndoLater(s.Decisions[i].UndoOf(s.Decisions[i].Count()))
			}
			continue
		}
		if u.what[i].Identity == "" {
			u.lanes.Stats.Abandoned.Add(1)
			continue
		}
		left = append(left, u.what[i])
	}
	pause := u.pause
	u.what, u.pause = left, min(2*pause, undoPauseMost)
	if len(left) == 0 || u.lanes.Closed.Load() || time.Now().Add(pause).After(u.until) {
		u.abandon()
		return
	}
	time.AfterFunc(pause, u.send)
}

// abandon ends the undo, and gives up what is left of it.
func (u *undo) abandon() {
	u.lanes.Stats.Abandoned.Add(uint64(len(u.what)))
	u.lanes.Stats.Undoing.Add(-1)
}

// late handles answers whose caller has gone: it undoes what they took.
func (l *Lanes) late(s *Submission) {
	if s.state.Load() == noCaller {
		return
	}
	defer l.Stats.Unheard.Add(-1) // after its undos count
	if s.Err != nil {
		return
	}
	for i := range s.Decisions {
		d := &s.Decisions[i]
		l.Stats.Late.Add(1)
		if d.Op == wire.OpBook && d.Admitted && d.Err == nil {
			l.Stats.GivenBack.Add(1)
			w := d.Withdrawal(d.Parts[0].Cost)
			w.Late, w.Sent = true, d.Sent
			l.UndoLater(w)
		}
		if d.Op == wire.OpTake && d.Admitted && d.Err == nil && d.Identity == "" { // with an identity it can be asked again
			l.Stats.GivenBack.Add(1)
			l.UndoLater(d.Undos(d.Count())...)
		}
	}
}

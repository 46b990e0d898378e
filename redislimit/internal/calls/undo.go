package calls

import (
	"cmp"
	"time"

	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// undoLongest is how long a failed undo is repeated: as long as Redis knows an identity.
const undoLongest = time.Minute

// newUndos returns the repeater of an engine's undos.
func newUndos() *enginekit.Repeater {
	return enginekit.NewRepeater(enginekit.RepeaterOptions{Most: 10_000, Pause: 50 * time.Millisecond, LongestPause: 5 * time.Second})
}

// undo is takes of one lane that the engine undoes in the background.
type undo struct {
	lanes *Lanes
	what  []wire.Decision // undos, or a take up to that is asked again to learn what to undo
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
	effect := time.Duration(0) // later an undo would bring nothing back
	for i := range what {
		effect = max(effect, stored.Duration(int64(what[i].Spent())))
	}
	u := &undo{l, what}
	l.undos.Try(0, time.Now().Add(min(effect, undoLongest)), u.send, func(end enginekit.Repeated) {
		if end != enginekit.RepeatedDone {
			l.Stats.Abandoned.Add(uint64(len(u.what)))
		}
	})
}

// Undoing returns how many undos are under way.
func (l *Lanes) Undoing() int { return int(l.Stats.Surplus.Load()) + l.undos.Stats().Pending }

func (u *undo) send(answered func(done bool)) {
	s := NewSubmission(make([]wire.Decision, len(u.what))...)
	for i := range u.what {
		s.Decisions[i] = u.what[i]
		s.Decisions[i].Parts = append([]wire.Part(nil), u.what[i].Parts...)
	}
	s.After = func() {
		u.keepFailed(s)
		answered(len(u.what) == 0)
	}
	u.lanes.Committer(s.lane()).Send(s)
}

// keepFailed leaves the undos that failed and can be repeated.
func (u *undo) keepFailed(s *Submission) {
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
	u.what = left
}

// late handles answers whose caller has gone: it undoes their takes.
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

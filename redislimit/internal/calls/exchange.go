package calls

import (
	"context"
	"math"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

var batches = sync.Pool{New: func() any { return new(wire.Batch) }}

// Run makes all decisions of the submissions with the script, in their order, and answers each. The script leaves
// decisions to another call if it has worked for long enough. run reports whether each call had an answer.
func (l *Lanes) Run(submissions []*Submission) (answered bool) {
	lane := submissions[0].lane()
	answered = true
	for len(submissions) > 0 {
		err := l.exchange(lane, submissions)
		if err != nil && (fault.Moving(err) || fault.Crossing(err)) {
			l.takeApart(submissions, err)
			return answered
		}
		answered = answered && (err == nil || !fault.Unanswered(err))
		for len(submissions) > 0 && (err != nil || submissions[0].Decided == len(submissions[0].Decisions)) {
			l.finish(submissions[0], submissions[0].failed(err))
			submissions = submissions[1:]
		}
	}
	return answered
}

// finish answers a submission.
func (l *Lanes) finish(s *Submission, err error) {
	s.Err = err
	s.compose()
	l.Stats.Decisions.Add(uint64(len(s.Decisions)))
	switch {
	case s.deliver():
	case s.After != nil:
		s.After()
	default:
		l.late(s)
	}
}

// exchange makes a call, and another one while the next decision wants other boundaries of a quota.
func (l *Lanes) exchange(lane int, submissions []*Submission) error {
	for {
		again, err := l.once(lane, submissions)
		if !again || err != nil {
			return err
		}
	}
}

// once makes one call: it sends the decisions and reads the answers. again reports that the next decision wants other
// boundaries.
func (l *Lanes) once(lane int, submissions []*Submission) (again bool, err error) {
	if l.Closed.Load() {
		return false, fault.ErrClosed
	}
	b := batches.Get().(*wire.Batch)
	b.Now = l.shows(lane)
	ctx, began := traced(submissions), time.Now()
	b.Shards = l.setup.Shards
	for _, s := range submissions {
		for i := s.Decided; i < len(s.Decisions); i++ {
			d := &s.Decisions[i]
			if l.setup.Clock == nil && d.Op != wire.OpUndo {
				d.Sent = began
			}
			if l.setup.DenyNewServer {
				b.Spent = stored.Doubles(b.Spent, d.Spent())
			}
			b.Add(d)
		}
	}
	l.Stats.Calls.Add(1)
	l.Stats.InFlight.Add(1)
	text, err := l.send(ctx, b, lane)
	l.Stats.InFlight.Add(-1)
	if l.setup.Observe != nil {
		l.setup.Observe(ctx, began, submissions, b, len(text), err)
	}
	if err == nil {
		if len(submissions) > fewDecisions {
			fetch(submissions)
		}
		again = l.read(text, lane, began, submissions, b)
	}
	if err == nil || !fault.Unanswered(err) { // a lost call may still be read
		b.Clear()
		batches.Put(b)
	}
	return again, err
}

// shows returns the expected time of the clock of a lane's server, in us.
func (l *Lanes) shows(lane int) int64 {
	if l.setup.Clock != nil {
		return stored.FloorDiv(l.setup.Clock(), int64(time.Microsecond))
	}
	return l.Committer(lane).clock.shows()
}

// traced returns the context of a call. It has the values of the oldest caller's context, such as a trace, without
// its cancellation, because several callers share the call.
func traced(submissions []*Submission) context.Context {
	ctx := submissions[0].Ctx
	switch {
	case ctx == nil:
		return context.Background()
	case ctx.Done() == nil:
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// fetch reads a word of each cache line that an answer changes. While thousands of callers wait, these lines leave the
// processor's caches. Reads that do not depend on each other fetch them together, and the answers do not wait for each.
func fetch(submissions []*Submission) {
	words := 0
	for _, s := range submissions {
		d, p := &s.One[0], &s.Few[0]
		words += s.Decided + len(s.done) + s.Composed.Request + int(s.Composed.Answer.Limit)
		words += int(d.Op) + len(d.Identity) + int(d.Times)
		words += p.Lane + int(p.Measure.Cost) + int(p.Stored[0])
	}
	runtime.KeepAlive(words)
}

// read reads the answers of a reply to a call that was sent at began. The reply may leave the last decisions to another
// call. again reports that the first of them wants other boundaries of a quota.
func (l *Lanes) read(text string, lane int, began time.Time, submissions []*Submission, b *wire.Batch) (again bool) {
	r := wire.Reply{Left: text, Since: math.Inf(-1), Space: &b.Space}
	now := int64(r.Double())
	if !r.Short {
		l.watchClock(lane, now, began)
	}
	if l.setup.DenyNewServer {
		r.Since = r.Double()
	}
	for _, s := range submissions {
		for ; s.Decided < len(s.Decisions); s.Decided++ {
			if r.Left == wire.ReplyLater {
				return false
			}
			d := &s.Decisions[s.Decided]
			if found, again := r.Elsewhere(d); found {
				if !again {
					s.Decided++
				}
				return again
			}
			r.Read(d, now, b.Keys)
			if d.Op == wire.OpRecord && d.RefusedToRecord() {
				l.Stats.Unrecorded.Add(1)
			}
		}
	}
	return false
}

// send makes one round trip.
func (l *Lanes) send(ctx context.Context, b *wire.Batch, lane int) (string, error) {
	var space [5]string
	args := append(space[:0], rueidis.BinaryString(b.Args), "", "", rueidis.BinaryString(b.Spent), rueidis.BinaryString(b.Long))
	if l.setup.Clock != nil {
		args[1] = strconv.FormatInt(b.Now, 10)
	}
	if l.setup.Linger != 0 {
		args[2] = strconv.FormatInt(l.setup.Linger.Milliseconds(), 10)
	}
	for args[len(args)-1] == "" { // the last may be absent
		args = args[:len(args)-1]
	}
	if l.setup.DenyNewServer {
		b.Keys = append(b.Keys, l.keys.Server(lane%l.Number()))
	}
	return l.setup.Call(ctx, b.Keys, args)
}

// watchClock looks for a step of the clock of a lane's server. After a step forward leases end early by that clock, so it
// renews those of the lane at once: their holders keep their slots, or hear now that they have lost them.
func (l *Lanes) watchClock(lane int, now int64, sent time.Time) {
	if l.setup.Clock != nil {
		return
	}
	moved := l.Committer(lane).clock.measure(now, sent, time.Now())
	if moved == 0 {
		return
	}
	if moved > 0 {
		l.setup.Stepped(func(other int) bool { return l.Committer(other) == l.Committer(lane) })
	}
	l.steps.log(l.setup.Logger, moved)
}

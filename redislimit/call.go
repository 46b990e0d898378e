package redislimit

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

var batches = sync.Pool{New: func() any { return new(batch) }}

// run makes all decisions of the submissions with the script, in their order, and answers each. The script leaves
// decisions to another call if it has worked for long enough. run reports whether each call had an answer.
func (e *Engine) run(submissions []*submission) (answered bool) {
	lane := submissions[0].lane()
	answered = true
	for len(submissions) > 0 {
		err := e.exchange(lane, submissions)
		if moving(err) || crossing(err) {
			e.takeApart(submissions, err)
			return answered
		}
		answered = answered && (err == nil || !lost(err))
		for len(submissions) > 0 && (err != nil || submissions[0].decided == len(submissions[0].decisions)) {
			e.finish(submissions[0], submissions[0].failed(err))
			submissions = submissions[1:]
		}
	}
	return answered
}

// failed returns the error of the submission after that of a call. If earlier calls have made some of its decisions,
// only the others have the error.
func (s *submission) failed(err error) error {
	if err == nil || s.decided == 0 {
		return err
	}
	for i := s.decided; i < len(s.decisions); i++ {
		s.decisions[i].err = err
	}
	return nil
}

// finish answers a submission.
func (e *Engine) finish(s *submission, err error) {
	s.err = err
	s.compose()
	e.stats.decisions.Add(uint64(len(s.decisions)))
	switch {
	case s.deliver():
	case s.after != nil:
		s.after()
	default:
		e.late(s)
	}
}

// exchange makes one call: it sends the decisions and reads the answers.
func (e *Engine) exchange(lane int, submissions []*submission) error {
	if e.closed.Load() {
		return errClosed
	}
	b := batches.Get().(*batch)
	ctx, began := traced(submissions), time.Now()
	b.watch = e.watch.Load() > 0
	for _, s := range submissions {
		for i := s.decided; i < len(s.decisions); i++ {
			d := &s.decisions[i]
			if e.options.Clock == nil && d.op != opUndo {
				d.sent = began
			}
			if e.options.DenyNewServer {
				b.spent = doubles(b.spent, d.spent())
			}
			b.add(d)
		}
	}
	if b.watch {
		e.watch.Add(-int64(len(b.keys)))
	}
	e.stats.calls.Add(1)
	e.stats.inFlight.Add(1)
	text, err := e.call(ctx, b, lane)
	e.stats.inFlight.Add(-1)
	if err != nil {
		text, err = "", e.failed(err, began)
	}
	e.observe(ctx, began, submissions, b, len(text), err)
	if err == nil {
		if len(submissions) > fewDecisions {
			fetch(submissions)
		}
		e.read(text, lane, began, submissions, b)
	}
	if err == nil || !lost(err) { // a lost call may still be read
		b.clear()
		batches.Put(b)
	}
	return err
}

// fetch reads a word of each cache line that an answer changes. While thousands of callers wait, these lines leave the
// processor's caches. Reads that do not depend on each other fetch them together, and the answers do not wait for each.
func fetch(submissions []*submission) {
	words := 0
	for _, s := range submissions {
		d, p := &s.one[0], &s.few[0]
		words += s.decided + len(s.done) + s.composed.request + int(s.composed.answer.Limit)
		words += int(d.op) + len(d.identity) + int(d.times)
		words += p.lane + int(p.measure.Cost) + int(p.stored[0])
	}
	runtime.KeepAlive(words)
}

// read reads the answers of a reply to a call that was sent at began. The reply may leave the last decisions to another
// call.
func (e *Engine) read(text string, lane int, began time.Time, submissions []*submission, b *batch) {
	r := reply{left: text, since: math.Inf(-1), space: &b.space}
	now := int64(r.double())
	if !r.short {
		e.watchClock(lane, now, began)
	}
	if e.options.DenyNewServer {
		r.since = r.double()
	}
	for _, s := range submissions {
		for ; s.decided < len(s.decisions); s.decided++ {
			if r.left == replyLater {
				return
			}
			d := &s.decisions[s.decided]
			r.read(d, now, b.keys)
			if r.earlier {
				e.watch.Store(moreWatched)
			}
			if d.op == opRecord && d.refusedToRecord() {
				e.stats.unrecorded.Add(1)
			}
		}
	}
}

// failed returns the error of a call that began at an instant. If the server is a replica, it closes the connections
// from before the call.
func (e *Engine) failed(err error, began time.Time) error {
	switch {
	case errors.Is(err, rueidis.ErrClosing): // also of one connection, after a failover
		reason := Lost
		if e.closed.Load() {
			reason = Closed
		}
		return &Error{Reason: reason, Err: err}
	case e.conns != nil && readOnly(err):
		e.conns.closeOlder(began)
	}
	return err
}

// lost reports whether no answer came.
func lost(err error) bool {
	_, answered := refusal(err)
	return !answered
}

// call makes one round trip.
func (e *Engine) call(ctx context.Context, b *batch, lane int) (string, error) {
	var space [6]string
	args := append(space[:0], rueidis.BinaryString(b.args), "", "", rueidis.BinaryString(b.spent), rueidis.BinaryString(b.long), rueidis.BinaryString(b.earlier))
	if e.options.Clock != nil {
		args[1] = strconv.FormatInt(floorDiv(e.options.Clock(), int64(time.Microsecond)), 10)
	}
	if e.options.Linger != 0 {
		args[2] = strconv.FormatInt(e.options.Linger.Milliseconds(), 10)
	}
	for args[len(args)-1] == "" { // the last may be absent
		args = args[:len(args)-1]
	}
	if e.options.DenyNewServer {
		b.keys = append(b.keys, e.keys.server(lane%len(e.committers())))
	}
	if e.sender != nil {
		return e.script.sendBy(ctx, e.sender, b.keys, args)
	}
	client, err := e.connected()
	if err != nil {
		return "", err
	}
	if e.crosses(client, b.keys) {
		return "", crossed{}
	}
	return e.script.lua.Exec(ctx, client, b.keys, args).ToString()
}

func (b *batch) clear() {
	clear(b.keys)
	b.keys, b.args, b.spent, b.long, b.earlier = b.keys[:0], b.args[:0], b.spent[:0], b.long[:0], b.earlier[:0]
	clear(b.index)
	b.last, b.run = nil, run{}
}

// late handles answers whose caller has gone: it undoes what they took.
func (e *Engine) late(s *submission) {
	if s.state.Load() == noCaller {
		return
	}
	defer e.stats.unheard.Add(-1) // after its undos count
	if s.err != nil {
		return
	}
	for i := range s.decisions {
		d := &s.decisions[i]
		e.stats.late.Add(1)
		if d.op == opBook && d.admitted && d.err == nil {
			e.stats.givenBack.Add(1)
			w := d.withdrawal(d.parts[0].cost)
			w.late, w.sent = true, d.sent
			e.undoLater(w)
		}
		if d.op == opTake && d.admitted && d.err == nil && d.identity == "" { // with an identity it can be asked again
			e.stats.givenBack.Add(1)
			e.undoLater(d.undos(d.count())...)
		}
	}
}

// undos returns the undos of a take, as often as times says. Each part is undone at the instant at which the script wrote
// it. That differs between parts only after a clock has run back.
func (d *decision) undos(times int64) (undos []decision) {
	parts := d.repeated(times)
	for i := range parts {
		if p := &parts[i]; p.limit.kind == kindLeaky {
			p.past = &past{left: d.parts[i].after(d.now), told: p.stored[5]}
		}
	}
	for i := range parts {
		if parts[i].wrote != parts[0].wrote {
			for i := range parts {
				alone := parts[i : i+1 : i+1]
				alone[0].joins = false
				undos = append(undos, decision{op: opUndo, parts: alone, now: alone[0].wrote, sent: d.sent})
			}
			return undos
		}
	}
	return []decision{{op: opUndo, parts: parts, now: parts[0].wrote, sent: d.sent}}
}

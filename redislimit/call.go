package redislimit

import (
	"context"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

var batches = sync.Pool{New: func() any { return new(batch) }}

// run asks the script for all decisions of the submissions, in their order, and
// answers each.
func (e *Engine) run(submissions []*submission) {
	b := batches.Get().(*batch)
	for _, s := range submissions {
		for i := range s.decisions {
			b.add(&s.decisions[i])
		}
	}
	e.stats.calls.Add(1)
	text, err := e.call(b, submissions[0].lane())
	r := reply{left: text, since: math.Inf(-1)}
	now := micros(r.double())
	if e.options.DenyNewServer {
		r.since = r.double()
	}
	for _, s := range submissions {
		s.err = err
		for i := range s.decisions {
			if err != nil {
				break
			}
			r.read(&s.decisions[i], now)
		}
		e.stats.decisions.Add(uint64(len(s.decisions)))
		if !s.deliver() {
			e.late(s)
		}
	}
	if err == nil || !lost(err) { // a call that is lost may still be read
		b.clear()
		batches.Put(b)
	}
}

func lost(err error) bool {
	_, replied := rueidis.IsRedisErr(err)
	return !replied
}

// call is one round trip. No caller's context ends it: it is everybody's.
func (e *Engine) call(b *batch, lane int) (string, error) {
	var space [4]string
	args := append(space[:0], rueidis.BinaryString(b.args))
	if e.options.Clock != nil || e.options.Linger != 0 || e.options.DenyNewServer {
		instant := ""
		if e.options.Clock != nil {
			instant = strconv.FormatInt(floorDiv(e.options.Clock(), int64(time.Microsecond)), 10)
		}
		args = append(args, instant, strconv.FormatInt(e.options.Linger.Milliseconds(), 10))
	}
	if e.options.DenyNewServer {
		b.keys = append(b.keys, e.keys.server(lane%len(e.lanes)))
		args = append(args, rueidis.BinaryString(b.spent))
	}
	return script.Exec(context.Background(), e.client, b.keys, args).ToString()
}

func (b *batch) clear() {
	clear(b.keys)
	b.keys, b.args, b.spent = b.keys[:0], b.args[:0], b.spent[:0]
	clear(b.index)
	b.last = nil
}

// late is for answers whose caller has gone: what was taken is undone.
func (e *Engine) late(s *submission) {
	if s.err != nil || s.state.Load() == nobody {
		return
	}
	for i := range s.decisions {
		d := &s.decisions[i]
		e.stats.late.Add(1)
		if d.op == opTake && d.admitted && d.err == nil {
			e.stats.givenBack.Add(1)
			e.committer(d.parts[0].lane).send(undoing(d))
		}
	}
}

// undoing asks to undo a take, and then what that left.
func undoing(d *decision) *submission {
	return &submission{
		done: make(chan struct{}, 1),
		decisions: []decision{
			{op: opUndo, parts: slices.Clone(d.parts), now: d.now},
			{op: opPeek, parts: slices.Clone(d.parts)},
		},
	}
}

// counters are Stats as they are counted.
type counters struct{ calls, decisions, late, givenBack atomic.Uint64 }

// Stats count what an engine did since it was made.
type Stats struct {
	Calls     uint64 // calls of the script
	Decisions uint64 // decided by them
	Late      uint64 // whose answer came after their caller had gone
	GivenBack uint64 // of these, admitted ones that were given back
}

// Stats are the counts so far.
func (e *Engine) Stats() Stats {
	return Stats{
		Calls:     e.stats.calls.Load(),
		Decisions: e.stats.decisions.Load(),
		Late:      e.stats.late.Load(),
		GivenBack: e.stats.givenBack.Load(),
	}
}

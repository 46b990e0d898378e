package redislimit

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// takeApart decides each submission of a call on its own, because the servers refused the whole call and did nothing.
// Only the callers of these submissions wait for it.
func (e *Engine) takeApart(submissions []*submission, refused error) {
	if crossing(refused) {
		e.keepToOneSlot()
	}
	for _, s := range submissions {
		go func() {
			e.oneByOne(s)
			e.finish(s, nil)
		}()
	}
}

// How often, and after what pause, the engine repeats a decision whose keys are moving to another node of a cluster.
const (
	movingTries = 20
	movingPause = 5 * time.Millisecond
)

// oneByOne makes each decision on its own, in order, but those of an ask of callers in line together. While a slot moves, a
// decision on one key finds the key on one of two nodes. A decision on several keys is repeated for a while, until all of
// them have moved.
func (e *Engine) oneByOne(s *submission) {
	tries := movingTries
	for i, end := s.decided, 0; i < len(s.decisions); i = end {
		if end = i + 1; s.decisions[i].line != nil {
			end = len(s.decisions)
		}
		alone := []*submission{{decisions: s.decisions[i:end], ctx: s.ctx}}
		lane := alone[0].lane()
		exchange := func() error { return e.exchange(lane, alone) }
		err := exchange()
		if moving(err) && s.decisions[i].divisible() {
			exchange = func() error { return e.keyByKey(lane, &s.decisions[i], s.ctx) }
			err = exchange()
		}
		for ; moving(err) && tries > 0; tries-- {
			time.Sleep(movingPause)
			err = exchange()
		}
		if crossing(err) {
			err = errCrossing
		}
		for j := i; err != nil && j < end; j++ {
			s.decisions[j].err = err
		}
	}
}

// divisible reports whether deciding each key of the decision on its own gives the same answer. The script signals
// no caller in line then: the caller asks again within a second.
func (d *decision) divisible() bool {
	switch {
	case d.identity != "" || d.line != nil:
		return false
	case d.op == opRecord:
		return !slices.ContainsFunc(d.parts, func(p part) bool { return p.limit.kind != kindSlots || p.cost >= 0 || p.lease == 0 })
	}
	return d.op == opPeek || d.op == opReset || d.op == opUndo
}

// keyByKey makes a divisible decision with a call for each key. After an error a release or an undo may have been made in
// part; Redis knows what is left of it.
func (e *Engine) keyByKey(lane int, d *decision, ctx context.Context) error {
	for i := range d.parts {
		if d.parts[i].joins {
			continue
		}
		var places []int
		own := *d
		own.parts, own.unsignalled = nil, true
		for j := range d.parts {
			if d.parts[j].key == d.parts[i].key {
				places, own.parts = append(places, j), append(own.parts, d.parts[j])
			}
		}
		alone := &submission{decisions: []decision{own}, ctx: ctx}
		if err := cmp.Or(e.exchange(lane, []*submission{alone}), alone.decisions[0].err); err != nil {
			return err
		}
		for k, j := range places {
			d.parts[j] = alone.decisions[0].parts[k]
		}
		d.now, d.admitted = alone.decisions[0].now, alone.decisions[0].admitted
	}
	return nil
}

// moving reports whether a node has some of the keys and another node the others.
func moving(err error) bool { return refusedFor(err, "TRYAGAIN") }

// crossing reports whether the keys of a call are in several slots. Without a cluster client that means a cluster
// behind one address.
func crossing(err error) bool { return refusedFor(err, "CROSSSLOT") }

func refusedFor(err error, word string) bool {
	text, refused := refusal(err)
	return refused && strings.Contains(text, word)
}

// refusal returns the server's error reply.
func refusal(err error) (text string, refused bool) {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		return reply.Error(), true
	}
	var reply interface {
		error
		RedisError()
	}
	if errors.As(err, &reply) {
		return reply.Error(), true
	}
	return "", false
}

// errCrossing is the error of one decision whose keys are in several slots. The engine then decides it lane by lane.
var errCrossing = uncounted(Refused, errors.New("CROSSSLOT: the server does not keep keys of one hash tag in one slot"))

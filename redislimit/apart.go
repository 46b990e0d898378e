package redislimit

import (
	"errors"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// takeApart asks for each submission of a call by itself, since the servers
// refused the call as a whole and did nothing. It keeps nobody waiting but the
// callers of these.
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

// How often, and after how long, a decision is asked again whose keys are on
// their way to another node of a cluster.
const (
	movingTries = 20
	movingPause = 5 * time.Millisecond
)

// oneByOne asks for each decision by itself, in order. While a slot moves, a
// decision of one key finds it on one of two nodes. One of several is asked
// again for a while, until all of them have moved.
func (e *Engine) oneByOne(s *submission) {
	tries := movingTries
	for i := range s.decisions {
		alone := []*submission{{decisions: s.decisions[i : i+1], ctx: s.ctx}}
		lane := alone[0].lane()
		err := e.exchange(lane, alone)
		for ; moving(err) && tries > 0; tries-- {
			time.Sleep(movingPause)
			err = e.exchange(lane, alone)
		}
		if crossing(err) {
			err = errCrossing
		}
		if err != nil {
			s.decisions[i].err = err
		}
	}
}

// moving says that a node has some of the keys, and another the others.
func moving(err error) bool { return refusedFor(err, "TRYAGAIN") }

// crossing says that the keys of a call are in several slots. Without a cluster's
// client that is a cluster behind one address.
func crossing(err error) bool { return refusedFor(err, "CROSSSLOT") }

func refusedFor(err error, word string) bool {
	text, refused := refusal(err)
	return refused && strings.Contains(text, word)
}

// refusal is what the server replied instead of an answer.
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

// errCrossing is the error of one decision whose keys are in several slots. It
// is then decided lane by lane.
var errCrossing = &Error{Reason: Refused, Err: errors.New("CROSSSLOT: the server does not keep keys of one hash tag in one slot")}

package redislimit

import (
	"errors"
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

// oneByOne makes each decision on its own, in order. While a slot moves, a decision on one key finds the key on one
// of two nodes. A decision on several keys is repeated for a while, until all of them have moved.
func (e *Engine) oneByOne(s *submission) {
	tries := movingTries
	for i := s.decided; i < len(s.decisions); i++ {
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

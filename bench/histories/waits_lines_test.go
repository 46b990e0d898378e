package histories

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// limiterLine is the line of a Limiter.
type limiterLine struct {
	*weir.Limiter
	limit func(capacity int64) weir.Limit
}

func newLimiterLine(t *testing.T, limit func(capacity int64) weir.Limit) limiterLine {
	lim, err := weir.New(limit(room))
	if err != nil {
		t.Fatal(err)
	}
	return limiterLine{lim, limit}
}

func (l limiterLine) wait(ctx context.Context, c call) error {
	turn := weir.Turn{Cost: c.cost}
	if c.flow > 0 {
		turn.Flow, turn.Weight = fmt.Sprint(c.flow), weights[c.flow]
	}
	return l.WaitTurn(ctx, turn)
}

func (l limiterLine) do(c call) bool {
	switch c.verb {
	case take:
		return l.Take(c.cost).Allowed
	case record:
		if c.cost < 0 {
			l.Return(-c.cost)
		} else {
			l.Record(c.cost)
		}
	case resize:
		if err := l.SetLimit(l.limit(c.cost)); err != nil {
			panic(err)
		}
	}
	return false
}

// keyedLine is the lines of a Keyed.
type keyedLine struct{ *weir.Keyed[int] }

func newKeyedLine(t *testing.T, limit weir.Limit) keyedLine {
	k, err := weir.NewKeyed[int](limit)
	if err != nil {
		t.Fatal(err)
	}
	return keyedLine{k}
}

func (k keyedLine) wait(ctx context.Context, c call) error { return k.WaitN(ctx, c.keys[0], c.cost) }

func (k keyedLine) do(c call) bool {
	if c.verb == take {
		return k.Take(c.keys[0], c.cost).Allowed
	}
	if c.cost < 0 {
		k.Return(c.keys[0], -c.cost)
	} else {
		k.Record(c.keys[0], c.cost)
	}
	return false
}

// queueLine is a Queue on the memory engine, whose callers wait for a key or for both.
type queueLine struct {
	*pace.Queue
	rule *weir.Rule

	mu    sync.Mutex
	taken map[int]*pace.Acquired // by the number of the caller
}

func newQueueLine(t *testing.T, limit weir.Limit) *queueLine {
	rule, err := weir.NewRule("history", limit)
	if err != nil {
		t.Fatal(err)
	}
	q, err := pace.NewQueue(weir.NewMemory(weir.MemoryOptions{}), pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &queueLine{Queue: q, rule: rule, taken: map[int]*pace.Acquired{}}
}

func (q *queueLine) wait(ctx context.Context, c call) error {
	var requests []weir.Request
	for _, key := range c.keys {
		requests = append(requests, q.rule.For(fmt.Sprint(key), c.cost))
	}
	a, err := q.Acquire(ctx, requests...)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken[c.id] = a
	return err
}

func (q *queueLine) do(c call) bool {
	q.mu.Lock()
	a := q.taken[c.id]
	q.mu.Unlock()
	if err := a.Cancel(context.Background()); err != nil {
		panic(err)
	}
	return false
}

package pace

import (
	"context"
	"time"

	"github.com/weirflow/weir"
)

// For returns a Pacer for one key under a rule of the engine, such as a bandwidth that processes share. Its turns go
// in the order of the queue: it has no classes and no flows. It is not for a Concurrency, whose slots need Acquire.
func (q *Queue) For(rule *weir.Rule, key string) Pacer { return queuePacer{q, rule.For(key, 1)} }

type queuePacer struct {
	queue   *Queue
	request weir.Request // with any cost
}

// WaitTurn waits in the queue for the cost of the turn.
func (p queuePacer) WaitTurn(ctx context.Context, turn weir.Turn) error {
	if turn.Max > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, turn.Max)
		defer cancel()
	}
	p.request.Cost = turn.Cost
	_, err := p.queue.Wait(ctx, p.request)
	return err
}

// Return tells the engine. If the engine fails, the units stay as they are.
func (p queuePacer) Return(n int64) weir.Decision {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p.request.Cost = n
	d, err := p.queue.engine.Return(ctx, p.request)
	if err != nil {
		return weir.Decision{}
	}
	p.queue.cameBackHere(nameOf(&p.request))
	return d
}

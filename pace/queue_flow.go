package pace

import (
	"context"
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/fair"
)

// QueueFlow is the callers of a queue that share their keys with other flows by weight: see [Queue.InFlow].
type QueueFlow struct {
	queue  *Queue
	name   string
	weight int64
}

// InFlow returns a flow of the queue, of weight 1 to 1024. Callers that ask for the same keys share them by flow, in
// proportion to the weights, while each flow has a waiting caller; within a flow they go in order of arrival. Callers of
// the queue itself are one more flow, of weight 1. A flow needs no registration: it is made when its first caller waits,
// and forgotten with the line. The first waiting caller of a flow chooses its weight. The order of flows holds within the
// process.
func (q *Queue) InFlow(name string, weight int64) (QueueFlow, error) {
	if weight < 1 || weight > fair.MaxWeight {
		return QueueFlow{}, &weir.OptionError{Op: "queue flow", Field: "weight", Reason: fmt.Sprintf("%d is not 1 to %d", weight, fair.MaxWeight)}
	}
	return QueueFlow{q, name, weight}, nil
}

// Wait works like [Queue.Wait].
func (f QueueFlow) Wait(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return f.queue.take(ctx, &caller{asked: requests, flow: f.name, weight: f.weight})
}

// Acquire works like [Queue.Acquire].
func (f QueueFlow) Acquire(ctx context.Context, requests ...weir.Request) (*Acquired, error) {
	return f.queue.acquire(ctx, &caller{asked: requests, acquires: true, flow: f.name, weight: f.weight})
}

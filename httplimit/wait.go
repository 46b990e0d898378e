package httplimit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// decideOrWait makes the decision. With Options.Wait it waits for an admission.
func (v *visit) decideOrWait(ctx context.Context) (weir.Decision, error) {
	if v.queue == nil {
		return v.decide(ctx)
	}
	slots := v.wantsSlots()
	if !slots && v.queue.Waiting() == 0 { // otherwise this request would overtake the waiting ones
		d, err := v.decide(ctx)
		if err != nil || d.Allowed || d.RetryAfter > v.Wait {
			return d, err
		}
	}
	v.waited = true
	waiting, cancel := context.WithTimeout(ctx, v.Wait)
	defer cancel()
	d, err := v.await(waiting, slots)
	switch {
	case err != nil && ctx.Err() != nil:
		return d, errLeft
	case err != nil && isTooLong(err):
		return v.refused(ctx, err)
	}
	return d, err
}

func (v *visit) wantsSlots() bool {
	return slices.ContainsFunc(v.sets, func(s *policies) bool { return s.slots != nil })
}

// await waits in the queue. A reservation of slots lets the next request have them when it is done.
func (v *visit) await(ctx context.Context, slots bool) (d weir.Decision, err error) {
	if !slots {
		d, err = v.queue.Wait(ctx, v.requests...)
		d.Delay = 0 // the queue has waited for it
		return d, err
	}
	if v.acquired, err = v.queue.Acquire(ctx, v.requests...); err != nil {
		return d, err
	}
	return v.acquired.Decision, nil
}

// isTooLong reports whether a wait ended because it would take too long, or did.
func isTooLong(err error) bool {
	return errors.Is(err, weir.ErrWait) || errors.Is(err, weir.ErrNever) || errors.Is(err, weir.ErrQueueFull) || errors.Is(err, context.DeadlineExceeded)
}

// refused returns the refusal of a request that has waited, or cannot wait, long enough. The engine does not know the
// requests ahead of it, which the reason may name.
func (v *visit) refused(ctx context.Context, why error) (weir.Decision, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.Timeout)
	defer cancel()
	d, err := v.Engine.Peek(ctx, v.requests...)
	if d.Allowed { // requests that have waited longer come first
		d.Allowed, d.RetryAfter = false, time.Second
	}
	if ahead, ok := errors.AsType[*weir.WaitError](why); ok && ahead.Need != weir.Never {
		d.RetryAfter = max(d.RetryAfter, ahead.Need)
	}
	return d, err
}

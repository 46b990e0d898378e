package grpclimit

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/status"

	"github.com/weirflow/weir"
)

// visit is one call or message on its way to a decision. Later ones reuse it.
type visit struct {
	requests []weir.Request
	sets     []*set // of each of the requests
	lease    uint64 // that holds the slots; 0 if the call takes none
}

// clear drops the keys, so that they can be collected.
func (v *visit) clear() {
	clear(v.requests)
	v.requests, v.sets, v.lease = v.requests[:0], v.sets[:0], 0
}

// addRequests adds the requests to the engine. It returns an error if the call lacks a key or a plan that it needs.
func (v *visit) addRequests(o *Options, from *rules, ctx context.Context, method string, message any, p part) error {
	for i := range from.list {
		rule := &from.list[i]
		set, err := from.setOf(o, rule, ctx, method)
		if err != nil {
			v.clear()
			if left := status.FromContextError(ctx.Err()); left != nil && !o.DryRun {
				return left.Err() // the plan may have asked a store under the call's context
			}
			return o.undecided(ctx, method, err)
		}
		charged := set.ruleFor(p)
		if charged == nil {
			continue
		}
		key := rule.Key(ctx, method)
		if key == "" && rule.Missing != MissingShares {
			if rule.Missing == MissingUnlimited || o.DryRun {
				continue
			}
			return missingKey(charged.Name())
		}
		q := charged.For(boundedKey(key), 1)
		if rule.Cost != nil {
			q.Cost = rule.Cost(ctx, method, message)
		}
		if set.slots != nil && p != ratesOnly && v.lease == 0 {
			v.lease = weir.NewLease()
		}
		v.requests, v.sets = append(v.requests, q), append(v.sets, set)
	}
	return nil
}

// take decides. It returns what is held, if anything, or the error of a refusal.
func (s *Server) take(ctx context.Context, method string, v *visit) (*held, error) {
	a, err := s.o.Engine.Do(ctx, weir.Call{Op: weir.OpTake, Requests: v.requests, Lease: v.lease, Within: s.o.Timeout})
	d := a.Decision
	if err != nil {
		if weir.MayHaveCounted(err) {
			v.held(&s.o).drop(ctx)
		}
		return nil, s.o.undecided(ctx, method, err)
	}
	if !d.Allowed {
		s.observe(ctx, method, d)
		if s.o.DryRun {
			return nil, nil
		}
		return nil, v.refusal(&d)
	}
	held, passed := v.held(&s.o), false
	held.renew()
	defer func() {
		if !passed { // the client has left, or Observe has panicked
			held.release(ctx)
		}
	}()
	s.observe(ctx, method, d)
	if d.Delay > 0 && !s.o.DryRun {
		if err := sleep(ctx, d.Delay); err != nil {
			return nil, err
		}
	}
	passed = true
	return held, nil
}

func (s *Server) observe(ctx context.Context, method string, d weir.Decision) {
	if s.o.Observe != nil {
		s.o.Observe(ctx, method, d, nil)
	}
}

// undecided returns the error of an undecided call, or nil to admit it. It never admits a call that no engine could
// decide, because the client may have made it so.
func (o *Options) undecided(ctx context.Context, method string, err error) error {
	o.failures.log(o.Logger, err)
	if o.Observe != nil {
		o.Observe(ctx, method, weir.Decision{}, err)
	}
	if o.Undecided == AdmitUndecided && !errors.Is(err, weir.ErrRequest) || o.DryRun {
		return nil
	}
	return notDecided()
}

// held are the slots of a call. A nil *held holds nothing.
type held struct {
	options *Options
	slots   weir.Call
	unhold  func() // ends the renewal of the slots; nil if they are not renewed
}

// held returns the slots that the requests hold, or nil.
func (v *visit) held(o *Options) *held {
	var slots []weir.Request
	for i, q := range v.requests {
		if v.lease != 0 && v.sets[i].slots != nil && q.Cost != 0 {
			q.Rule = v.sets[i].slots
			slots = append(slots, q)
		}
	}
	if slots == nil {
		return nil
	}
	return &held{options: o, slots: weir.Call{Op: weir.OpReturn, Requests: slots, Lease: v.lease}}
}

// renew has the engine renew the slots, if they expire there.
func (h *held) renew() {
	if h == nil {
		return
	}
	if engine, ok := weir.Find[weir.Holder](h.options.Engine); ok {
		_, h.unhold = engine.Hold(time.Now().Add(-h.options.Timeout), h.slots) // the take began no earlier
	}
}

// drop releases slots that a failed call may have taken. The client does not wait for it, because the engine may hang.
func (h *held) drop(ctx context.Context) {
	if h == nil {
		return
	}
	if engine, ok := weir.Find[weir.Holder](h.options.Engine); ok {
		engine.Drop(h.slots)
		return
	}
	go func() {
		defer func() { _ = recover() }() // nobody else would recover a panic of the log handler, which would end the program
		h.release(ctx)
	}()
}

// releaseWithin bounds a release, which continues after its client has left.
const releaseWithin = time.Second

// release gives the slots back. It tries twice, because slots are released by identity.
func (h *held) release(ctx context.Context) {
	if h == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	_, err := h.options.Engine.Do(ctx, h.slots)
	if err != nil {
		_, err = h.options.Engine.Do(ctx, h.slots)
	}
	if h.unhold != nil {
		h.unhold()
	}
	if err != nil {
		h.options.failures.log(h.options.Logger, err)
	}
}

// sleep waits, and returns the status of a context that ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// failureLog logs that the engine failed, at most once a minute.
type failureLog struct{ last atomic.Int64 } // in seconds since the Unix epoch

func (f *failureLog) log(logger *slog.Logger, err error) {
	now, last := time.Now().Unix(), f.last.Load()
	if (last == 0 || now-last >= 60) && f.last.CompareAndSwap(last, now) {
		logger.Error("grpclimit: the engine could not decide", "error", err)
	}
}

package fetch

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// shared holds what crawlers on one engine share: the pace of each site, and the total.
//
// A crawler acquires the turn of a site: its slot, a unit of its pace and a unit of the total, all at one instant. When
// the request has been written, it records the gap of the site and then releases the slot. So no other crawler sends
// before the gap has passed since the request was written, even if crawlers keep different gaps and connections are
// slow. A unit of the pace is a millisecond of that gap.
type shared struct {
	engine weir.Engine
	queue  *pace.Queue
	site   *weir.Rule
	total  *weir.Rule
}

const (
	// sendingLease ends the slot of a crawler that died before it had written its request.
	sendingLease = 10 * time.Second
	// longestShared is the longest gap that every engine records.
	longestShared = 1_000_000_000 * time.Millisecond
	// An engine that fails is asked engineTries times, with a pause after each.
	engineTries = 40
	enginePause = 250 * time.Millisecond
	// tellWithin bounds a call that no request waits for.
	tellWithin = 2 * time.Second
)

// EngineError is a failure of Options.Engine that ends a run.
type EngineError struct{ Err error }

func (e *EngineError) Error() string { return "engine: " + e.Err.Error() }
func (e *EngineError) Unwrap() error { return e.Err }

// newShared returns what crawlers share, or nil without an engine.
func newShared(o *Options) (s *shared, err error) {
	if o.Engine == nil {
		return nil, nil
	}
	s = &shared{engine: o.Engine}
	name := func(what string) string { return strings.TrimSpace("fetch " + what + " " + o.Name) }
	if s.site, err = weir.NewRule(name("site"), weir.TokenBucket{Rate: weir.PerSecond(1000), Burst: 1}, weir.Concurrency{Slots: 1, Lease: sendingLease}); err != nil {
		return nil, optionError("name", "%v", err)
	}
	if s.total, err = weir.NewRule(name("total "+o.Total.String()), weir.TokenBucket{Rate: o.Total, Burst: 1}); err != nil {
		return nil, optionError("total", "%v", err)
	}
	if err = o.Engine.Check(s.site, s.total); err != nil {
		return nil, optionError("engine", "%v", err)
	}
	s.queue, err = pace.NewQueue(o.Engine, pace.QueueOptions{})
	return s, err
}

// checkShared refuses options that crawlers cannot share.
func (o *Options) checkShared() error {
	switch gap := gapOf(o.PerHost); {
	case o.Engine == nil && o.Name != "":
		return optionError("name", "%q needs an engine", o.Name)
	case o.Engine != nil && gap > longestShared:
		return optionError("perHost", "%s is slower than a request in %v, which an engine does not share", o.PerHost, longestShared)
	}
	return nil
}

// at keeps a request beside those of the other sites in a cluster, so that a turn is one call.
func at(q weir.Request) weir.Request { return q.Colocate("fetch") }

// await waits for the turn of a site. It returns an error if ctx ends, or if the engine fails without end.
func (s *shared) await(ctx context.Context, site string) (slot *pace.Acquired, err error) {
	for range engineTries {
		slot, err = s.queue.Acquire(ctx, at(s.site.For(site, 1)), at(s.total.For("", 1)))
		if err == nil || ctx.Err() != nil || errors.Is(err, weir.ErrRequest) {
			break
		}
		select {
		case <-time.After(enginePause):
		case <-ctx.Done():
		}
	}
	return slot, err
}

// passOn keeps all crawlers from a site for its gap, and releases its slot. If the engine does not record the gap, the
// slot keeps the others away for that time.
func (s *shared) passOn(ctx context.Context, site string, gap time.Duration, slot *pace.Acquired) {
	if err := s.charge(ctx, site, gap); err != nil {
		select {
		case <-time.After(min(gap, sendingLease)):
		case <-ctx.Done():
			weir.Kit.HandOver(slot.Reservation)
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellWithin)
	defer cancel()
	if slot.Done(ctx) != nil {
		weir.Kit.HandOver(slot.Reservation)
	}
}

// raise makes the gap that began with the last request of a site at least d, from now on.
func (s *shared) raise(ctx context.Context, site string, d time.Duration) {
	within, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	if now, err := s.engine.Peek(within, at(weir.Kit.Spent(s.site).For(site, 1))); err == nil && d > now.RetryAfter {
		_ = s.charge(ctx, site, d-now.RetryAfter) // if it fails, the next request of this crawler charges the new gap
	}
}

// charge moves the next turn of a site by a time, also after ctx has ended.
func (s *shared) charge(ctx context.Context, site string, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellWithin)
	defer cancel()
	units := min(d, longestShared) + time.Millisecond - 1
	_, err := s.engine.Record(ctx, at(weir.Kit.Spent(s.site).For(site, int64(units/time.Millisecond))))
	return err
}

// flush gives back what callers that left had taken.
func (s *shared) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), tellWithin)
	defer cancel()
	_ = s.queue.Flush(ctx) // what it cannot give back ends with its lease
}

// mayGo waits until the turn of a task has come among all crawlers.
func (c *crawl) mayGo(ctx context.Context, t *turn) bool {
	if c.shared == nil {
		return true
	}
	slot, err := c.shared.await(ctx, t.site.name)
	if err != nil {
		c.stop(&EngineError{err})
		return false
	}
	written, passOn := context.WithCancel(context.WithoutCancel(ctx))
	t.passOn = passOn
	c.working.Go(func() {
		<-written.Done()
		c.shared.passOn(ctx, t.site.name, c.gap(t.site), slot)
	})
	return true
}

// gap returns the gap of a site.
func (f *frontier) gap(s *site) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.gap
}

package api

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// unreadyAfter is how long the engine fails before the daemon is not ready.
const unreadyAfter = 5 * time.Second

// probeGap is how often Watch asks the engine.
const probeGap = time.Second

// engineHealth knows since when the engine has failed, and why.
type engineHealth struct {
	decided atomic.Bool // since Watch looked last
	failing atomic.Pointer[failure]
}

type failure struct {
	since  time.Time
	reason string
}

// succeeded notes a decision.
func (h *engineHealth) succeeded() {
	if !h.decided.Load() { // a write only if there is none yet: all decisions come here
		h.decided.Store(true)
	}
	if h.failing.Load() != nil {
		h.failing.Store(nil)
	}
}

// failed notes that the engine could not decide. The reason is the latest one.
func (h *engineHealth) failed(reason string) {
	since := time.Now()
	if before := h.failing.Load(); before != nil {
		since = before.since
	}
	h.failing.Store(&failure{since, reason})
}

// unready is the reason why the engine is of no use, or empty.
func (h *engineHealth) unready() string {
	f := h.failing.Load()
	if f == nil || time.Since(f.since) < unreadyAfter {
		return ""
	}
	return "the engine has failed for " + time.Since(f.since).Round(time.Second).String() + ": " + f.reason
}

// Watch asks the engine once a second, unless decisions show that it is well,
// until the context ends. So readiness ends without anybody asking, and returns
// though balancers send nobody here.
func (a *API) Watch(ctx context.Context) {
	tick := time.NewTicker(probeGap)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if a.health.decided.Swap(false) {
			continue
		}
		within, cancel := a.within(ctx)
		err := Probe(within, a.engine, a.probed)
		cancel()
		switch {
		case err == nil:
			a.health.succeeded()
		case ctx.Err() == nil:
			a.health.failed(a.why(err))
			a.failures.warn(a.log, "the engine could not decide", "asked", "by itself", "error", err)
		}
	}
}

// probeKey is a key that no request has: it is not UTF-8.
const probeKey = "\xffprobe"

// Probe asks an engine to decide, which it can do only if it can write. It
// leaves nothing behind.
func Probe(ctx context.Context, engine weir.Engine, rule *weir.Rule) error {
	if _, err := engine.Take(ctx, rule.For(probeKey, 1)); err != nil {
		return err
	}
	return engine.Reset(ctx, rule.For(probeKey, 1))
}

// why puts the error of an engine into words for strangers.
func (a *API) why(err error) string {
	switch {
	case a.patience > 0 && errors.Is(err, context.DeadlineExceeded):
		return "it did not decide within " + a.patience.String()
	case a.reason != nil:
		return a.reason(err)
	}
	return "it could not decide"
}

package api

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// unreadyAfter is how long the engine must fail before the daemon stops being ready.
const unreadyAfter = 5 * time.Second

// probeGap is the time between two probes.
const probeGap = time.Second

// engineHealth records since when the engine has failed, and why.
type engineHealth struct {
	decided atomic.Bool // since the last probe
	failing atomic.Pointer[failure]
}

type failure struct {
	since  time.Time
	reason string
}

// succeeded records a decision.
func (h *engineHealth) succeeded() {
	if !h.decided.Load() { // every decision comes here, so write only once
		h.decided.Store(true)
	}
	if h.failing.Load() != nil {
		h.failing.Store(nil)
	}
}

// failed records that the engine could not decide, and reports whether it could before. It keeps the latest reason.
func (h *engineHealth) failed(reason string) (first bool) {
	since := time.Now()
	before := h.failing.Load()
	if before != nil {
		since = before.since
	}
	h.failing.Store(&failure{since, reason})
	return before == nil
}

// unready returns the reason why the engine cannot serve, or "".
func (h *engineHealth) unready() string {
	f := h.failing.Load()
	if f == nil || time.Since(f.since) < unreadyAfter {
		return ""
	}
	return "the engine has failed for " + time.Since(f.since).Round(time.Second).String() + ": " + f.reason
}

// Watch probes the engine once a second until the context ends. It skips a probe if a decision has succeeded
// meanwhile. Readiness therefore ends without traffic, and returns although load balancers send none.
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
		within, cancel := a.withPatience(ctx)
		err := Probe(within, a.engine)
		cancel()
		switch {
		case err == nil:
			a.health.succeeded()
		case ctx.Err() == nil:
			if a.health.failed(a.why(err)) {
				a.failures.warn(a.log, "the engine could not decide", "source", "probe", "error", err)
			}
		}
	}
}

// ProbeRule is the name of the rule by which the daemon tries its engine.
const ProbeRule = "~probe"

// probe is a rule that no caller can name. It follows the default policy of an engine that fails.
var probe, _ = weir.NewRule(ProbeRule, weir.TokenBucket{Rate: weir.Rate{Count: 10, Period: time.Second}, Burst: 10})

// Probe makes an engine decide, which succeeds only if the engine can write. It leaves nothing behind.
func Probe(ctx context.Context, engine weir.Engine) error {
	if _, err := engine.Take(ctx, probe.For("", 1)); err != nil {
		return err
	}
	return engine.Reset(ctx, probe.For("", 1))
}

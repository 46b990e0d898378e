package serve

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/layer"
)

// The times between two tries of an engine that decides, and of one that fails.
const (
	tryEvery      = time.Second
	tryAgainEvery = 200 * time.Millisecond
)

// engineHealth is the state of a shared engine, as its guard judges it below the policies.
type engineHealth struct {
	gone  atomic.Pointer[layer.GuardChange] // nil while the engine decides
	back  atomic.Pointer[time.Time]         // when it came back last; nil if it has not gone
	cause atomic.Pointer[error]             // of the last try that failed
}

// changed notes that the engine has gone or come back.
func (h *engineHealth) changed(c layer.GuardChange) {
	if c.Away {
		h.gone.Store(&c)
	} else {
		h.back.Store(&c.At)
		h.gone.Store(nil)
	}
}

// fails returns why the engine does not decide, or "".
func (h *engineHealth) fails() string {
	gone := h.gone.Load()
	if gone == nil {
		return ""
	}
	cause := gone.Cause
	if last := h.cause.Load(); last != nil {
		cause = *last
	}
	return "the engine has failed for " + time.Since(gone.At).Round(time.Second).String() + ": " + engineReason(cause)
}

// watch tries the engine until the context ends, so that the guard notices changes without traffic. An engine that refuses
// this daemon after it was unreachable at the start is logged: no wait ends that.
func (h *engineHealth) watch(ctx context.Context, guard *layer.Guarded, log *slog.Logger) {
	for logged := false; ; {
		gap := tryEvery
		err := guard.Try(ctx, decide.ProbeCall())
		if err != nil {
			h.cause.Store(&err)
			gap = tryAgainEvery
		}
		if refuses(err) && !logged {
			log.Warn("the engine answers and refuses this daemon; the policy goes on to answer until that is mended", "error", err)
			logged = true
		}
		logged = logged && err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(gap):
		}
	}
}

package httplimit

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/weirflow/weir/httplimit/internal/obey"
)

// attempt returns the request for an attempt: the caller's own, and later copies with a fresh body.
func (c *call) attempt(n int) (*http.Request, error) {
	if n == 0 {
		return c.request, nil
	}
	r := c.request.WithContext(c.request.Context())
	if c.request.GetBody != nil {
		body, err := c.request.GetBody()
		if err != nil {
			return nil, fmt.Errorf("httplimit: transport: %s: body for attempt %d: %w", c.gate.key, n+1, err)
		}
		r.Body = body
	}
	return r, nil
}

// shouldRetry reports whether a refused request is sent again, and after which pause. It is false if the wait would be
// too long, so that the caller gets the refusal with its fields.
func (c *call) shouldRetry(attempt int) (pause time.Duration, again bool) {
	p := c.pass
	if p.kind == obey.Admitted || p.noRetry || attempt >= c.transport.Retries || !isReplayable(c.request, p.kind) {
		return 0, false
	}
	w := wait{call: c, ctx: c.request.Context()}
	v, _ := c.gate.look(0)
	if p.kind == obey.Busy {
		v.Wait = max(v.Wait, backOff(attempt))
	}
	if w.check(v) != nil || w.ctx.Err() != nil || !c.gate.spend() {
		return 0, false
	}
	if p.kind == obey.Busy {
		c.notBefore = time.Now().Add(backOff(attempt) + spread(backOff(attempt)/2))
	}
	c.transport.counters.retries.Add(1)
	return v.Wait, true
}

// backOff returns the pause of one request before a retry that the server named no time for.
func backOff(attempt int) time.Duration { return time.Second / 2 << min(attempt, 6) }

// isReplayable reports whether sending a request again is safe: the body can be sent again, and the server did
// nothing the first time, or would do the same again. A server that refuses with 429 did nothing.
func isReplayable(r *http.Request, kind obey.Kind) bool {
	if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return false
	}
	if kind == obey.Refused {
		return true
	}
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return len(r.Header["Idempotency-Key"]) > 0 || len(r.Header["X-Idempotency-Key"]) > 0
}

// discard ends an answer that the caller will not read. It reads a short body, so that the connection can be used again.
func discard(resp *http.Response) {
	const enough, soon = 4 << 10, 100 * time.Millisecond
	defer closeAnswer(resp)
	if resp.ContentLength > enough {
		return
	}
	impatient := time.AfterFunc(soon, func() {
		defer func() { _ = recover() }() // nobody else would recover a panic of the base here, which would end the program
		closeAnswer(resp)
	})
	defer impatient.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, enough)
}

func closeAnswer(resp *http.Response) { _ = resp.Body.Close() }

package httplimit

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/weirflow/weir/httplimit/internal/announce"
	"github.com/weirflow/weir/httplimit/internal/obey"
)

// exchange is one request with its retries.
type exchange struct {
	*keeper
	base      http.RoundTripper
	gate      *gate
	request   *http.Request
	pass      *pass     // the last attempt's
	notBefore time.Time // earliest start of the next attempt
}

func (c *exchange) do() (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		r, err := c.attempt(attempt)
		if err != nil {
			return nil, err
		}
		w := wait{keeper: c.keeper, gate: c.gate, request: c.request, ctx: r.Context(), notBefore: c.notBefore}
		if c.pass, err = w.admit(); err != nil {
			closeBody(r)
			return nil, err
		}
		resp, err := c.send(r, c.pass)
		if err != nil {
			return nil, err
		}
		pause, again := c.shouldRetry(attempt)
		if !again {
			return resp, nil
		}
		discard(resp)
		c.events().tell(c.request, TransportEvent{Kind: EventRetry, Key: c.gate.key, Status: resp.StatusCode, Attempt: attempt + 2, Wait: pause})
	}
}

// send sends an admitted request and learns from its answer.
func (c *exchange) send(r *http.Request, p *pass) (resp *http.Response, err error) {
	passed := false
	defer func() {
		if !passed { // there is no answer, or the base or a function of the program has panicked
			c.abandon(resp, p)
		}
	}()
	c.counters.sent.Add(1)
	if resp, err = c.base.RoundTrip(r); err != nil {
		return nil, err
	}
	if resp == nil {
		return nil, errors.New("httplimit: transport: the base returned neither an answer nor an error")
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	resp.Request = c.request
	c.learn(p, resp)
	c.attach(resp, p)
	passed = true
	return resp, nil
}

// learn takes in an answer.
func (c *exchange) learn(p *pass, resp *http.Response) {
	a := announce.Read(resp.Header, time.Now())
	p.kind, p.noRetry = kindOf(resp.StatusCode, &a), a.NoRetry
	if p.kind == obey.Admitted && resp.StatusCode == http.StatusForbidden && a.LeastPause > 0 && isSecondary(resp) {
		p.kind = obey.Refused
	}
	if c.Refused != nil {
		if wait, ok := c.Refused(resp); ok {
			p.kind = obey.Refused
			if wait > 0 {
				a.Extend(wait)
			}
		}
	}
	p.answered = true
	wait := c.gate.answered(&c.obeyed, &p.ticket, p.kind, a)
	if p.kind == obey.Refused || p.kind == obey.Busy {
		c.counters.refused.Add(1)
		c.events().tell(c.request, TransportEvent{Kind: EventRefused, Key: c.gate.key, Status: resp.StatusCode, Wait: wait})
	}
}

// abandon ends a request whose answer the caller does not get.
func (c *exchange) abandon(resp *http.Response, p *pass) {
	if !p.answered {
		c.gate.failed(&c.obeyed, &p.ticket)
	}
	p.end()
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
}

// closeBody closes the body of a request that is not sent, as an http.RoundTripper must.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// attempt returns the request for an attempt: the caller's own, and later copies with a fresh body.
func (c *exchange) attempt(n int) (*http.Request, error) {
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

// shouldRetry reports whether a refused request is sent again, and returns the pause before that. It is false if the
// wait would be too long, so that the caller gets the refusal with its fields.
func (c *exchange) shouldRetry(attempt int) (pause time.Duration, again bool) {
	p := c.pass
	if p.kind == obey.Admitted || p.noRetry || attempt >= c.Retries || !isReplayable(c.request, p.kind) {
		return 0, false
	}
	w := wait{keeper: c.keeper, gate: c.gate, request: c.request, ctx: c.request.Context()}
	v, _ := c.gate.look(p.ticket.Need)
	if p.kind == obey.Busy {
		v.Wait = max(v.Wait, backOff(attempt))
	}
	if w.check(v) != nil || w.ctx.Err() != nil || !c.gate.spend() {
		return 0, false
	}
	if p.kind == obey.Busy {
		c.notBefore = time.Now().Add(backOff(attempt) + spread(backOff(attempt)/2))
	}
	c.counters.retries.Add(1)
	return v.Wait, true
}

// backOff returns the pause before a retry if the server named no time.
func backOff(attempt int) time.Duration { return time.Second / 2 << min(attempt, 6) }

// isReplayable reports whether sending a request again is safe: the body can be sent again, and the server did
// nothing the first time, or would do the same again. A server that refuses with 429 or 529 did nothing.
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
		defer func() { _ = recover() }() // no caller can recover a panic of the base here, and it would end the program
		closeAnswer(resp)
	})
	defer impatient.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, enough)
}

func closeAnswer(resp *http.Response) { _ = resp.Body.Close() }

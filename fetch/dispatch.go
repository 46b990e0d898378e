package fetch

import (
	"context"
	"time"
)

// dispatch sends tasks as their turns come, until none is left or ctx ends.
func (c *crawl) dispatch(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		switch s := c.next(time.Now()); {
		case s.done:
			return
		case s.judge != nil:
			c.working.Go(func() { c.judge(s.judge) })
		case s.turn != nil:
			c.working.Go(func() { c.work(ctx, s.turn) })
		default:
			c.sleep(ctx, timer, s.wait)
		}
	}
}

// sleep waits for a time, or without one until something may be sent earlier.
func (c *crawl) sleep(ctx context.Context, timer *time.Timer, wait time.Duration) {
	var expired <-chan time.Time
	if wait > 0 {
		timer.Reset(wait)
		expired = timer.C
	}
	select {
	case <-expired:
	case <-c.wake:
	case <-ctx.Done():
	}
}

// work sends one request and does what its answer says.
func (c *crawl) work(ctx context.Context, t *turn) {
	defer c.finish(t)
	if !c.mayGo(ctx, t) {
		return
	}
	defer t.passOn() // if the request was not written
	e := c.send(ctx, t)
	defer e.close()
	switch {
	case ctx.Err() != nil: // the URL has no result: the run ends without it
	case t.robots != nil:
		c.readRobots(t, e)
	case e.err != nil:
		c.failed(t, e, e.reason(), e.err)
	default:
		c.answered(ctx, t, e)
	}
}

// answered does what an answer to the request for a page says.
func (c *crawl) answered(ctx context.Context, t *turn, e *exchange) {
	status := e.response.StatusCode
	switch {
	case temporary(status):
		c.failed(t, e, e.reason(), nil)
		return
	case status/100 == 3 && e.response.Header.Get("Location") != "":
		c.redirect(t, e)
	case status/100 != 2:
		c.end(t, e, Refused, e.reason(), nil)
	case e.response.ContentLength > c.MaxBytes:
		c.end(t, e, Skipped, tooLong(c.MaxBytes).Error(), nil)
	default:
		c.page(ctx, t, e)
		return
	}
	c.worked(t)
}

// redirect sends the task to where the answer says, in its turn and under the rules there.
func (c *crawl) redirect(t *turn, e *exchange) {
	target, err := e.target(t.url)
	switch {
	case err != nil:
		c.end(t, e, Skipped, "redirect: "+err.Error(), err)
	case t.hops >= c.Redirects:
		c.end(t, e, Skipped, "more redirects than the bound, "+plural(c.Redirects, "redirect"), nil)
	case t.depth > 0 && siteOf(target) != siteOf(t.url):
		c.end(t, e, Skipped, "a link that leads to another site, "+siteOf(target), nil)
	default:
		t.hops++
		t.url = target
		c.putBack(t.task)
	}
}

// page lets the caller read the page.
func (c *crawl) page(ctx context.Context, t *turn, e *exchange) {
	p := &Page{URL: t.url, Asked: t.asked, Depth: t.depth, Header: e.response.Header, Started: e.startedAt(), Body: e.body, crawl: c, task: t.task}
	err := c.Page(ctx, p)
	failure := e.body.failure()
	switch {
	case ctx.Err() != nil:
	case isTooLong(failure):
		c.worked(t)
		c.end(t, e, Skipped, failure.Error(), failure)
	case failure != nil:
		c.failed(t, e, failure.Error(), failure)
	case isOfPage(err):
		t.fails++
		c.worked(t)
		c.end(t, e, Failed, err.Error(), err)
	case err != nil:
		c.stop(err)
	default:
		c.worked(t)
		c.end(t, e, Fetched, "", nil)
	}
}

// end reports the end of a task.
func (c *crawl) end(t *turn, e *exchange, outcome Outcome, reason string, err error) {
	r := t.result(outcome, reason)
	r.Err, r.Tries = err, t.fails
	if outcome != Failed { // whose last request is counted as a failure
		r.Tries++
	}
	e.describe(&r)
	c.report(r)
}

// again puts a task back, or returns why it is not tried again.
func (c *crawl) again(t *turn, reason string, err error) (refusal string) {
	if pause := asksForPause(err); pause > 0 {
		refusal = c.pauseSite(t, pause)
	} else {
		refusal = c.fail(t, reason)
	}
	if refusal == "" {
		c.putBack(t.task)
	}
	return refusal
}

// failed tries a task again later, or ends it.
func (c *crawl) failed(t *turn, e *exchange, reason string, err error) {
	if private := privateError(err); private != nil {
		c.end(t, e, Skipped, private.Error(), private)
		return
	}
	if refusal := c.again(t, reason, err); refusal != "" {
		c.end(t, e, Failed, refusal, err)
	}
}

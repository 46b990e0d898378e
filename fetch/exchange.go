package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/pace"
)

// exchange is one request and its answer.
type exchange struct {
	cancel   context.CancelCauseFunc
	ctx      context.Context
	stall    *time.Timer // ends the exchange when nothing comes for Timeout
	whole    *time.Timer // ends it after wholeTimeouts times Timeout
	timeout  time.Duration
	started  atomic.Pointer[time.Time] // when the request was written, or its turn came
	response *http.Response
	body     *body
	err      error
}

// wholeTimeouts bounds a whole answer, in units of Options.Timeout.
const wholeTimeouts = 20

// send sends the request of a task and waits for the head of the answer.
func (c *crawl) send(ctx context.Context, t *turn) *exchange {
	e := &exchange{timeout: c.Timeout}
	e.start()
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	e.stall = time.AfterFunc(c.Timeout, func() { e.cancel(fmt.Errorf("nothing came for %v", c.Timeout)) })
	e.stall.Stop() // until it is sent
	e.whole = time.AfterFunc(wholeTimeouts*c.Timeout, func() {
		e.cancel(fmt.Errorf("the answer took longer than %v", wholeTimeouts*c.Timeout))
	})
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
		e.start()
		c.written(t)
		t.passOn()
	}}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.WithValue(e.ctx, exchangeKey{}, e), trace), http.MethodGet, t.url.String(), nil)
	if err != nil {
		e.err = err
		return e
	}
	request.Header.Set("User-Agent", c.Agent)
	if e.response, e.err = c.obedient.RoundTrip(request); e.err == nil {
		e.body = &body{source: c.paid(e, t.site.name), bound: c.maxBytes(t), length: e.response.ContentLength}
	}
	return e
}

// maxBytes bounds the answer to a request.
func (c *crawl) maxBytes(t *turn) int64 {
	if t.robots != nil {
		return maxRobots
	}
	return c.MaxBytes
}

func (e *exchange) start() {
	now := time.Now()
	e.started.Store(&now)
}

func (e *exchange) startedAt() time.Time { return *e.started.Load() }

// exchangeKey is the key of the exchange in the context of its request.
type exchangeKey struct{}

// timed sends requests, and bounds the wait for each answer. It is below the transport that holds requests back.
type timed struct{ http.RoundTripper }

func (t timed) RoundTrip(r *http.Request) (*http.Response, error) {
	if e, is := r.Context().Value(exchangeKey{}).(*exchange); is {
		e.stall.Reset(e.timeout)
		defer e.stall.Stop()
	}
	return t.RoundTripper.RoundTrip(r)
}

// paid returns the body of the answer at the speed of the site's share of the bandwidth.
func (c *crawl) paid(e *exchange, site string) io.Reader {
	source := &stallReader{e}
	if c.bandwidth == nil {
		return source
	}
	return pace.Reader(e.ctx, pace.InFlow(c.bandwidth, site, 1), source)
}

// stallReader reads a body and bounds each Read.
type stallReader struct{ *exchange }

func (r *stallReader) Read(p []byte) (int, error) {
	r.stall.Reset(r.timeout)
	n, err := r.response.Body.Read(p)
	r.stall.Stop()
	if err != nil && err != io.EOF && r.ctx.Err() != nil {
		err = context.Cause(r.ctx)
	}
	return n, err
}

func (e *exchange) close() {
	e.cancel(nil)
	e.stall.Stop()
	e.whole.Stop()
	if e.response != nil {
		_ = e.response.Body.Close()
	}
}

// reason says why there is no page.
func (e *exchange) reason() string {
	if e.err == nil {
		return fmt.Sprintf("status %d %s", e.response.StatusCode, http.StatusText(e.response.StatusCode))
	}
	if cause := context.Cause(e.ctx); cause != nil && errors.Is(e.err, context.Canceled) {
		return cause.Error()
	}
	return e.err.Error()
}

// describe adds what is known of the answer to a result.
func (e *exchange) describe(r *Result) {
	r.Started = e.startedAt()
	r.Seconds = time.Since(r.Started).Round(time.Millisecond).Seconds()
	if e.response != nil {
		r.Status, r.Type, r.Bytes = e.response.StatusCode, shorten(e.response.Header.Get("Content-Type")), e.body.read
	}
}

// body counts and bounds what is read of an answer, and remembers how reading failed.
type body struct {
	source io.Reader
	bound  int64
	length int64 // as announced; -1 if it was not
	read   int64
	err    error
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if left := b.bound - b.read; int64(len(p)) > left+1 {
		p = p[:left+1] // one byte more shows that the body is longer
	}
	n, err := b.source.Read(p)
	if b.read += int64(n); b.read > b.bound {
		n, b.read, err = n-1, b.bound, tooLong(b.bound)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && b.length >= 0 {
		err = fmt.Errorf("the body ended after %d of %d bytes", b.read, b.length)
	}
	b.err = err
	return n, err
}

// failure returns the error that reading ended with, unless it ended well or was not finished.
func (b *body) failure() error {
	if b.err == io.EOF {
		return nil
	}
	return b.err
}

// tooLong reports a body above the bound, in bytes.
type tooLong int64

func (e tooLong) Error() string { return fmt.Sprintf("the body is longer than %d bytes", int64(e)) }

func isTooLong(err error) bool {
	_, is := err.(tooLong)
	return is
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// The bounds of RFC 9309 on robots.txt.
const (
	maxRobots          = 500 << 10
	maxRobotsRedirects = 5
)

// readRobots reads the answer to a request for robots.txt: the rules of an origin, or why nothing of it is fetched.
func (c *crawl) readRobots(t *turn, e *exchange) {
	switch {
	case e.err != nil:
		c.unreachable(t, e, e.reason(), e.err)
	case e.response.StatusCode/100 == 3 && e.response.StatusCode != http.StatusNotModified:
		c.worked(t)
		c.redirectRobots(t, e)
	case temporary(e.response.StatusCode) || e.response.StatusCode/100 == 5:
		c.unreachable(t, e, e.reason(), nil)
	case e.response.StatusCode/100 != 2: // there is none, so everything is allowed
		c.worked(t)
		c.obey(t.robots, &robots{})
	default:
		text, err := io.ReadAll(io.LimitReader(e.body, maxRobots))
		if err != nil {
			c.unreachable(t, e, err.Error(), err)
			return
		}
		c.worked(t)
		c.obey(t.robots, parseRobots(string(text), c.Agent))
	}
}

// redirectRobots asks where the answer says, on behalf of the first origin. Too many redirects, and those that lead
// nowhere, mean that there is no robots.txt.
func (c *crawl) redirectRobots(t *turn, e *exchange) {
	target, err := e.target(t.url)
	if err != nil || t.hops >= maxRobotsRedirects {
		c.obey(t.robots, &robots{})
		return
	}
	if known := c.rulesAt(target); known != nil {
		c.obey(t.robots, known)
		return
	}
	c.putBack(&task{url: target, hops: t.hops + 1, fails: t.fails, robots: t.robots})
}

// rulesAt returns the rules that a URL of a robots.txt stands for, if they are known.
func (f *frontier) rulesAt(u *url.URL) *robots {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sites[siteOf(u)]
	if s == nil || u.RequestURI() != "/robots.txt" {
		return nil
	}
	if o := s.origins[originOf(u)]; o != nil && o.knows(time.Now()) {
		return o.robots
	}
	return nil
}

// unreachable tries a request for robots.txt again later, or forbids the origin for now.
func (c *crawl) unreachable(t *turn, e *exchange, reason string, err error) {
	if private := privateError(err); private != nil {
		c.forbid(t.robots, Skipped, private.Error(), private)
		return
	}
	if refusal := c.again(t, reason, err); refusal != "" {
		c.forbid(t.robots, Failed, "robots.txt of "+t.robots.name+" cannot be read, so nothing is fetched for now: "+refusal, err)
	}
}

// obey sets the rules of an origin. A Crawl-delay that raises the gap of its site holds for all crawlers at once.
func (c *crawl) obey(o *origin, r *robots) {
	if raised := c.learn(o, r); raised && c.shared != nil {
		c.shared.raise(context.Background(), o.site.name, r.delay)
	}
}

// learn sets the rules of an origin. It reports whether a Crawl-delay has raised the gap of its site.
func (f *frontier) learn(o *origin, r *robots) (raised bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o.setRules(r)
	o.why, o.err, o.expires = "", nil, time.Now().Add(keepRobots)
	o.ask(false)
	if r.delay > f.o.MaxCrawlDelay {
		o.why = fmt.Sprintf("robots.txt of %s asks for a Crawl-delay of %v, the bound is %v", o.name, r.delay, f.o.MaxCrawlDelay)
		o.outcome = Skipped
	} else if r.delay > o.site.gap {
		raised = true
		o.site.gap = r.delay
		o.site.pause(o.site.wrote.Add(r.delay))
	}
	f.reschedule(o.site)
	f.wakeUp()
	return raised
}

// forbid keeps everything of an origin from being fetched for a while. Rules that were read before stay in force.
func (f *frontier) forbid(o *origin, outcome Outcome, why string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o.expires = time.Now().Add(retryRobots)
	o.ask(false)
	if o.robots == nil {
		o.why, o.outcome, o.err = why, outcome, err
	}
	f.reschedule(o.site)
	f.wakeUp()
}

// target returns where a redirect leads.
func (e *exchange) target(from *url.URL) (*url.URL, error) {
	to, err := from.Parse(e.response.Header.Get("Location"))
	if err != nil {
		return nil, err
	}
	return to, tidy(to)
}

package fetch

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

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
		c.learn(t.robots, &robots{})
	default:
		text, err := io.ReadAll(io.LimitReader(e.body, maxRobots))
		if err != nil {
			c.unreachable(t, e, err.Error(), err)
			return
		}
		c.worked(t)
		c.learn(t.robots, parseRobots(string(text), c.Agent))
	}
}

// redirectRobots asks where the answer says, on behalf of the first origin. Too many redirects, and those that lead
// nowhere, mean that there is no robots.txt.
func (c *crawl) redirectRobots(t *turn, e *exchange) {
	target, err := e.target(t.url)
	if err != nil || t.hops >= maxRobotsRedirects {
		c.learn(t.robots, &robots{})
		return
	}
	if known := c.rulesAt(target); known != nil {
		c.learn(t.robots, known)
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

// learn sets the rules of an origin. A Crawl-delay raises the gap of its site.
func (f *frontier) learn(o *origin, r *robots) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o.setRules(r)
	o.why, o.err, o.expires = "", nil, time.Now().Add(keepRobots)
	o.ask(false)
	if r.delay > f.o.MaxCrawlDelay {
		o.why = fmt.Sprintf("robots.txt of %s asks for a Crawl-delay of %v, the bound is %v", o.name, r.delay, f.o.MaxCrawlDelay)
		o.outcome = Skipped
	} else if r.delay > o.site.gap {
		o.site.gap = r.delay
		o.site.pause(o.site.wrote.Add(r.delay))
	}
	f.reschedule(o.site)
	f.wakeUp()
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

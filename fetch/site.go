package fetch

import (
	"net/url"
	"time"

	"github.com/weirflow/weir"
)

// task is a URL on its way.
type task struct {
	placed // in the pages of an origin

	url    *url.URL // URL of the next request
	asked  string   // as listed, in canonical form
	home   string   // the site of asked
	depth  int
	order  uint64  // of arrival
	hops   int     // redirects so far
	fails  int     // requests that failed
	robots *origin // if the request is for the robots.txt of this origin
	guest  bool    // a redirect has led it away from its home
	links  []string
	linked int // the bytes of links
}

// turn is a task that may be sent to a site.
type turn struct {
	*task
	site   *site
	passOn func() // lets other crawlers send to the site; later calls do nothing
}

// site is a registrable domain: it has one pace, and origins with rules of their own.
type site struct {
	placed

	name    string
	origins map[string]*origin
	ready   ordered[*origin] // with pages, and not waiting for their rules
	urgent  []*task          // requests for robots.txt that come back: after a redirect within the site, or a failure
	guests  []*task          // requests for the robots.txt of other sites, redirected here
	rules   int              // the bytes of the rules of the origins
	waiting int              // tasks of the origins
	busy    int              // requests in flight
	sending *turn            // not yet written: the next one keeps its distance from the instant of writing
	judging bool             // the rules are being asked about the first page

	gap      time.Duration
	next     time.Time // the earliest start of the next request
	served   uint64    // when it had its last turn, as a number of turns
	wrote    time.Time // when the last request was written, or its turn came
	failures int       // in a row
	shut     string    // why nothing is sent before until
	until    time.Time

	// For an estimate of the time left, since the site was idle.
	sent  int           // requests
	began time.Time     // when the last one had its turn
	due   time.Time     // when the site could send the next one, which may wait for the total; zero if it cannot
	apart time.Duration // the times from a request until the next one could be sent

	resting bool // in the list of idle sites

	in *ordered[*site] // the heap that it is in
}

// origin is a scheme, host and port: robots.txt is for it.
type origin struct {
	placed

	name    string
	site    *site
	pages   ordered[*task]
	served  uint64
	isReady bool    // in the site's heap
	asking  bool    // robots.txt is on its way
	robots  *robots // nil until it is known
	allowed *task   // the page that the rules allow, if they have been asked about the first one
	why     string  // not empty: nothing of the origin is fetched for now
	outcome Outcome // the outcome of its URLs in that case
	err     error   // behind why, if there is one
	expires time.Time
}

// How long rules are kept, and when an origin whose rules cannot be read is asked again.
const (
	keepRobots  = 24 * time.Hour
	retryRobots = 5 * time.Minute
)

// The bytes of rules that are kept of one site, and of one without a URL. A site with more is asked again.
const (
	maxRules     = 4 << 20
	maxIdleRules = 64 << 10
)

func newSite(name string, gap time.Duration) *site {
	return &site{name: name, origins: map[string]*origin{}, gap: gap, ready: ordered[*origin]{before: originBefore}}
}

func (s *site) originFor(name string) *origin {
	o := s.origins[name]
	if o == nil {
		o = &origin{name: name, site: s, pages: ordered[*task]{before: taskBefore}}
		s.origins[name] = o
	}
	return o
}

// originBefore orders origins for sending: by kind and depth of their first page, and then by their last turn, the
// longest ago first.
func originBefore(a, b *origin) bool {
	first, second := a.pages.items[0], b.pages.items[0]
	switch {
	case first.guest != second.guest:
		return second.guest
	case first.depth != second.depth:
		return first.depth < second.depth
	case a.served != b.served:
		return a.served < b.served
	}
	return a.name < b.name
}

// taskBefore is breadth-first order. Pages that another site has redirected here come last.
func taskBefore(a, b *task) bool {
	switch {
	case a.guest != b.guest:
		return b.guest
	case a.depth != b.depth:
		return a.depth < b.depth
	}
	return a.order < b.order
}

// push adds a task. One that comes back has its old place.
func (o *origin) push(t *task) {
	o.site.waiting++
	o.pages.push(t)
	o.changed()
}

// remove removes a task.
func (o *origin) remove(t *task) {
	if o.site.waiting--; o.allowed == t {
		o.allowed = nil
	}
	if o.pages.remove(t); len(o.pages.items) == 0 {
		o.leave()
		return
	}
	o.changed()
}

// ask says whether robots.txt is on its way.
func (o *origin) ask(asking bool) {
	if o.asking = asking; asking {
		o.leave()
		return
	}
	o.changed()
}

// changed puts the origin in its place among those that are ready.
func (o *origin) changed() {
	switch {
	case len(o.pages.items) == 0 || o.asking:
	case o.isReady:
		o.site.ready.moved(o)
	default:
		o.site.ready.push(o)
		o.isReady = true
	}
}

func (o *origin) leave() {
	if o.isReady {
		o.site.ready.remove(o)
		o.isReady = false
	}
}

// setRules replaces the rules of the origin. If the site then has too many, those of other origins are forgotten.
func (o *origin) setRules(r *robots) {
	o.forgetRules()
	if o.site.rules+r.size > maxRules {
		o.site.forgetRules()
	}
	o.robots, o.allowed = r, nil
	o.site.rules += r.size
}

func (o *origin) forgetRules() {
	if o.robots != nil {
		o.site.rules -= o.robots.size
		o.robots = nil
	}
}

func (s *site) forgetRules() {
	for _, o := range s.origins {
		o.forgetRules()
	}
}

// knows reports whether the rules of the origin are known and fresh.
func (o *origin) knows(now time.Time) bool {
	return (o.robots != nil || o.why != "") && now.Before(o.expires)
}

// pause makes the next request of the site wait.
func (s *site) pause(until time.Time) {
	if until.After(s.next) {
		s.next = until
	}
}

// isShut reports whether nothing is sent to the site for now.
func (s *site) isShut(now time.Time) bool { return s.shut != "" && now.Before(s.until) }

// hasTurn reports whether the site has something to send. Requests for the rules of other sites go when it has nothing
// of its own, so that no site slows down another by redirects.
func (s *site) hasTurn() bool {
	return len(s.urgent) > 0 || len(s.ready.items) > 0 || len(s.guests) > 0 && s.busy == 0
}

// isUnjudged reports whether the first page waits for a verdict.
func (s *site) isUnjudged(now time.Time) bool {
	o := s.ready.first()
	if len(s.urgent) > 0 || o == nil {
		return false
	}
	return s.isShut(now) || o.knows(now) && (o.why != "" || o.pages.first() != o.allowed)
}

// isIdle reports whether the site has no URL.
func (s *site) isIdle() bool {
	return !s.judging && s.waiting+s.busy+len(s.urgent)+len(s.guests) == 0
}

// gapOf returns the time between two starts at the rate, rounded up.
func gapOf(r weir.Rate) time.Duration {
	return (r.Period + time.Duration(r.Count) - 1) / time.Duration(r.Count)
}

// result returns a result for the task.
func (t *task) result(outcome Outcome, reason string) Result {
	r := Result{URL: t.asked, Outcome: outcome, Reason: shorten(reason), Depth: t.depth, Links: t.links}
	if final := t.url.String(); final != t.asked {
		r.Final = final
	}
	return r
}

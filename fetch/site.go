package fetch

import (
	"container/heap"
	"net/url"
	"time"
)

// task is a URL on its way.
type task struct {
	url    *url.URL // of the next request
	asked  string   // as listed, in canonical form
	depth  int
	order  uint64  // of arrival
	hops   int     // redirects so far
	fails  int     // requests that failed
	robots *origin // if the request is for the robots.txt of this origin
	links  []string
}

// turn is a task that may be sent to a site.
type turn struct {
	*task
	site *site
}

// site is a registrable domain: it has one pace, and origins with rules of their own.
type site struct {
	name    string
	origins map[string]*origin
	urgent  []*task // requests for robots.txt that were redirected here
	waiting int     // tasks of the origins
	busy    int     // requests in flight
	sending *turn   // not yet written: the next one keeps its distance from the instant of writing

	gap      time.Duration
	next     time.Time // the earliest start of the next request
	served   uint64    // when it had its last turn, as a number of turns
	wrote    time.Time // when the last request was written
	failures int       // in a row
	shut     string    // why nothing is sent until shutUntil
	until    time.Time

	resting bool // in the list of idle sites

	place int // in the heap that it is in
	in    *siteHeap
}

// origin is a scheme, host and port: robots.txt is for it.
type origin struct {
	name    string
	site    *site
	pages   taskHeap
	served  uint64
	asking  bool    // robots.txt is on its way
	robots  *robots // nil until it is known
	why     string  // not empty: nothing of the origin is fetched for now
	outcome Outcome // of its URLs, if so
	err     error   // behind why, if there is one
	expires time.Time
}

// The time for which rules are kept, and after which an origin whose rules cannot be read is asked again.
const (
	keepRobots  = 24 * time.Hour
	retryRobots = 5 * time.Minute
)

// choose returns the origin whose turn it is: the one with the least depth, and of these the one whose last turn is
// longest ago. It is nil if all wait for their rules.
func (s *site) choose() (chosen *origin) {
	for _, o := range s.origins {
		if len(o.pages) == 0 || o.asking {
			continue
		}
		if chosen == nil || o.before(chosen) {
			chosen = o
		}
	}
	return chosen
}

func (o *origin) before(other *origin) bool {
	if a, b := o.pages[0].depth, other.pages[0].depth; a != b {
		return a < b
	}
	if o.served != other.served {
		return o.served < other.served
	}
	return o.name < other.name
}

// push adds a task. One that comes back has its old place.
func (o *origin) push(t *task) {
	o.site.waiting++
	heap.Push(&o.pages, t)
}

// pop removes the first task.
func (o *origin) pop() *task {
	o.site.waiting--
	return heap.Pop(&o.pages).(*task)
}

// verdict says what the rules of the origin make of a URL: nothing, or the reason not to fetch it.
func (o *origin) verdict(u *url.URL) (outcome Outcome, reason string, err error) {
	switch {
	case o.why != "":
		return o.outcome, o.why, o.err
	case !o.robots.allows(robotsPath(u)):
		return Skipped, "robots.txt of " + o.name + " disallows it", nil
	}
	return "", "", nil
}

// pause makes the next request of the site wait.
func (s *site) pause(until time.Time) {
	if until.After(s.next) {
		s.next = until
	}
}

// siteHeap is sites in an order. Sites know their place, so that they can leave.
type siteHeap struct {
	sites []*site
	less  func(a, b *site) bool
}

func (h *siteHeap) Len() int           { return len(h.sites) }
func (h *siteHeap) Less(i, j int) bool { return h.less(h.sites[i], h.sites[j]) }
func (h *siteHeap) Swap(i, j int) {
	h.sites[i], h.sites[j] = h.sites[j], h.sites[i]
	h.sites[i].place, h.sites[j].place = i, j
}
func (h *siteHeap) Push(x any) {
	s := x.(*site)
	s.place, s.in = len(h.sites), h
	h.sites = append(h.sites, s)
}
func (h *siteHeap) Pop() any {
	last := len(h.sites) - 1
	s := h.sites[last]
	h.sites[last] = nil
	h.sites, s.in = h.sites[:last], nil
	return s
}

// taskHeap is tasks in breadth-first order.
type taskHeap []*task

func (h taskHeap) Len() int { return len(h) }
func (h taskHeap) Less(i, j int) bool {
	if h[i].depth != h[j].depth {
		return h[i].depth < h[j].depth
	}
	return h[i].order < h[j].order
}
func (h taskHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *taskHeap) Push(x any)   { *h = append(*h, x.(*task)) }
func (h *taskHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}

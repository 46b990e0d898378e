package fetch

import (
	"context"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// maxInFlight bounds the requests in flight, and so the goroutines.
const maxInFlight = 256

// maxIdleSites bounds the sites without a URL whose pace and rules are remembered.
const maxIdleSites = 10_000

// frontier holds the URLs that wait, by site. Sites take turns: of those whose pace admits a request, the one whose
// last turn is longest ago goes first. A turn is one decision: site and total admit it at the same instant, or
// nothing is taken. A frontier is safe for concurrent use.
type frontier struct {
	o     Options
	total *weir.Limiter
	wake  chan struct{} // receives when something may be sent earlier than planned

	mu       sync.Mutex
	room     sync.Cond // URLs of the list may be added
	sites    map[string]*site
	idle     []*site        // in the order that they first became idle; some are busy again
	due      ordered[*site] // may send now, least recently served first
	later    ordered[*site] // by the instant when they may
	unjudged []*site        // whose first page waits for a verdict
	seen     map[identity]struct{}
	waiting  int // tasks in origins
	inFlight int
	judging  int // sites whose first page waits for a verdict, or has it soon
	turns    uint64
	arrived  uint64
	followed int
	ended    bool // the list has ended
}

func newFrontier(o Options, total *weir.Limiter) *frontier {
	f := &frontier{o: o, total: total, wake: make(chan struct{}, 1), sites: map[string]*site{}, seen: map[identity]struct{}{}}
	f.room.L = &f.mu
	f.due.before = func(a, b *site) bool { return a.served < b.served }
	f.later.before = func(a, b *site) bool { return a.next.Before(b.next) }
	return f
}

// awaitRoom waits until a URL of the list may be added. It is false when ctx has ended.
func (f *frontier) awaitRoom(ctx context.Context) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.waiting >= f.o.Queue && ctx.Err() == nil {
		f.room.Wait()
	}
	return ctx.Err() == nil
}

func (f *frontier) wakeFeeder() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room.Broadcast()
}

// fed says that the list has ended.
func (f *frontier) fed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.wakeUp()
}

// add adds a URL unless it was added before.
func (f *frontier) add(t *task) {
	id := identify(t.asked)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.see(id) {
		f.put(t)
	}
}

// follow adds a link of a page, unless a bound forbids it or it was added before.
func (f *frontier) follow(t *task) bool {
	id := identify(t.asked) // outside the lock, because a URL may be long
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followed >= f.o.Count || !f.see(id) {
		return false
	}
	f.followed++
	f.put(t)
	return true
}

// see reports whether a URL is new, and remembers it.
func (f *frontier) see(id identity) bool {
	if _, seen := f.seen[id]; seen {
		return false
	}
	f.seen[id] = struct{}{}
	return true
}

// putBack returns a task for another request: after a redirect, or after a failure.
func (f *frontier) putBack(t *task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(t)
}

// put adds a task to its origin, with the lock held.
func (f *frontier) put(t *task) {
	if t.order == 0 {
		f.arrived++
		t.order = f.arrived
	}
	s := f.siteFor(siteOf(t.url))
	switch {
	case t.robots == nil:
		t.guest = t.home != s.name
		f.waiting++
		s.originFor(originOf(t.url)).push(t)
	case t.robots.site == s:
		s.urgent = append(s.urgent, t)
	default:
		s.guests = append(s.guests, t)
	}
	f.reschedule(s)
	f.wakeUp()
}

func (f *frontier) siteFor(name string) *site {
	s := f.sites[name]
	if s == nil {
		s = newSite(name, gapOf(f.o.PerHost))
		f.sites[name] = s
	}
	return s
}

// homeOf returns the site that answers for a request: the site of the URL that was listed or followed. A redirect may have
// led the request to another one, whose pace does not suffer if it fails.
func (f *frontier) homeOf(t *turn) *site {
	page := t.task
	if o := t.robots; o != nil {
		if page = o.pages.first(); page == nil {
			return o.site
		}
	}
	return f.siteFor(page.home)
}

// reschedule puts the site in the heap that its state asks for, with the lock held.
func (f *frontier) reschedule(s *site) {
	if s.in != nil {
		s.in.remove(s)
		s.in = nil
	}
	switch {
	case s.judging || s.sending != nil:
	case s.isUnjudged(time.Now()):
		s.judging = true
		f.judging++
		f.unjudged = append(f.unjudged, s)
	case s.busy >= f.o.AtOnce:
	case s.hasTurn():
		f.enter(&f.later, s)
	case s.isIdle():
		f.rest(s)
	}
}

func (f *frontier) enter(heap *ordered[*site], s *site) {
	heap.push(s)
	s.in = heap
}

// rest remembers an idle site. It forgets those that have been idle longest if there are too many, unless they are
// within their gap.
func (f *frontier) rest(s *site) {
	s.sent, s.apart = 0, 0
	if s.rules > maxIdleRules {
		s.forgetRules()
	}
	if !s.resting {
		s.resting = true
		f.idle = append(f.idle, s)
	}
	for len(f.idle) > maxIdleSites {
		oldest := f.idle[0]
		if oldest.isIdle() {
			if time.Now().Before(oldest.next) {
				return
			}
			delete(f.sites, oldest.name)
		}
		oldest.resting = false
		f.idle[0] = nil
		f.idle = f.idle[1:]
	}
}

func (f *frontier) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default: // it is awake
	}
}

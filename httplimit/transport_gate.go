package httplimit

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit/internal/announce"
	"github.com/weirflow/weir/httplimit/internal/obey"
)

// gate holds the state of one key, and the requests that wait for it.
type gate struct {
	key   string
	users int // requests that use it; guarded by the lock of gates

	mu      sync.Mutex
	state   obey.State
	changed chan struct{} // closed when the state may admit a request earlier; nil without a listener
	lines   map[string]*gateLine
	line    gateLine // of requests without keys of their own
	credit  int      // the budget of retries, in fifths
	waiting int
	reason  Reason // why the first of them waits
	until   time.Time
}

// gateLine is the requests of a gate that charge the same keys. The first of them has the turn.
type gateLine struct {
	turn  chan struct{} // holds one value when the turn is free
	users int
}

// The budget of retries of a key.
const (
	retriesAtFirst = 100
	retryCosts     = 5 // answers that are not refusals
)

// gates holds the gates of all keys.
type gates struct {
	mu    sync.Mutex
	byKey map[string]*gate
	most  int
}

func (s *gates) init(most int) { s.byKey, s.most = map[string]*gate{}, most }

// enter returns the gate of a key, which stays until leave.
func (s *gates) enter(key string) (*gate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.byKey[key]
	if g == nil {
		if s.forget(); len(s.byKey) >= s.most {
			return nil, fmt.Errorf("httplimit: transport: %s: %w: all %d keys have requests or pauses: raise MaxKeys", key, weir.ErrNoRoom, s.most)
		}
		g = &gate{key: key, credit: retriesAtFirst * retryCosts, line: gateLine{turn: newTurn()}}
		s.byKey[key] = g
	}
	g.users++
	return g, nil
}

func (s *gates) leave(g *gate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.users--
}

// forget removes some idle gates: a few each time, more of them when there is no room.
func (s *gates) forget() {
	look := 4
	if len(s.byKey) >= s.most {
		look = 256
	}
	now := time.Now()
	for key, g := range s.byKey { // in random order
		if look--; look < 0 {
			return
		}
		if g.users == 0 && g.idle(now) {
			delete(s.byKey, key)
		}
	}
}

func (g *gate) idle(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.Idle(now)
}

// try starts a request if the server admits it now.
func (g *gate) try(need obey.Need) (obey.Ticket, obey.Verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	v := g.state.Wait(now, need)
	if v.Wait > 0 {
		return obey.Ticket{}, v
	}
	return g.state.Start(now, need), v
}

// look returns how long a request has to wait now, and a channel that is closed when it may be earlier.
func (g *gate) look(need obey.Need) (obey.Verdict, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.state.Wait(time.Now(), need)
	if v.Wait == 0 {
		return v, nil
	}
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return v, g.changed
}

// answered learns from an answer. It returns how long the next request has to wait.
func (g *gate) answered(c *obey.Config, t *obey.Ticket, kind obey.Kind, a announce.Announcement) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.state.Answer(c, t, now, kind, a)
	if kind == obey.Admitted {
		g.credit = min(g.credit+1, retriesAtFirst*retryCosts)
	}
	g.notify()
	return g.state.Wait(now, obey.Need{}).Wait
}

// statusOverloaded is the status of servers that have no room for a request, such as those of Anthropic.
const statusOverloaded = 529

// kindOf says whether an answer is a refusal. Some servers refuse with 403.
func kindOf(status int, a *announce.Announcement) obey.Kind {
	switch status {
	case http.StatusTooManyRequests, statusOverloaded:
		return obey.Refused
	case http.StatusServiceUnavailable:
		return obey.Busy
	case http.StatusForbidden:
		if a.RetryAfter > 0 {
			return obey.Refused
		}
		for i := range a.Quotas {
			if a.Quotas[i].Remaining == 0 {
				return obey.Refused
			}
		}
	}
	return obey.Admitted
}

// failed counts a request without an answer.
func (g *gate) failed(c *obey.Config, t *obey.Ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state.Answer(c, t, time.Now(), obey.Failed, announce.Announcement{RetryAfter: announce.Unknown})
	g.notify()
}

// ended counts an answer whose body has ended, and the tokens that it used if they are known.
func (g *gate) ended(t obey.Ticket, used *obey.Tokens) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state.End(t, used)
	g.notify()
}

// notify wakes the requests that wait for an answer. The caller holds the lock.
func (g *gate) notify() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// spend takes one retry of the budget.
func (g *gate) spend() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.credit < retryCosts {
		return false
	}
	g.credit -= retryCosts
	return true
}

func newTurn() chan struct{} {
	turn := make(chan struct{}, 1)
	turn <- struct{}{}
	return turn
}

// join returns the line of some keys, which stays until leave.
func (g *gate) join(keys string) *gateLine {
	g.mu.Lock()
	defer g.mu.Unlock()
	if keys == "" {
		return &g.line
	}
	l := g.lines[keys]
	if l == nil {
		if g.lines == nil {
			g.lines = map[string]*gateLine{}
		}
		l = &gateLine{turn: newTurn()}
		g.lines[keys] = l
	}
	l.users++
	return l
}

func (g *gate) leave(keys string, l *gateLine) {
	if keys == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(g.lines, keys)
	}
}

func (s *gates) all() []*gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*gate, 0, len(s.byKey))
	for _, g := range s.byKey {
		all = append(all, g)
	}
	return all
}

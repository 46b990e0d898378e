package live

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/top"
	"github.com/weirflow/weir/layer"
)

// The bounds of the sample.
const (
	sampleTime  = 5 * time.Minute // how long requests stay
	mostSampled = 1000            // rules; further ones have no requests
)

// sample keeps the requests of the last minutes, within a bound. It keeps all requests of some keys of each rule,
// because a limit decides each key by all its requests. When it is full, the rule with the most requests loses every
// second of its keys.
type sample struct {
	seed maphash.Seed
	most int

	mu    sync.Mutex
	kept  int
	since time.Time // when it began
	rules map[string]*sampled
}

// sampled are the requests of a rule.
type sampled struct {
	level    uint // one in 2^level keys is kept
	since    time.Time
	requests []request // in order of time
}

// request is one request in the sample.
type request struct {
	at      time.Time
	hash    uint64 // of the key
	key     string
	cost    int64
	own     *weir.Rule // whose limit decided, if it was not that of the rule: of a plan, of the key, or of a rule that shares the budget
	refused bool       // by this rule
}

func (s *sample) init(most int) { s.seed, s.most = maphash.MakeSeed(), most }

// begin makes room for requests from now on.
func (s *sample) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept, s.since, s.rules = 0, now, map[string]*sampled{}
}

func (s *sample) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept, s.rules = 0, nil
}

// seen adds the requests of a decision. inForce returns the rule of a name.
func (s *sample) seen(o *layer.Observation, inForce func(name string) *weir.Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules == nil || s.most == 0 {
		return
	}
	for i := range o.Requests {
		q := &o.Requests[i]
		name, hash := q.Rule.Name(), maphash.String(s.seed, q.Key)
		of := s.rules[name]
		if of == nil {
			if len(s.rules) >= mostSampled {
				continue
			}
			of = &sampled{since: s.since}
			s.rules[name] = of
		}
		if hash&(1<<of.level-1) != 0 {
			continue
		}
		if s.kept >= s.most {
			s.thin(o.Began)
		}
		if hash&(1<<of.level-1) == 0 {
			key, _ := top.Kept(q.Key)
			seen := request{at: o.Began, hash: hash, key: key, cost: q.Cost}
			if q.Rule != inForce(name) {
				seen.own = q.Rule
			}
			seen.refused = !o.Decision.Allowed && o.Decision.Rule == name && o.Decision.Key == q.Key
			of.requests = append(of.requests, seen)
			s.kept++
		}
	}
}

// thin makes room: the rule with the most requests loses half of its keys, or the older half of its requests if that would
// leave too few or too many.
func (s *sample) thin(now time.Time) {
	var of *sampled
	for _, other := range s.rules {
		if of == nil || len(other.requests) > len(of.requests) {
			of = other
		}
	}
	stay := make([]request, 0, len(of.requests)/2)
	for _, q := range of.requests {
		if q.hash&(1<<(of.level+1)-1) == 0 {
			stay = append(stay, q)
		}
	}
	if n := len(of.requests); len(stay) > n/8 && len(stay) <= n*7/8 {
		of.level++
	} else {
		stay = append(stay[:0], of.requests[(n+1)/2:]...)
		of.since = now
		if len(stay) > 0 {
			of.since = stay[0].at
		}
	}
	s.kept -= len(of.requests) - len(stay)
	of.requests = stay
}

// expire drops the requests that are too old.
func (s *sample) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, of := range s.rules {
		old := 0
		for old < len(of.requests) && now.Sub(of.requests[old].at) > sampleTime {
			old++
		}
		if old == 0 {
			continue
		}
		s.kept -= old
		if of.requests = append([]request(nil), of.requests[old:]...); len(of.requests) == 0 {
			delete(s.rules, name)
		}
	}
}

// of returns the requests of a rule, from when on there are such, and one in how many keys is kept.
func (s *sample) of(rule string, now time.Time) (requests []request, from time.Time, in int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.rules[rule]
	if of == nil {
		return nil, s.since, 1
	}
	from = of.since
	if oldest := now.Add(-sampleTime); from.Before(oldest) {
		from = oldest
	}
	return append([]request(nil), of.requests...), from, 1 << of.level
}

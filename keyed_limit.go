package weir

import (
	"sync"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
)

// compiledLimit is a limit ready to decide, or the reason why it is not.
type compiledLimit struct {
	limit     Limit
	identity  string
	algorithm algorithm.Algorithm
	words     algorithm.Worder // the algorithm, if its states fit words
	err       error
}

func compileLimit(limit Limit) (*compiledLimit, error) {
	a, err := compile(limit)
	if err == nil && limit.kind().oneSubject == yes {
		err = &LimitError{Limit: limit.String(), Field: "keyed", Code: CodeOneSubject, Reason: whyOneSubject}
	}
	c := &compiledLimit{limit: limit, algorithm: a, err: err}
	if err == nil {
		c.identity = identity(limit)
		if !algorithm.Stateless(a) { // what has no state must not begin the table of words
			c.words, _ = a.(algorithm.Worder)
		}
	}
	return c, err
}

// limitSource tells the limit of a key: one for all, or by a function whose
// answers are compiled once.
type limitSource[K comparable] struct {
	all      atomic.Pointer[compiledLimit]
	byKey    func(K) Limit
	compiled sync.Map // Limit to *compiledLimit
	count    atomic.Int64
	changes  atomic.Uint64 // how often those who wait were planned anew
}

// maxCompiled bounds what a function that never answers the same twice can make
// us remember; beyond it a limit is compiled at each decision.
const maxCompiled = 4096

func (s *limitSource[K]) of(key K) *compiledLimit {
	if c := s.all.Load(); c != nil {
		return c
	}
	limit := s.byKey(key)
	if c, ok := s.compiled.Load(limit); ok {
		return c.(*compiledLimit)
	}
	c, _ := compileLimit(limit)
	if s.count.Load() < maxCompiled {
		known, loaded := s.compiled.LoadOrStore(limit, c)
		if !loaded {
			s.count.Add(1)
		}
		c = known.(*compiledLimit)
	}
	return c
}

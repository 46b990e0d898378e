package decide

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// doubts are the marks that this daemon may have taken: the engine did not answer. The client got an answer to try
// again, so its next settlement must not take such a mark for the settlement of somebody else. They last as long as
// their marks.
type doubts struct {
	mu    sync.Mutex
	count int
	marks map[string][]weir.Call // that release them, by the key
}

// mostDoubts bounds the doubts. The token of a further one stays unsettled if the engine took its mark.
const mostDoubts = 10_000

// add notes a take of a mark.
func (s *doubts) add(mark weir.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count >= mostDoubts {
		return
	}
	if s.marks == nil {
		s.marks = map[string][]weir.Call{}
	}
	mark.Op, s.count = weir.OpReturn, s.count+1
	key := mark.Requests[0].Key
	s.marks[key] = append(s.marks[key], mark)
	time.AfterFunc(weir.Describe(mark.Requests[0].Rule.Limits()[0]).Lease, func() { s.forget(key, mark.Lease) })
}

// forget forgets one doubt of a key, or all for the lease 0.
func (s *doubts) forget(key string, lease uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := len(s.marks[key])
	left := slices.DeleteFunc(slices.Clone(s.marks[key]), func(c weir.Call) bool { return lease == 0 || c.Lease == lease })
	if s.count -= had - len(left); len(left) > 0 {
		s.marks[key] = left
	} else {
		delete(s.marks, key)
	}
}

// release releases the marks of a key that were taken in doubt. It returns false if there are none. A Guard may release one
// later, so they stay in doubt.
func (s *doubts) release(ctx context.Context, e weir.Engine, key string) (released bool, err error) {
	s.mu.Lock()
	calls := s.marks[key] // replaced, not changed
	s.mu.Unlock()
	for _, call := range calls {
		if _, err := e.Do(ctx, call); err != nil {
			return false, err
		}
	}
	return len(calls) > 0, nil
}

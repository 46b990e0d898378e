package enginekit_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// store keeps states in a map.
type store struct {
	clock  func() int64 // nanoseconds since the Unix epoch
	mu     sync.Mutex
	states map[string]enginekit.State
}

// newEngine returns an engine that decides by the clock.
func newEngine(clock func() int64) weir.Engine {
	s := &store{clock: clock, states: map[string]enginekit.State{}}
	return enginekit.New(s.decide, nil)
}

func (s *store) decide(_ context.Context, call *enginekit.Merged) (weir.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range call.Parts {
		if state, ok := s.states[call.Parts[i].StateKey()]; ok {
			call.Parts[i].State = state
		}
	}
	d := call.Decide(s.clock())
	for _, part := range call.Parts {
		if part.Changed {
			s.states[part.StateKey()] = part.State
		}
	}
	return d, nil
}

// Example makes an engine over a map and a mutex.
func Example() {
	login, err := weir.NewRule("login", weir.TokenBucket{Rate: weir.PerMinute(2)})
	if err != nil {
		panic(err)
	}
	engine := newEngine(func() int64 { return time.Now().UnixNano() })
	for range 3 {
		d, err := engine.Take(context.Background(), login.For("alice", 1))
		fmt.Println(d.Allowed, d.Remaining, err)
	}
	// Output:
	// true 1 <nil>
	// true 0 <nil>
	// false 0 <nil>
}

package pace_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// server is a memory engine that processes share over a network, as they share Redis: it books, and tells processes of slots
// that came free. Queues do not know that it is a memory engine.
type server struct {
	memory *weir.Memory
	calls  atomic.Int64

	mu        sync.Mutex
	listeners map[*process]map[int]listening
	next      int
}

type listening struct {
	key  string
	hear func()
}

// network is what happens to the calls of a process. A nil function does nothing.
type network struct {
	way  func() time.Duration // from the process to the server, and back
	lose func() bool          // the answer
	deaf func() bool          // signals
	down func() bool          // calls fail before they reach the server
}

// process is the engine of one process on a server.
type process struct {
	weir.Engine
	server *server
	network
}

func newServer(t *testing.T) *server {
	t.Helper()
	return serverOver(mustMemory(t))
}

func serverOver(memory *weir.Memory) *server {
	s := &server{memory: memory, listeners: map[*process]map[int]listening{}}
	s.memory.OnReturn(func(requests []weir.Request) bool {
		for _, r := range requests {
			s.signal(r.Rule.Name() + " " + r.Key)
		}
		return true
	})
	return s
}

// connect returns the engine of another process.
func (s *server) connect(n network) *process {
	p := &process{server: s, network: n}
	p.Engine = weir.EngineOf(p.do, s.memory.Check)
	return p
}

func (p *process) do(ctx context.Context, c weir.Call) (weir.Answer, error) {
	if c.Op == weir.OpReserve {
		return weir.Reserve(ctx, p, c)
	}
	if p.down != nil && p.down() {
		return weir.Answer{}, away{}
	}
	if err := p.pass(ctx); err != nil {
		return weir.Answer{}, lost{err}
	}
	p.server.calls.Add(1)
	a, err := p.server.memory.Do(context.WithoutCancel(ctx), c)
	if p.lose != nil && p.lose() {
		_ = p.pass(ctx)
		return weir.Answer{}, lost{context.DeadlineExceeded}
	}
	if passed := p.pass(ctx); passed != nil {
		return weir.Answer{}, lost{passed}
	}
	if c.Op == weir.OpReserveAhead && err == nil {
		a.Reservation = p.through(c, a.Reservation)
	}
	if c.Each != nil && err == nil {
		for i := range c.Each.Results {
			if r := &c.Each.Results[i]; r.Reservation != nil {
				r.Reservation = p.through(c.Each.Calls[i], r.Reservation)
			}
		}
	}
	return a, err
}

// through has a booking be withdrawn over the network.
func (p *process) through(c weir.Call, r *weir.Reservation) *weir.Reservation {
	return weir.Granted(p, time.Time{}, r.Decision, func(ctx context.Context, n int64) error {
		if err := p.pass(ctx); err != nil {
			return lost{err}
		}
		return r.Cancel(ctx)
	}, c)
}

func (p *process) pass(ctx context.Context) error {
	if p.way == nil {
		return nil
	}
	select {
	case <-time.After(p.way()):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Listen makes the process a weir.Listener.
func (p *process) Listen(slots weir.Request, hear func()) (hears func() bool, stop func()) {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners[p] == nil {
		s.listeners[p] = map[int]listening{}
	}
	s.next++
	name := s.next
	s.listeners[p][name] = listening{slots.Rule.Name() + " " + slots.Key, hear}
	return func() bool { return p.deaf == nil || !p.deaf() }, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners[p], name)
	}
}

// signal tells all processes of a key.
func (s *server) signal(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, all := range s.listeners {
		for _, l := range all {
			if l.key != key || p.deaf != nil && p.deaf() {
				continue
			}
			go func() {
				_ = p.pass(context.Background())
				l.hear()
			}()
		}
	}
}

type away struct{}

func (away) Error() string            { return "the engine is away" }
func (away) Unavailable() bool        { return true }
func (away) WasCounted() weir.Counted { return weir.CountedNo }

// lost is the error of a call whose answer was lost.
type lost struct{ error }

func (l lost) Unwrap() error   { return l.error }
func (lost) Unavailable() bool { return true }

// queuesOn returns a server and the queues of processes on it.
func queuesOn(t *testing.T, n int) (*server, []*pace.Queue) {
	t.Helper()
	s := newServer(t)
	var queues []*pace.Queue
	for range n {
		queues = append(queues, mustQueue(t, s.connect(network{})))
	}
	return s, queues
}

// between returns a random time of a network.
func between(from, to time.Duration) func() time.Duration {
	return func() time.Duration { return from + rand.N(to-from+1) }
}

package waittest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// Server is a memory engine that processes share over a network, as they share Redis: it books, and tells processes of slots
// that came free. Queues do not know that it is a memory engine.
type Server struct {
	Memory *weir.Memory
	Calls  atomic.Int64

	mu        sync.Mutex
	listeners map[*process]map[int]listening
	next      int
}

type listening struct {
	key  string
	hear func()
}

// process is the engine of one process on a server.
type process struct {
	weir.Engine
	server *Server
	Network
}

// NewServer returns a server over a memory engine.
func NewServer(memory *weir.Memory) *Server {
	s := &Server{Memory: memory, listeners: map[*process]map[int]listening{}}
	s.Memory.OnReturn(func(requests []weir.Request) bool {
		for _, r := range requests {
			s.signal(r.Rule.Name() + " " + r.Key)
		}
		return true
	})
	return s
}

// Connect returns the engine of another process. It is a [enginekit.Listener].
func (s *Server) Connect(n Network) weir.Engine {
	p := &process{server: s, Network: n}
	p.Engine = weir.Kit.EngineOf(p.do, s.Memory.Check)
	return p
}

func (p *process) do(ctx context.Context, c weir.Call) (weir.Answer, error) {
	if c.Op == weir.OpReserve {
		return weir.Kit.Reserve(ctx, p, c)
	}
	a, err := p.Call(ctx, c, func(ctx context.Context, c weir.Call) (weir.Answer, error) {
		p.server.Calls.Add(1)
		return p.server.Memory.Do(ctx, c)
	})
	if err != nil {
		return a, err
	}
	if c.Op == weir.OpReserveAhead {
		a.Reservation = p.through(c, a.Reservation)
	}
	if c.Each != nil {
		for i := range c.Each.Results {
			if r := &c.Each.Results[i]; r.Reservation != nil {
				r.Reservation = p.through(c.Each.Calls[i], r.Reservation)
			}
		}
	}
	return a, nil
}

// through withdraws a booking over the network.
func (p *process) through(c weir.Call, r *weir.Reservation) *weir.Reservation {
	return weir.Kit.Granted(p, time.Time{}, r.Decision, func(ctx context.Context, n int64) error {
		if err := p.Pass(ctx); err != nil {
			return Lost{Err: err}
		}
		return r.Cancel(ctx)
	}, c)
}

// Listen makes the process a enginekit.Listener.
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
	return func() bool { return p.Deaf == nil || !p.Deaf() }, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners[p], name)
	}
}

// signal tells all processes of a key.
func (s *Server) signal(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, all := range s.listeners {
		for _, l := range all {
			if l.key != key || p.Deaf != nil && p.Deaf() {
				continue
			}
			go func() {
				_ = p.Pass(context.Background())
				l.hear()
			}()
		}
	}
}

package linetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// Network is the way between a process and the server. Its functions are called for each message; nil ones mean a message
// that arrives at once.
type Network struct {
	Delay func() time.Duration // of a message, one way
	Lost  func() bool          // whether a call, an answer or a signal is lost
	Deaf  func() bool          // whether the process hears no signals, and knows
}

// Engine is the engine of one process on a server.
type Engine struct {
	*weir.Memory
	server  *Server
	network Network
	down    atomic.Bool
}

var (
	_ weir.Engine     = (*Engine)(nil)
	_ weir.LineKeeper = (*Engine)(nil)
)

// Connect returns the engine of another process.
func (s *Server) Connect(network Network) *Engine {
	return &Engine{Memory: s.Memory, server: s, network: network}
}

// Kill ends the process: none of its messages arrives any more.
func (e *Engine) Kill() { e.down.Store(true) }

// Reserve takes the requests once, without a line.
func (e *Engine) Reserve(ctx context.Context, requests ...weir.Request) (*weir.Reservation, error) {
	return weir.Reserve(ctx, e, requests...)
}

// Record counts, and calls the first callers for slots that come back.
func (e *Engine) Record(ctx context.Context, requests ...weir.Request) (d weir.Decision, err error) {
	err = e.call(func() {
		e.server.mu.Lock()
		defer e.server.mu.Unlock()
		e.server.Calls++
		d, err = e.Memory.Record(ctx, requests...)
		e.server.released(requests)
	})
	return d, err
}

// EnterLines returns the lines for one more process.
func (e *Engine) EnterLines(hear func(weir.LineSignal)) weir.Lines {
	return &process{engine: e, hear: hear, number: processes.Add(1), grace: grace}
}

var processes atomic.Int64

// process is the lines as one process sees them.
type process struct {
	engine *Engine
	hear   func(weir.LineSignal)
	number int64
	way    time.Duration
	grace  time.Duration
	mu     sync.Mutex
}

// Keeps reports whether a request takes slots.
func (p *process) Keeps(requests ...weir.Request) bool {
	for i := range requests {
		if isSlots(&requests[i]) {
			return requests[i].Identity == ""
		}
	}
	return false
}

// Ask asks the server.
func (p *process) Ask(ctx context.Context, ask *weir.LineAsk) error {
	hears := p.Hears()
	asked := weir.LineAsk{Callers: append([]weir.LineCaller(nil), ask.Callers...), Keys: append([]weir.LineKey(nil), ask.Keys...)}
	if err := p.engine.call(func() { p.engine.server.ask(p, &asked, hears) }); err != nil {
		return err
	}
	*ask = asked
	return nil
}

// Book books on the server.
func (p *process) Book(ctx context.Context, book *weir.LineBook) error {
	asked := weir.LineBook{Callers: append([]weir.LineCaller(nil), book.Callers...), Horizon: book.Horizon}
	if err := p.engine.call(func() { p.engine.server.book(p, &asked) }); err != nil {
		return err
	}
	*book = asked
	return nil
}

// Hears reports whether signals arrive, as far as the process knows.
func (p *process) Hears() bool { return p.engine.network.Deaf == nil || !p.engine.network.Deaf() }

// publish sends a signal to the process.
func (p *process) publish(signal weir.LineSignal) {
	e := p.engine
	if e.lost() || e.network.Deaf != nil && e.network.Deaf() {
		return
	}
	go func() {
		if time.Sleep(e.delay()); !e.down.Load() {
			p.hear(signal)
		}
	}()
}

// unreachable is the error of a lost call.
type unreachable struct{ error }

func (unreachable) Unavailable() bool { return true }

// call carries a call to the server, and its answer back.
func (e *Engine) call(serve func()) error {
	time.Sleep(e.delay())
	lost := e.lost()
	if !lost {
		serve()
		lost = e.lost()
	}
	if lost {
		time.Sleep(300 * time.Millisecond)
		return unreachable{errors.New("linetest: the message was lost")}
	}
	time.Sleep(e.delay())
	return nil
}

func (e *Engine) lost() bool {
	return e.down.Load() || e.network.Lost != nil && e.network.Lost()
}

func (e *Engine) delay() time.Duration {
	if e.network.Delay == nil {
		return 0
	}
	return e.network.Delay()
}

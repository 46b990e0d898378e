package linetest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// Network is the way between a process and the server. Its functions are called for each message; nil ones mean a message
// that arrives at once.
type Network struct {
	Delay func() time.Duration // of a message, one way
	Lost  func() bool          // whether a call, an answer or a signal is lost
	Twice func() bool          // whether a call arrives twice, the second time later
	Mute  func() bool          // whether a signal is lost
	Deaf  func() bool          // whether the process hears no signals, and knows
}

// Engine is the engine of one process on a server.
type Engine struct {
	weir.Engine
	server  *Server
	network Network
	down    atomic.Bool
}

var (
	_ weir.Engine          = (*Engine)(nil)
	_ enginekit.LineKeeper = (*Engine)(nil)
)

// Connect returns the engine of another process.
func (s *Server) Connect(network Network) *Engine {
	e := &Engine{server: s, network: network}
	e.Engine = weir.EngineOf(e.do, s.Memory.Check)
	return e
}

// Kill ends the process: none of its messages arrives any more.
func (e *Engine) Kill() { e.down.Store(true) }

// do makes a call. One that counts goes over the network, and calls the first callers for slots that come back.
func (e *Engine) do(ctx context.Context, c weir.Call) (weir.Answer, error) {
	switch c.Op {
	case weir.OpReserve:
		return weir.Reserve(ctx, e, c)
	case weir.OpRecord, weir.OpReturn:
		return e.record(ctx, c)
	}
	return e.server.Memory.Do(ctx, c)
}

func (e *Engine) record(ctx context.Context, c weir.Call) (a weir.Answer, err error) {
	type result struct {
		weir.Answer
		err error
	}
	answer := make(chan result, 2)
	err = e.call(func() {
		e.server.mu.Lock()
		defer e.server.mu.Unlock()
		e.server.calls++
		a, err := e.server.Memory.Do(ctx, c)
		if c.Op == weir.OpReturn {
			e.server.released(c.Requests, c.Lease)
		}
		answer <- result{a, err}
	})
	if err != nil {
		return weir.Answer{}, err
	}
	first := <-answer
	return first.Answer, first.err
}

// EnterLines returns the lines for one more process.
func (e *Engine) EnterLines(hear func(enginekit.LineSignal)) enginekit.Lines {
	return &process{engine: e, hear: hear, number: processes.Add(1), grace: grace}
}

var processes atomic.Int64

// process is the lines as one process sees them.
type process struct {
	engine *Engine
	hear   func(enginekit.LineSignal)
	number int64
	way    time.Duration
	grace  time.Duration
}

// Keeps reports whether all requests have a rule.
func (p *process) Keeps(requests ...weir.Request) (lane int, kept bool) {
	return 0, !slices.ContainsFunc(requests, func(r weir.Request) bool { return r.Rule == nil })
}

// Ask asks the server.
func (p *process) Ask(ctx context.Context, ask *enginekit.LineAsk) error {
	hears := p.Hears()
	answer := make(chan *enginekit.LineAsk, 2)
	sent := *ask
	err := p.engine.call(func() {
		asked := enginekit.LineAsk{Callers: slices.Clone(sent.Callers), Keys: slices.Clone(sent.Keys)}
		p.engine.server.ask(p, &asked, hears)
		answer <- &asked
	})
	if err == nil {
		*ask = *<-answer
	}
	return err
}

// Book books on the server.
func (p *process) Book(ctx context.Context, book *enginekit.LineBook) error {
	answer := make(chan *enginekit.LineBook, 2)
	sent := *book
	err := p.engine.call(func() {
		asked := enginekit.LineBook{Callers: slices.Clone(sent.Callers), Horizon: sent.Horizon}
		p.engine.server.book(p, &asked)
		answer <- &asked
	})
	if err == nil {
		*book = *<-answer
	}
	return err
}

// Hears reports whether signals arrive, as far as the process knows.
func (p *process) Hears() bool { return !says(p.engine.network.Deaf) }

// publish sends a signal to the process.
func (p *process) publish(signal enginekit.LineSignal) {
	e := p.engine
	if e.lost() || says(e.network.Mute) || says(e.network.Deaf) {
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

var errKilled = errors.New("linetest: the process was killed")

// call carries a call to the server, and its answer back.
func (e *Engine) call(serve func()) error {
	if e.down.Load() {
		return errKilled
	}
	time.Sleep(e.delay())
	lost := e.lost()
	if !lost {
		serve()
		lost = e.lost()
		if says(e.network.Twice) {
			time.AfterFunc(e.delay(), serve)
		}
	}
	if lost {
		time.Sleep(300 * time.Millisecond)
		return unreachable{errors.New("linetest: the message was lost")}
	}
	time.Sleep(e.delay())
	return nil
}

func (e *Engine) lost() bool {
	return e.down.Load() || says(e.network.Lost)
}

func says(f func() bool) bool { return f != nil && f() }

func (e *Engine) delay() time.Duration {
	if e.network.Delay == nil {
		return 0
	}
	return e.network.Delay()
}

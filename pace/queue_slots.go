package pace

import (
	"context"

	"github.com/weirflow/weir"
)

// inEngine returns a place in the engine's own line, for a caller that acquires slots on an engine that keeps one
// ([weir.LineKeeper]). Callers of a flow wait in the line of the process, which has one place in that of the engine, and
// so do callers behind them. The caller holds the lock.
func (q *Queue) inEngine(p *place) weir.LinePlace {
	keeper, ok := q.engine.(weir.LineKeeper)
	if !ok || !p.acquires || p.flow != "" || len(slotKeys(p.requests)) == 0 || q.lines[keysOf(p.requests)] != nil {
		return nil
	}
	return keeper.StandInLine(p.requests...)
}

// waitInEngine waits for p's turn in the engine's line.
func (q *Queue) waitInEngine(ctx context.Context, p *place, in weir.LinePlace) error {
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.waiting--
	}()
	for {
		r, err := in.Reserve(ctx, p.requests...)
		if err == nil && r.Decision.Allowed {
			p.reservation, p.decision = r, r.Decision
			return nil
		}
		if err == nil {
			err = hopeless(ctx, p, r.Decision)
		}
		if err == nil {
			err = in.Wait(ctx)
		}
		if err != nil {
			in.Leave()
			return err
		}
	}
}

// reserve asks for p, in the engine's line if it keeps one.
func (l *queueLine) reserve(ctx context.Context, p *place) (*weir.Reservation, error) {
	if keeper, ok := l.queue.engine.(weir.LineKeeper); ok && l.inEngine == nil && len(l.slots) > 0 {
		l.inEngine = keeper.StandInLine(p.requests...)
	}
	if l.inEngine == nil {
		return l.queue.engine.Reserve(ctx, p.requests...)
	}
	r, err := l.inEngine.Reserve(ctx, p.requests...)
	if err == nil && r.Decision.Allowed {
		l.inEngine = nil
	}
	return r, err
}

// leaveEngine gives up the place in the engine's line, if there is one.
func (l *queueLine) leaveEngine() {
	if l.inEngine != nil {
		l.inEngine.Leave()
		l.inEngine = nil
	}
}

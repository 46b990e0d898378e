package grpclimit

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// pauses hold until when the calls of each scope wait, because a server has refused one of them.
type pauses struct {
	mu  sync.Mutex
	now map[string]pause
}

type pause struct {
	until   time.Time
	refused error // what the server said
}

// maxPauses bounds the scopes. When there are more, pauses that are over are dropped, and further scopes do not pause.
const maxPauses = 4096

// leastPause is the shortest pause, for servers that say 0.
const leastPause = 10 * time.Millisecond

// longestPause bounds a pause, so that an instant can be computed with any delay that a server names.
const longestPause = 366 * 24 * time.Hour

// note begins a pause if err is a refusal that says when to retry, and reports whether it has.
func (p *pauses) note(scope string, err error) bool {
	if status.Code(err) != codes.ResourceExhausted {
		return false
	}
	delay, ok := retryDelay(err)
	if !ok {
		return false
	}
	until := time.Now().Add(min(max(delay, leastPause), longestPause))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		p.now = map[string]pause{}
	}
	known, paused := p.now[scope]
	if !paused && len(p.now) >= maxPauses {
		p.dropEnded()
		if len(p.now) >= maxPauses {
			return false
		}
	}
	if !paused || known.until.Before(until) {
		p.now[scope] = pause{until, err}
	}
	return true
}

func (p *pauses) dropEnded() {
	now := time.Now()
	for scope, pause := range p.now {
		if pause.until.Before(now) {
			delete(p.now, scope)
		}
	}
}

// await waits until the pause of a scope is over. If that is after an instant, or after the deadline of the context, it
// returns the server's refusal at once. Calls that wait together continue within a tenth of the pause, not all at once.
func (p *pauses) await(ctx context.Context, scope string, until time.Time) error {
	p.mu.Lock()
	current, paused := p.now[scope]
	p.mu.Unlock()
	if !paused {
		return nil
	}
	left := time.Until(current.until)
	if left <= 0 {
		p.end(scope, current)
		return nil
	}
	left += rand.N(min(left/10, time.Second) + 1)
	end := time.Now().Add(left)
	if deadline, ok := ctx.Deadline(); end.After(until) || ok && end.After(deadline) {
		return current.refused
	}
	return sleep(ctx, left)
}

// end forgets a pause, unless it has become longer.
func (p *pauses) end(scope string, over pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now[scope].until.Equal(over.until) {
		delete(p.now, scope)
	}
}

// sleep waits, and returns the status of a context that ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

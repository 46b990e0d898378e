package layer

import (
	"sync"
	"sync/atomic"
	"time"
)

// When a breaker opens and closes.
const (
	opensAfter  = 5                      // failures in a row
	opensOf     = 20                     // calls within breakerTime of which half have failed
	breakerTime = time.Second            //
	probeEvery  = 200 * time.Millisecond // while it is open
	closesAfter = 3                      // successful probes in a row
)

// breaker decides which calls reach an engine that may be away. A healthy call reads two booleans of it.
type breaker struct {
	open    atomic.Bool
	failing atomic.Bool // a call has failed, so that successes count

	mu              sync.Mutex
	row             int       // failures
	since           time.Time // when the first of these began
	calls, failures int
	probing         bool
	probed          time.Time
	successes       int // of probes, in a row
}

// pass says whether a call may reach the engine.
type pass uint8

const (
	barred pass = iota
	passes
	probes
)

// outcome is that of a call that has reached the engine.
type outcome uint8

const (
	neither outcome = iota // the failure was not the engine's
	success
	failure
)

// enter lets a call pass. Each call that passes ends with a call of ended.
func (b *breaker) enter() pass {
	if !b.open.Load() {
		return passes
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch now := time.Now(); {
	case !b.open.Load():
		return passes
	case b.probing || now.Sub(b.probed) < probeEvery:
		return barred
	default:
		b.probing, b.probed = true, now
		return probes
	}
}

// ended notes how a call ended. It reports whether the breaker has opened or closed. If it has, it calls note before
// another call can change it again.
func (b *breaker) ended(p pass, o outcome, note func(open bool)) {
	if p == passes && o == success && !b.failing.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.open.Load()
	switch {
	case p == probes:
		b.probeEnded(o)
	case before || o == neither: // of a call that began before it opened
	default:
		b.count(o, time.Now())
	}
	if open := b.open.Load(); open != before {
		note(open)
	}
}

func (b *breaker) probeEnded(o outcome) {
	b.probing = false
	switch o {
	case failure:
		b.successes = 0
	case success:
		b.successes++
	}
	if b.successes >= closesAfter {
		b.row, b.calls, b.failures = 0, 0, 0
		b.failing.Store(false)
		b.open.Store(false)
	}
}

// count counts a call of a closed breaker.
func (b *breaker) count(o outcome, now time.Time) {
	if now.Sub(b.since) >= breakerTime {
		b.since, b.calls, b.failures = now, 0, 0
	}
	b.calls++
	if o == success {
		b.row = 0
		b.failing.Store(b.failures > 0)
		return
	}
	b.row++
	b.failures++
	b.failing.Store(true)
	if b.row >= opensAfter || b.calls >= opensOf && 2*b.failures >= b.calls {
		b.successes, b.probed = 0, now
		b.open.Store(true)
	}
}

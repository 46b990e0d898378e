package layer

import (
	"sync"
	"sync/atomic"
	"time"
)

// The bounds for opening and closing a breaker.
const (
	opensAfter  = 5                      // failures in a row
	opensOf     = 20                     // calls within breakerTime, half of them failed
	opensOver   = 100 * time.Millisecond // the least time from the first of these to the last, if all came too late
	breakerTime = time.Second            //
	probeEvery  = 200 * time.Millisecond // while it is open
	closesAfter = 3                      // successful probes in a row
)

// breaker decides which calls reach an engine that may be away. A healthy call reads two booleans of it.
//
// A slow answer is no outage: when a busy machine stops a process or its engine for a moment, all answers in flight come too
// late at once. So late answers open the breaker only if they go on for opensOver. Beside eight busy processes on two
// cores, 2 % of the answers of a healthy Redis were late: a breaker opened 5 times in 30 seconds, and 28 times without
// opensOver (bench/deadline).
type breaker struct {
	open    atomic.Bool
	failing atomic.Bool // a call has failed, so that successes count

	mu              sync.Mutex
	row             int       // failures in a row
	rowFrom         time.Time // the end of the first of them; zero unless all were late
	since           time.Time // when calls and failures were 0
	calls, failures int
	failedFrom      time.Time // like rowFrom
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

// outcome is the outcome of a call that has reached the engine.
type outcome uint8

const (
	neither outcome = iota // the failure was not the engine's
	success
	failure
	late // a failure without an answer in time
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
	case before || o == neither: // a call that began before it opened
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
	case failure, late:
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
	if b.row++; b.row == 1 {
		b.rowFrom = now
	}
	if b.failures++; b.failures == 1 {
		b.failedFrom = now
	}
	if o != late {
		b.rowFrom, b.failedFrom = time.Time{}, time.Time{}
	}
	b.failing.Store(true)
	inRow := b.row >= opensAfter && now.Sub(b.rowFrom) >= opensOver
	half := b.calls >= opensOf && 2*b.failures >= b.calls && now.Sub(b.failedFrom) >= opensOver
	if inRow || half {
		b.successes, b.probed = 0, now
		b.open.Store(true)
	}
}

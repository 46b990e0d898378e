package redislimit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// The limit of the fault tests; traffic always asks for much more.
const (
	faultRate  = 200
	faultBurst = 100
	faultLimit = "token bucket 200/s burst 100"
)

// deadline is the time that callers of traffic wait for an answer. patience is that time if every answer must come,
// even on a busy machine.
const (
	deadline = 250 * time.Millisecond
	patience = time.Minute
)

// recovery is the longest time until decisions succeed again after a server can answer.
const recovery = time.Second

// traffic is callers that ask for one unit after another and pause only after an error. It counts the results.
type traffic struct {
	admitted, refused, failed atomic.Int64
	counted                   atomic.Int64  // failed, and said that they may have been counted
	homeless                  atomic.Int64  // failed, since no node had all keys
	decided                   chan struct{} // a decision was made just now
	slowest                   atomic.Int64  // ns of a call
	stall                     atomic.Int64  // ns that a sleep was late at most: what the machine adds to any wait
	unexpected                atomic.Pointer[error]

	start  time.Time
	cancel context.CancelFunc
	group  sync.WaitGroup
}

// startTraffic starts 8 callers per key, which wait for the deadline.
func startTraffic(t *testing.T, engine weir.Engine, limit string, keys ...string) *traffic {
	t.Helper()
	return startTrafficWith(t, deadline, engine, limit, keys...)
}

// startPatientTraffic starts traffic whose callers wait for every answer.
func startPatientTraffic(t *testing.T, engine weir.Engine, limit string, keys ...string) *traffic {
	t.Helper()
	return startTrafficWith(t, patience, engine, limit, keys...)
}

func startTrafficWith(t *testing.T, deadline time.Duration, engine weir.Engine, limit string, keys ...string) *traffic {
	t.Helper()
	rule, err := weir.ParseRule("fault=" + limit)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	tr := &traffic{decided: make(chan struct{}), start: time.Now(), cancel: cancel}
	for _, key := range keys {
		for range 8 {
			tr.group.Go(func() {
				for ctx.Err() == nil {
					tr.ask(engine, rule.For(key, 1), deadline)
				}
			})
		}
	}
	tr.group.Go(func() { tr.watchStalls(ctx) })
	t.Cleanup(func() { tr.stop() })
	return tr
}

// watchStalls sleeps repeatedly and records the longest delay of a wake-up.
func (tr *traffic) watchStalls(ctx context.Context) {
	const tick = 5 * time.Millisecond
	for ctx.Err() == nil {
		begin := time.Now()
		<-time.After(tick)
		tr.stall.Store(max(tr.stall.Load(), int64(time.Since(begin)-tick)))
	}
}

// within returns a bound on a wait on this machine.
func (tr *traffic) within(bound time.Duration) time.Duration {
	return bound + 4*time.Duration(tr.stall.Load())
}

func (tr *traffic) ask(engine weir.Engine, request weir.Request, deadline time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	begin := time.Now()
	d, err := engine.Take(ctx, request)
	tr.slowest.Store(max(tr.slowest.Load(), int64(time.Since(begin))))
	switch {
	case err != nil:
		tr.failed.Add(1)
		if failure, typed := errors.AsType[*Error](err); !typed {
			tr.unexpected.Store(&err)
		} else if failure.Counted != weir.CountedNo {
			tr.counted.Add(1)
		} else if failure.Reason == ClusterDown {
			tr.homeless.Add(1)
		}
		<-time.After(time.Millisecond)
		return
	case d.Allowed:
		tr.admitted.Add(1)
	default:
		tr.refused.Add(1)
	}
	select {
	case tr.decided <- struct{}{}:
	default:
	}
}

// awaitDecision returns how long it took until a decision was made.
func (tr *traffic) awaitDecision(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	select {
	case <-tr.decided:
		return time.Since(begin)
	case <-time.After(30 * time.Second):
		t.Fatal("no decision within 30 s")
		return 0
	}
}

// stop ends the traffic and returns its length in seconds.
func (tr *traffic) stop() (seconds float64) {
	tr.cancel()
	tr.group.Wait()
	return time.Since(tr.start).Seconds()
}

// awaitRefusal waits until the limit has refused a caller once more.
func (tr *traffic) awaitRefusal(t *testing.T) {
	t.Helper()
	before := tr.refused.Load()
	for begin := time.Now(); tr.refused.Load() == before; goOn(time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatalf("nothing was refused for %v, so the limit was not tried", patience)
		}
	}
}

// check ends the traffic once the limit refuses, because units that a fault gave back too often show at the latest when
// the burst is used up. It compares each key with burst + rate × time, plus a number of further bursts.
func (tr *traffic) check(t *testing.T, keys, bursts int) {
	t.Helper()
	tr.awaitRefusal(t)
	seconds := tr.stop()
	admitted, most := tr.admitted.Load(), float64(keys)*(float64(faultBurst*(1+bursts))+faultRate*seconds)
	t.Logf("%.2f s: %d admitted of at most %.0f, %d refused, %d failed, slowest %v, a sleep was late by %v", seconds, admitted, most, tr.refused.Load(), tr.failed.Load(), time.Duration(tr.slowest.Load()), time.Duration(tr.stall.Load()))
	if float64(admitted) > most {
		t.Errorf("%d admitted in %.3f s, want at most %.1f", admitted, seconds, most)
	}
	if err := tr.unexpected.Load(); err != nil {
		t.Errorf("an error that is no *Error: %v", *err)
	}
}

// checkRecovery asks for decisions soon after the server can make them.
func (tr *traffic) checkRecovery(t *testing.T) {
	t.Helper()
	if took := tr.awaitDecision(t); took > tr.within(recovery) {
		t.Errorf("the first decision came %v after the server was able, want within %v", took, tr.within(recovery))
	}
}

// goOn lets the traffic continue for a while.
func goOn(d time.Duration) { <-time.After(d) }

func openFor(t *testing.T, url string, options Options) *Engine {
	t.Helper()
	engine, err := Open(url, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	return engine
}

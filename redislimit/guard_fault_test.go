package redislimit

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/pace"
)

// guardDeadline is the default of a Guard, and guardGrace what an answer may take longer.
const (
	guardDeadline = 15 * time.Millisecond
	guardGrace    = 5 * time.Millisecond
)

// patientDeadline is for the tests that a busy machine must not take for an outage.
const patientDeadline = 200 * time.Millisecond

// latencies are how long calls took.
type latencies struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d)
}

// summary returns the 99th percentile and the worst.
func (l *latencies) summary() (p99, worst time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.all)
	return l.all[len(l.all)*99/100], l.all[len(l.all)-1]
}

// guardTraffic is callers of a guarded engine, beside one that only sleeps.
type guardTraffic struct {
	admitted, refused, denied atomic.Int64
	took, idle                latencies
	unexpected                atomic.Pointer[error]
	began                     time.Time
	cancel                    context.CancelFunc
	group                     sync.WaitGroup
}

func startGuardTraffic(t *testing.T, e weir.Engine, rule *weir.Rule) *guardTraffic {
	ctx, cancel := context.WithCancel(context.Background())
	tr := &guardTraffic{began: time.Now(), cancel: cancel}
	for range 8 {
		tr.group.Go(func() {
			for ctx.Err() == nil {
				tr.ask(e, rule)
			}
		})
	}
	tr.group.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			<-time.After(guardDeadline)
			tr.idle.add(time.Since(began) - guardDeadline)
		}
	})
	t.Cleanup(tr.stop)
	return tr
}

func (tr *guardTraffic) stop() {
	tr.cancel()
	tr.group.Wait()
}

func (tr *guardTraffic) ask(e weir.Engine, rule *weir.Rule) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	began := time.Now()
	d, err := e.Take(ctx, rule.For("alice", 1))
	tr.took.add(time.Since(began))
	outage := (*layer.OutageError)(nil)
	switch {
	case errors.As(err, &outage):
		tr.denied.Add(1)
	case err != nil:
		tr.unexpected.Store(&err)
	case d.Allowed:
		tr.admitted.Add(1)
	default:
		tr.refused.Add(1)
	}
	<-time.After(2 * time.Millisecond)
}

// guardFault breaks a server for some time, and returns when it is well again.
type guardFault struct {
	name   string
	loses  bool // the server loses its memory
	absent bool // there is none at the start
	breaks func(s *redistest.Server, p *proxy)
}

var guardFaults = []guardFault{
	{name: "frozen", breaks: func(s *redistest.Server, _ *proxy) {
		s.Stop()
		goOn(700 * time.Millisecond)
		s.Cont()
	}},
	{name: "killed", loses: true, breaks: func(s *redistest.Server, _ *proxy) {
		s.Kill()
		goOn(500 * time.Millisecond)
		s.Restart()
	}},
	{name: "slow", breaks: func(_ *redistest.Server, p *proxy) {
		p.delay.Store(int64(50 * time.Millisecond))
		goOn(700 * time.Millisecond)
		p.delay.Store(0)
	}},
	{name: "flapping", breaks: func(s *redistest.Server, _ *proxy) {
		for range 4 {
			s.Stop()
			goOn(150 * time.Millisecond)
			s.Cont()
			goOn(100 * time.Millisecond)
		}
	}},
	{name: "absent at the start", absent: true, loses: true, breaks: func(s *redistest.Server, _ *proxy) {
		goOn(500 * time.Millisecond)
		s.Restart()
	}},
}

// With -short, each fault meets one policy.
func TestFaultAGuardAnswersInTimeByItsPolicy(t *testing.T) {
	policies := []layer.Policy{layer.Deny, layer.Local, layer.Allow}
	for i, fault := range guardFaults {
		for j, policy := range policies {
			if testing.Short() && j != i%len(policies) {
				continue
			}
			t.Run(fault.name+" "+policy.String(), func(t *testing.T) { guardThroughFault(t, fault, policy) })
		}
	}
}

func guardThroughFault(t *testing.T, fault guardFault, policy layer.Policy) {
	server := redistest.Start(t)
	p := startProxy(t, server.Addr)
	goroutines := runtime.NumGoroutine()
	if fault.absent {
		server.Kill()
	}
	engine := openFor(t, "redis://"+p.addr, Options{ConnectLater: true})
	guard, err := layer.Guard(engine, layer.GuardOptions{OnFailure: policy, Peers: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	rule := mustRule(t, "fault="+faultLimit)
	tr := startGuardTraffic(t, guard, rule)
	if !fault.absent {
		goOn(300 * time.Millisecond)
	}
	fault.breaks(server, p)
	awaitBack(t, guard)
	goOn(300 * time.Millisecond)
	tr.stop()
	tr.check(t, fault, policy)
	s := guard.Stats()
	t.Logf("%+v", s)
	if s.Opened == 0 && fault.name != "flapping" {
		t.Error("the breaker did not open, want this fault to be an outage")
	}
	engine.Close()
	p.close()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
		goOn(20 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines are left, want %d as before", n, goroutines)
	}
}

// awaitBack waits until the engine is back and nothing is owed.
func awaitBack(t *testing.T, g *layer.Guarded) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; goOn(20 * time.Millisecond) {
		s := g.Stats()
		if !s.Away && s.Owed == 0 && s.Queued == 0 && s.Hanging == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("20 s after the fault: %+v, want the engine back and nothing owed", s)
		}
	}
}

func (tr *guardTraffic) check(t *testing.T, fault guardFault, policy layer.Policy) {
	t.Helper()
	seconds := time.Since(tr.began).Seconds()
	p99, worst := tr.took.summary()
	idle99, idleWorst := tr.idle.summary()
	t.Logf("%.1f s: %d admitted, %d refused, %d denied; p99 %v, worst %v; an idle handler is late by %v, at worst %v",
		seconds, tr.admitted.Load(), tr.refused.Load(), tr.denied.Load(), p99, worst, idle99, idleWorst)
	if err := tr.unexpected.Load(); err != nil {
		t.Errorf("a caller got %v, want a decision or an OutageError", *err)
	}
	if most := guardDeadline + guardGrace + idleWorst; p99 > guardDeadline+guardGrace+max(idle99, idleWorst/2) || worst > most+3*idleWorst {
		t.Errorf("answers took %v (p99) and %v (worst), want at most %v beside an idle handler that is late by %v and %v", p99, worst, guardDeadline+guardGrace, idle99, idleWorst)
	}
	bound := faultBurst + faultRate*seconds
	if fault.loses {
		bound += faultBurst
	}
	if policy == layer.Local {
		bound += faultBurst + faultRate*seconds
	}
	if admitted := float64(tr.admitted.Load()); policy != layer.Allow && admitted > bound {
		t.Errorf("%.0f admitted in %.2f s, want at most %.1f", admitted, seconds, bound)
	}
	if denied := tr.denied.Load() > 0; denied != (policy == layer.Deny) {
		t.Errorf("%d callers got an OutageError under %s", tr.denied.Load(), policy)
	}
}

// A caller that waits in a queue keeps its place while Redis is frozen, and a reservation is settled when it is back.
func TestFaultWaitingCallersAndSlotsLiveThroughAFrozenServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr, Options{})
	warmUp(t, engine) // the script takes its time the first time
	guard, err := layer.Guard(engine, layer.GuardOptions{Deadline: patientDeadline, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	queue, err := pace.NewQueue(guard, pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slots, rate := mustRule(t, "slots=concurrency 1 lease 30s"), mustRule(t, "rate=1/1s")
	held, err := guard.Reserve(t.Context(), slots.For("k", 1))
	if err != nil || !held.Decision.Allowed {
		t.Fatalf("got %v, want the slot", err)
	}
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if i == 0 {
				got, err := queue.Acquire(ctx, slots.For("k", 1))
				if err != nil {
					t.Errorf("waiting for the slot: %v", err)
					return
				}
				_ = got.Done(ctx)
				return
			}
			for range 3 {
				if _, err := queue.Wait(ctx, rate.For("k", 1)); err != nil {
					t.Errorf("waiting for the rate: %v", err)
				}
			}
		})
	}
	goOn(300 * time.Millisecond)
	server.Stop()
	for range 8 {
		_, _ = guard.Peek(t.Context(), slots.For("k", 1))
	}
	if err := held.Done(t.Context()); err != nil {
		t.Errorf("Done during the outage: got %v, want it queued", err)
	}
	goOn(1500 * time.Millisecond)
	server.Cont()
	all.Wait()
	if n := queue.Waiting(); n != 0 {
		t.Errorf("%d callers wait, want none", n)
	}
}

// A holder learns that its lease has ended while Redis was away.
func TestFaultTheHolderOfALapsedLeaseIsTold(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr, Options{})
	warmUp(t, engine)
	guard, err := layer.Guard(engine, layer.GuardOptions{OnFailure: layer.Local, Peers: 1, Deadline: patientDeadline, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	slots := mustRule(t, "slots=concurrency 1 lease 1s")
	held, err := guard.Reserve(t.Context(), slots.For("k", 1))
	if err != nil || !held.Decision.Allowed {
		t.Fatalf("got %v, want the slot", err)
	}
	server.Stop()
	select {
	case <-held.Lost():
	case <-time.After(10 * time.Second):
		t.Errorf("the holder was not told within 10 s that its lease of 1 s has ended: %+v", guard.Stats())
	}
	server.Cont()
	runtime.KeepAlive(held) // a reservation that nothing refers to is renewed no more
}

package redislimit

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/slots"
)

var quiet = Options{Logger: slog.New(slog.DiscardHandler)}

// A lease ends no later than its own length from now, although the clock that began it was an hour ahead. The leases of
// live holders are renewed as ever.
func TestAClockThatIsSetBackLengthensNoLease(t *testing.T) {
	t.Parallel()
	const lease = 2500 * time.Millisecond // a third of it is how late a renewal may be
	short, long := mustRule(t, "s=concurrency 3 lease 2500ms"), mustRule(t, "s=concurrency 3 lease 5s")
	for _, tt := range []struct {
		what   string
		dead   []*weir.Rule // under which the dead holder took a slot each
		within time.Duration
	}{
		{"leases of one length", []*weir.Rule{short, short}, lease},
		{"leases of another length", []*weir.Rule{long, long}, 2 * lease},
		{"leases of two lengths", []*weir.Rule{short, long}, 2 * lease},
	} {
		server := redistest.StartWithClock(t)
		server.SetClock(time.Hour)
		live, dead := openFor(t, "redis://"+server.Addr, quiet), openFor(t, "redis://"+server.Addr, quiet)
		held, err := live.Reserve(t.Context(), short.For("k", 1))
		if err != nil || !held.Decision.Allowed {
			t.Fatalf("%s: Reserve: %+v, %v", tt.what, held, err)
		}
		for _, rule := range tt.dead {
			if r, err := dead.Reserve(t.Context(), rule.For("k", 1)); err != nil || !r.Decision.Allowed {
				t.Fatalf("%s: Reserve: %+v, %v", tt.what, r, err)
			}
		}
		dead.Close()
		server.SetClock(0)
		began := time.Now()
		if d, err := live.Peek(t.Context(), short.For("k", 1)); err != nil || d.Allowed || d.RetryAfter > tt.within {
			t.Errorf("%s: Peek: %+v, %v, want a retry within %v", tt.what, d, err, tt.within)
		}
		eventually(t, tt.what+": the slots of the dead holder are free", func() error {
			return allowed(live.Take(t.Context(), short.For("k", 2)))
		})
		if took := time.Since(began); took < lease/2 || took > tt.within+5*time.Second {
			t.Errorf("%s: the slots of the dead holder were free after %v, want %v", tt.what, took, tt.within)
		}
		select {
		case <-held.Lost():
			t.Errorf("%s: the live holder has lost its slot", tt.what)
		default:
		}
		if d, err := live.Peek(t.Context(), short.For("k", 1)); err != nil || d.Allowed {
			t.Errorf("%s: afterwards: %+v, %v, want all three slots held", tt.what, d, err)
		}
	}
}

// A minute has passed at most once between the steps, so there is one line or two.
func TestAStepOfTheServersClockIsLogged(t *testing.T) {
	server := redistest.StartWithClock(t)
	var log bytes.Buffer
	engine := openFor(t, "redis://"+server.Addr, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	rule := mustRule(t, "r=token bucket 10/h")
	peek := func() {
		if _, err := engine.Peek(t.Context(), rule.For("k", 0)); err != nil {
			t.Fatal(err)
		}
	}
	peek()
	server.SetClock(500 * time.Millisecond)
	if peek(); log.Len() > 0 {
		t.Errorf("after half a second: %s", log.String())
	}
	for range 3 {
		server.SetClock(time.Hour)
		peek()
		server.SetClock(0)
		peek()
	}
	if lines := strings.Count(log.String(), "\n"); lines < 1 || lines > 2 || !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "moved=59m59.") {
		t.Errorf("after steps of an hour: %q, want one warning that names the first", log.String())
	}
}

// When the clock steps forward, leases are nearer to their end. The next call of any kind renews them.
func TestAHolderKeepsItsSlotWhenTheClockStepsForwardByLessThanItsLease(t *testing.T) {
	server := redistest.StartWithClock(t)
	engine := openFor(t, "redis://"+server.Addr, quiet)
	rule := mustRule(t, "s=concurrency 1 lease 5m")
	held, err := engine.Reserve(t.Context(), rule.For("k", 1))
	if err != nil || !held.Decision.Allowed {
		t.Fatalf("Reserve: %+v, %v", held, err)
	}
	server.SetClock(4 * time.Minute)
	began := time.Now()
	eventually(t, "the lease is whole again", func() error {
		d, err := engine.Peek(t.Context(), rule.For("k", 1))
		if err != nil || d.RetryAfter > 4*time.Minute+30*time.Second {
			return err
		}
		return allowed(d, nil)
	})
	if took := time.Since(began); took > slots.RenewEvery/2 {
		t.Errorf("the lease was renewed after %v, want at once", took)
	}
	runtime.KeepAlive(held) // a reservation that nothing refers to is renewed no more
}

// A holder whose lease has ended by a clock that stepped forward is told with the next call of its process.
func TestAHolderIsToldAtOnceThatTheClockHasEndedItsLease(t *testing.T) {
	server := redistest.StartWithClock(t)
	engine, beside := openFor(t, "redis://"+server.Addr, quiet), openFor(t, "redis://"+server.Addr, quiet)
	rule := mustRule(t, "s=concurrency 1 lease 5m")
	held, err := engine.Reserve(t.Context(), rule.For("k", 1))
	if err != nil || !held.Decision.Allowed {
		t.Fatalf("Reserve: %+v, %v", held, err)
	}
	server.SetClock(time.Hour)
	if err := allowed(beside.Take(t.Context(), rule.For("k", 1))); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := engine.Peek(t.Context(), rule.For("other", 1)); err != nil {
		t.Fatal(err)
	}
	wantLost(t, held)
	if took := time.Since(began); took > slots.RenewEvery/2 {
		t.Errorf("the holder was told after %v, want at once", took)
	}
}

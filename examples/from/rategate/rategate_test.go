package rategate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// starts notes when actions start, and lets each take a time.
type starts struct {
	began time.Time
	takes time.Duration
	mu    sync.Mutex
	at    []time.Duration
}

func newStarts(takes time.Duration) *starts { return &starts{began: time.Now(), takes: takes} }

func (s *starts) action(int) {
	s.mu.Lock()
	s.at = append(s.at, time.Since(s.began))
	s.mu.Unlock()
	time.Sleep(s.takes)
}

// want checks the starts, in milliseconds.
func (s *starts) want(t *testing.T, ms string) {
	t.Helper()
	slices.Sort(s.at)
	var got []string
	for _, at := range s.at {
		got = append(got, fmt.Sprint(at.Milliseconds()))
	}
	if g := strings.Join(got, " "); g != ms {
		t.Errorf("the actions started after %s ms, want %s", g, ms)
	}
}

func gateOf(t *testing.T, text string) *weir.Limiter {
	t.Helper()
	limit, err := weir.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	gate, err := weir.NewWith(limit, weir.Options{Queue: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

// The tables of the article: ten actions of 250 ms each, two a second, in a loop and in parallel.
func TestTenActionsAtTwoASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarts(250 * time.Millisecond)
		if err := Loop(t.Context(), gateOf(t, "rate gate 2/s"), 10, s.action); err != nil {
			t.Error(err)
		}
		s.want(t, "0 250 1000 1250 2000 2250 3000 3250 4000 4250")
	})
	synctest.Test(t, func(t *testing.T) {
		s := newStarts(250 * time.Millisecond)
		if err := Parallel(t.Context(), gateOf(t, "rate gate 2/s"), 10, s.action); err != nil {
			t.Error(err)
		}
		s.want(t, "0 0 1000 1000 2000 2000 3000 3000 4000 4000")
	})
}

// numbers are those from 1 to n.
func numbers(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := 1; i <= n && yield(i); i++ {
		}
	}
}

func TestTwentyItemsAtFiveASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarts(0)
		if err := Sequence(t.Context(), gateOf(t, "rate gate 5/s"), numbers(20), s.action); err != nil {
			t.Error(err)
		}
		s.want(t, "0 0 0 0 0 1000 1000 1000 1000 1000 2000 2000 2000 2000 2000 3000 3000 3000 3000 3000")
	})
}

// A chunk of fifty paced items takes nine seconds, and then fifty actions start together. If the actions pass the gate, they do not.
func TestPLINQsTrapAndTheWayRoundIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStarts(0)
		if err := Chunks(t.Context(), gateOf(t, "rate gate 5/s"), numbers(50), 50, s.action); err != nil {
			t.Error(err)
		}
		if first, last := slices.Min(s.at), slices.Max(s.at); first != 9*time.Second || last != first {
			t.Errorf("the actions of a chunk started from %v to %v, want all at 9s", first, last)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newStarts(0)
		if err := ChunksThatPass(t.Context(), gateOf(t, "rate gate 5/s"), numbers(50), 50, s.action); err != nil {
			t.Error(err)
		}
		slices.Sort(s.at)
		for i, at := range s.at {
			if want := time.Duration(i/5) * time.Second; at != want {
				t.Errorf("action %d started after %v, want %v", i, at, want)
			}
		}
	})
}

// Each tenant has a gate of its own, and an idle one costs nothing.
func TestATenantDoesNotWaitForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates, err := weir.NewKeyed[string](weir.RateGate{Rate: weir.PerSecond(2)})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, c := range []struct {
			tenant string
			at     time.Duration
		}{{"a", 0}, {"a", 0}, {"b", 0}, {"a", time.Second}, {"b", time.Second}, {"b", time.Second}} {
			if err := gates.Wait(t.Context(), c.tenant); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(began); got != c.at {
				t.Errorf("tenant %s went after %v, want %v", c.tenant, got, c.at)
			}
		}
	})
}

// A reader's question: wait 20 ms at most, and otherwise say how long to sleep.
func TestAWaitOfTwentyMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := gateOf(t, "rate gate 2/s")
		gate.Allow()
		gate.Allow()
		time.Sleep(900 * time.Millisecond)
		var refused *weir.WaitError
		if err := gate.WaitMax(t.Context(), 1, 20*time.Millisecond); !errors.As(err, &refused) || refused.Need != 100*time.Millisecond {
			t.Errorf("got %v, want a WaitError of 100ms", err)
		}
		if d := gate.Take(1); d.Allowed || d.RetryAfter != 100*time.Millisecond {
			t.Errorf("got %+v, want a refusal with 100ms", d)
		}
	})
}

// A reader's question: 200 KB a second for all pages, fast and slow.
func TestPagesShareABandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bytes, err := Bandwidth()
		if err != nil {
			t.Fatal(err)
		}
		page := func(n int) io.Reader { return strings.NewReader(strings.Repeat("x", n)) }
		began := time.Now()
		n, err := Download(t.Context(), bytes, []io.Reader{page(300_000), page(300_000)}, []io.Reader{page(400_000)})
		// A reader pays before it reads, at the end of a page, too.
		if took := time.Since(began); err != nil || n != 1_000_000 || took < 4900*time.Millisecond || took > 5*time.Second {
			t.Errorf("%d bytes came in %v (%v), want 1000000 in 4.9 to 5 s", n, took, err)
		}
	})
}

package httplimit_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/pace"
)

// trickle delivers bytes at a rate of its own.
type trickle struct {
	left, perSecond int
}

func (s *trickle) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), s.left, 1024)
	time.Sleep(time.Duration(n) * time.Second / time.Duration(s.perSecond))
	s.left -= n
	return n, nil
}

// Two fast hosts and one that delivers 64 KiB/s share 1 MiB/s. The slow one has what it can use, and the others share
// the rest evenly.
func TestHostsShareABandwidthFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		bandwidth, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(mib), Burst: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		speeds := map[string]int{"slow.example": 64 << 10, "one.example": 1 << 30, "two.example": 1 << 30}
		base := tripper(func(r *http.Request) (*http.Response, error) {
			resp := replies(r, 200, "x")
			resp.Body = io.NopCloser(&trickle{1 << 30, speeds[r.URL.Host]})
			return resp, nil
		})
		transport := newTransport(t, httplimit.TransportOptions{Base: base, Bandwidth: func(*http.Request) pace.Pacer { return bandwidth }})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var mu sync.Mutex
		got := map[string]int64{}
		var all sync.WaitGroup
		for host, streams := range map[string]int{"slow.example": 1, "one.example": 1, "two.example": 3} {
			for range streams {
				all.Go(func() {
					resp, err := transport.RoundTrip(toHost(t, ctx, host))
					if err != nil {
						t.Error(err)
						return
					}
					defer resp.Body.Close()
					n, err := io.Copy(io.Discard, resp.Body)
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("a body ends with %v, want the end of its context", err)
					}
					mu.Lock()
					defer mu.Unlock()
					got[host] += n
				})
			}
		}
		all.Wait()
		total := got["slow.example"] + got["one.example"] + got["two.example"]
		if total > 20*mib+1<<16 || total < 19*mib {
			t.Errorf("%d bytes in 20 s, want 19 to 20 MiB and a burst", total)
		}
		if slow := got["slow.example"]; slow < 20*60<<10 {
			t.Errorf("the slow host had %d bytes, want nearly the %d that it can deliver", slow, 20*64<<10)
		}
		if one, two := float64(got["one.example"]), float64(got["two.example"]); one/two < 0.95 || one/two > 1.05 {
			t.Errorf("a host with one stream had %.0f bytes and one with three %.0f, want the same", one, two)
		}
	})
}

func TestClosingABodyEndsItsWaitForBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bandwidth, err := weir.New(weir.TokenBucket{Rate: weir.Per(1, time.Hour), Burst: 1})
		if err != nil {
			t.Fatal(err)
		}
		base := tripper(func(r *http.Request) (*http.Response, error) { return replies(r, 200, strings.Repeat("x", 100)), nil })
		transport := newTransport(t, httplimit.TransportOptions{Base: base, Bandwidth: func(*http.Request) pace.Pacer { return bandwidth }})
		resp, err := transport.RoundTrip(toHost(t, t.Context(), "api.example"))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { _ = resp.Body.Close() })
		start := time.Now()
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("the read ends with %v after %v, want context.Canceled after 1s", err, time.Since(start))
		}
	})
}

func TestARequestWithoutAPacerIsNotPaced(t *testing.T) {
	body := strings.Repeat("x", 1<<20)
	base := tripper(func(r *http.Request) (*http.Response, error) { return replies(r, 200, body), nil })
	transport := newTransport(t, httplimit.TransportOptions{Base: base, Bandwidth: func(*http.Request) pace.Pacer { return nil }})
	resp, err := transport.RoundTrip(toHost(t, t.Context(), "api.example"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, []byte(body)) {
		t.Errorf("%d bytes, %v, want all", len(got), err)
	}
}

// Several machines share a bandwidth through an engine.
func TestABandwidthOnAnEngineIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := weir.NewMemory(weir.MemoryOptions{})
		rule := mustRule(t, "bandwidth=token bucket 65536/s burst 16384")
		base := tripper(func(r *http.Request) (*http.Response, error) { return replies(r, 200, strings.Repeat("x", 1<<18)), nil })
		start := time.Now()
		var all sync.WaitGroup
		for range 2 {
			queue, err := pace.NewQueue(layertest.Around(engine), pace.QueueOptions{})
			if err != nil {
				t.Fatal(err)
			}
			transport := newTransport(t, httplimit.TransportOptions{Base: base, Bandwidth: func(*http.Request) pace.Pacer { return queue.For(rule, "all") }})
			all.Go(func() {
				if status, err := ask(transport, "http://api.example"); status != 200 || err != nil {
					t.Error(status, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took < 7750*time.Millisecond || took > 8500*time.Millisecond {
			t.Errorf("twice 256 KiB at 64 KiB/s took %v, want 7.75s and little more", took)
		}
	})
}

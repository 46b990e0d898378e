// Package httplimittest helps to test handlers that are behind httplimit, without
// waiting for real time to pass.
package httplimittest

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// Clock is a clock that stands still until a test moves it.
type Clock struct{ now atomic.Int64 }

// NewClock returns a clock that stands at t.
func NewClock(start time.Time) *Clock {
	c := &Clock{}
	c.now.Store(start.UnixNano())
	return c
}

// Now returns the time in nanoseconds since the Unix epoch, for weir.MemoryOptions.
func (c *Clock) Now() int64 { return c.now.Load() }

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) { c.now.Add(int64(d)) }

// Engine returns a memory engine that reads the clock.
func (c *Clock) Engine() *weir.Memory { return weir.NewMemory(weir.MemoryOptions{Clock: c.Now}) }

// Admits sends a request n times, which the handler must admit, and once more,
// which it must refuse with 429 and Retry-After. It returns how long the refusal
// says to wait. The request must not have a body. Its RemoteAddr is the client:
// httptest.NewRequest sets 192.0.2.1:1234.
func Admits(t testing.TB, h http.Handler, r *http.Request, n int) (retryAfter time.Duration) {
	t.Helper()
	for i := range n + 1 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.Clone(r.Context()))
		switch refused := w.Code == http.StatusTooManyRequests; {
		case i < n && refused:
			t.Fatalf("%s %s from %s: request %d was refused, want %d admitted; %s", r.Method, r.URL, r.RemoteAddr, i+1, n, w.Body)
		case i == n && !refused:
			t.Fatalf("%s %s from %s: request %d got status %d, want 429 after %d admitted", r.Method, r.URL, r.RemoteAddr, i+1, w.Code, n)
		case refused:
			var err error
			if retryAfter, err = time.ParseDuration(w.Header().Get("Retry-After") + "s"); err != nil {
				t.Fatalf("%s %s from %s: Retry-After is %q, want seconds", r.Method, r.URL, r.RemoteAddr, w.Header().Get("Retry-After"))
			}
		}
	}
	return retryAfter
}

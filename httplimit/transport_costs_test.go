package httplimit_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirflow/weir/httplimit"
)

// instant answers at once, with a body and without an announcement.
type instant struct{ header http.Header }

func newInstant() instant {
	return instant{http.Header{"Content-Type": {"text/plain"}, "Content-Length": {"5"}, "Date": {"Thu, 01 Jan 2026 12:00:00 GMT"}, "Server": {"x"}, "Etag": {`"y"`}}}
}

func (i instant) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: i.header, Body: io.NopCloser(strings.NewReader("hello")), Request: r}, nil
}

// exchange sends a request and closes the answer.
func exchange(tb testing.TB, transport http.RoundTripper, r *http.Request) {
	resp, err := transport.RoundTrip(r)
	if err != nil {
		tb.Fatal(err)
	}
	_ = resp.Body.Close()
}

func overhead(tb testing.TB) map[string]http.RoundTripper {
	base := newInstant()
	return map[string]http.RoundTripper{
		"base":            base,
		"learning":        newTransport(tb, httplimit.TransportOptions{Base: base}),
		"a rule of 1e9/s": newTransport(tb, httplimit.TransportOptions{Base: base, Rules: []httplimit.Rule{{Limit: "token bucket 1000000000/s"}}}),
		"slots":           newTransport(tb, httplimit.TransportOptions{Base: base, Rules: []httplimit.Rule{{Limit: "concurrency 100 lease 1m"}}}),
	}
}

func TestARequestThatNeedNotWaitAllocatesLittle(t *testing.T) {
	most := map[string]float64{"learning": 6, "a rule of 1e9/s": 26, "slots": 26}
	each := overhead(t)
	cost := func(name string) float64 {
		r := toHost(t, t.Context(), "api.example")
		return testing.AllocsPerRun(500, func() { exchange(t, each[name], r) })
	}
	base := cost("base")
	for name, most := range most {
		if got := cost(name) - base; got > most+lostByPools {
			t.Errorf("%s: a request that need not wait costs %v allocations, want %v at most", name, got, most)
		} else {
			t.Logf("%s: %v", name, got)
		}
	}
}

func BenchmarkTransport(b *testing.B) {
	for name, transport := range overhead(b) {
		b.Run(name, func(b *testing.B) {
			r := toHost(b, b.Context(), "api.example")
			b.ReportAllocs()
			for b.Loop() {
				exchange(b, transport, r)
			}
		})
	}
}

package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirflow/weir/httplimit"
)

// sink is a writer that keeps nothing.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// warm answers all requests that the middleware inspects for mistakes.
func warm(h http.Handler, r *http.Request) {
	for range 1100 {
		h.ServeHTTP(&sink{http.Header{}}, r)
	}
}

// lostByPools are allocations that the race detector adds.
var lostByPools float64

func TestAnAdmittedRequestAllocatesLittle(t *testing.T) {
	tests := []struct {
		name    string
		options httplimit.Options
		most    float64
	}{
		{"without header fields", httplimit.Options{Headers: httplimit.NoHeaders, Rules: []httplimit.Rule{{Limit: "1000000/s"}}}, 0},
		{"two rules without header fields", httplimit.Options{Headers: httplimit.NoHeaders, Rules: []httplimit.Rule{{Limit: "1000000/s"}, {Limit: "key=1000000/s and 1000000000/d", Key: httplimit.Everyone}}}, 0},
		{"draft 11", httplimit.Options{Rules: []httplimit.Rule{{Limit: "1000000/s"}}}, 2},
	}
	for _, tt := range tests {
		tt.options.Logger = silent
		h := wrap(t, tt.options, nothing)
		r := httptest.NewRequest("GET", "/", nil)
		warm(h, r)
		w := &sink{http.Header{}}
		got := testing.AllocsPerRun(500, func() {
			clear(w.header)
			h.ServeHTTP(w, r)
		})
		if most := tt.most + lostByPools; got > most {
			t.Errorf("%s: %v allocations, want at most %v", tt.name, got, most)
		}
	}
}

func BenchmarkAdmitted(b *testing.B) {
	for _, tt := range []struct {
		name    string
		headers httplimit.Headers
	}{{"bare", -1}, {"none", httplimit.NoHeaders}, {"draft11", httplimit.Draft11}, {"draft06", httplimit.Draft06}} {
		b.Run(tt.name, func(b *testing.B) {
			h := http.Handler(nothing)
			if tt.headers >= 0 {
				h = wrap(b, httplimit.Options{Headers: tt.headers, Logger: silent, Rules: []httplimit.Rule{{Limit: "1000000000/s"}}}, nothing)
			}
			r := httptest.NewRequest("GET", "/", nil)
			warm(h, r)
			w := &sink{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				h.ServeHTTP(w, r)
			}
		})
	}
}

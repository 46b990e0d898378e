package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// unheard is a client that reads nothing.
type unheard struct {
	header http.Header
	status int
}

func (u *unheard) Header() http.Header         { return u.header }
func (u *unheard) Write(b []byte) (int, error) { return len(b), nil }
func (u *unheard) WriteHeader(status int)      { u.status = status }

// BenchmarkTake measures POST /v1/take without HTTP.
func BenchmarkTake(b *testing.B) {
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(
		"rules: [{name: login, match: {method: POST, path: /login}, key: client, limit: 1000000/s}, {name: plain, limit: 1000000/s}]")})
	if err != nil {
		b.Fatal(err)
	}
	a := newAPIWith(b, decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Rules: config.Named(), Config: config})
	for name, body := range map[string]string{
		"by=attributes": `{"attributes":{"method":"POST","path":"/login","client":"192.0.2.1"}}`,
		"by=name":       `{"rule":"plain","key":"192.0.2.1"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			w, text := &unheard{header: http.Header{}}, strings.NewReader(body)
			r, err := http.NewRequest(http.MethodPost, "/v1/take", text)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				text.Reset(body)
				if a.ServeHTTP(w, r); w.status != 0 {
					b.Fatalf("got status %d, want 200", w.status)
				}
			}
		})
	}
}

// BenchmarkCheck measures GET /v1/check without HTTP.
func BenchmarkCheck(b *testing.B) {
	for name, limit := range map[string]string{"limits=1": "1000000/s", "limits=2": "1000000/s and 100000000/h"} {
		b.Run(name, func(b *testing.B) {
			rule, err := weir.ParseRule("default=" + limit)
			if err != nil {
				b.Fatal(err)
			}
			a := newAPIWith(b, decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Rules: []*weir.Rule{rule}})
			w := &unheard{header: http.Header{}}
			r, err := http.NewRequest(http.MethodGet, "/v1/check?key=192.0.2.1", nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				if a.ServeHTTP(w, r); w.status != http.StatusNoContent {
					b.Fatalf("got status %d, want 204", w.status)
				}
			}
		})
	}
}

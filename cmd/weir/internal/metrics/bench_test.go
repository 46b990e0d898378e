//go:build unix

package metrics_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/metrics"
)

// BenchmarkTakeOverHTTP compares the CPU of POST /v1/take with metrics, without them, and of a handler that reads the same
// JSON and writes the same answer. A raw client on one connection asks each in turn, in 21 windows; the medians count.
//
//	go test -run '^$' -bench TakeOverHTTP ./cmd/weir/internal/metrics
func BenchmarkTakeOverHTTP(b *testing.B) {
	rule, err := weir.ParseRule("default=1000000000/s")
	if err != nil {
		b.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	plain := api.New(api.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Rules: []*weir.Rule{rule}, Log: log})
	seen := metrics.New("memory", log)
	observed, err := seen.Observe(weir.NewMemory(weir.MemoryOptions{}))
	if err != nil {
		b.Fatal(err)
	}
	counted := api.New(api.Options{Engine: observed, Rules: []*weir.Rule{rule}, Log: log})
	asks := []*asks{newAsks(b, http.HandlerFunc(bare)), newAsks(b, plain), newAsks(b, seen.HTTP(counted, counted.Serves))}
	for b.Loop() {
		for range 21 {
			for _, a := range asks {
				a.window(b, 2000)
			}
		}
	}
	without, with := asks[1].median(), asks[2].median()
	b.ReportMetric(float64(asks[0].median()), "bare-ns/request")
	b.ReportMetric(float64(without), "without-ns/request")
	b.ReportMetric(float64(with), "with-ns/request")
	b.ReportMetric(float64(with)/float64(without), "with/without")
	b.ReportMetric(float64(without)/float64(asks[0].median()), "without/bare")
	b.ReportMetric(float64(with)/float64(asks[0].median()), "with/bare")
}

// bare is a handler as one would write it.
func bare(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Rule, Key string
		Cost      int64
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"allowed": true, "rule": "default", "limit": 1000000000, "remaining": 999999999, "retry_after": 0, "reset_after": 0.000000001, "delay": 0})
}

// asks are the requests to one handler.
type asks struct {
	conn  net.Conn
	read  *bufio.Reader
	costs []time.Duration // of a request, by window
}

func newAsks(b *testing.B, handler http.Handler) *asks {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(func() { _ = server.Close() })
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return &asks{conn: conn, read: bufio.NewReader(conn)}
}

// window asks n times and notes the CPU of this process, client included.
func (a *asks) window(b *testing.B, n int) {
	const body = `{"rule":"default","key":"alice","cost":1}`
	request := fmt.Appendf(nil, "POST /v1/take HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	began := cpu()
	for range n {
		if _, err := a.conn.Write(request); err != nil {
			b.Fatal(err)
		}
		response, err := http.ReadResponse(a.read, nil)
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatal(response, err)
		}
		if _, err := a.read.Discard(int(response.ContentLength)); err != nil {
			b.Fatal(err)
		}
	}
	a.costs = append(a.costs, (cpu()-began)/time.Duration(n))
}

func (a *asks) median() time.Duration {
	slices.Sort(a.costs)
	return a.costs[len(a.costs)/2]
}

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // never fails for this process
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

//go:build unix

package metrics_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/metrics"
)

// BenchmarkTakeOverHTTP compares the CPU of POST /v1/take with metrics, without them, of a handler that reads the same
// JSON and writes the same answer, and of the floor: a handler that reads the bytes and writes those of an answer. Another
// process asks each in turn, in 41 windows; the medians count.
//
//	go test -run '^$' -bench TakeOverHTTP ./cmd/weir/internal/metrics
func BenchmarkTakeOverHTTP(b *testing.B) {
	for _, connections := range []int{1, 16} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) { benchmarkTakeOverHTTP(b, connections) })
	}
}

func benchmarkTakeOverHTTP(b *testing.B, connections int) {
	rule, err := weir.ParseRule("default=1000000000/s")
	if err != nil {
		b.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	plain := api.New(api.Options{Desk: decide.New(decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Rules: []*weir.Rule{rule}, Log: log})})
	seen := metrics.New("memory", log)
	observed, err := seen.Observe(weir.NewMemory(weir.MemoryOptions{}))
	if err != nil {
		b.Fatal(err)
	}
	counted := api.New(api.Options{Desk: decide.New(decide.Options{Engine: observed, Rules: []*weir.Rule{rule}, Log: log})})
	var asks []*asks
	for _, handler := range []http.Handler{http.HandlerFunc(bare), plain, seen.HTTP(counted, counted.Serves), http.HandlerFunc(floor)} {
		asks = append(asks, newAsks(b, handler, connections))
	}
	for b.Loop() {
		for range 41 {
			for _, a := range asks {
				a.window(b)
			}
		}
	}
	without, with := asks[1].median(), asks[2].median()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(asks[0].median()), "bare-ns/request")
	b.ReportMetric(float64(without), "without-ns/request")
	b.ReportMetric(float64(with), "with-ns/request")
	b.ReportMetric(float64(with)/float64(without), "with/without")
	b.ReportMetric(float64(without)/float64(asks[0].median()), "without/bare")
	b.ReportMetric(float64(with)/float64(asks[0].median()), "with/bare")
	b.ReportMetric(float64(asks[3].median())/float64(asks[0].median()), "floor/bare")
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

// answer is what floor answers.
var answer = []byte(`{"allowed":true,"rule":"default","key":"alice","limit":1000000000,"remaining":999999999,"retry_after":0,"reset_after":0.000000001,"delay":0}` + "\n")

// floor does no more than net/http needs.
func floor(w http.ResponseWriter, r *http.Request) {
	var body [512]byte
	for err := error(nil); err == nil; {
		_, err = r.Body.Read(body[:])
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

// asks are the requests to one handler. Their client is a process of its own, so that its CPU does not count.
type asks struct {
	more  io.Writer     // a byte for each window
	done  *bufio.Reader // a byte for each window that has ended
	costs []time.Duration
}

// window is the number of requests between two looks at the CPU.
const window = 4000

// These variables make this program a client: where it asks, and on how many connections at a time.
const (
	askedAddress     = "WEIR_BENCH_ASKED"
	askedConnections = "WEIR_BENCH_CONNECTIONS"
)

func newAsks(b *testing.B, handler http.Handler, connections int) *asks {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(func() { _ = server.Close() })
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	client := exec.Command(exe)
	client.Env = append(os.Environ(), askedAddress+"="+listener.Addr().String(), fmt.Sprintf("%s=%d", askedConnections, connections))
	client.Stderr = os.Stderr
	in, err := client.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := client.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := client.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = in.Close(), client.Wait() })
	return &asks{more: in, done: bufio.NewReader(out)}
}

func TestMain(m *testing.M) {
	if address := os.Getenv(askedAddress); address != "" {
		connections, err := strconv.Atoi(os.Getenv(askedConnections))
		if err == nil {
			err = ask(address, connections)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// ask asks a window for each byte of standard input, on several connections.
func ask(address string, connections int) error {
	conns := make([]net.Conn, connections)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", address); err != nil {
			return err
		}
	}
	for one := make([]byte, 1); ; {
		if _, err := os.Stdin.Read(one); err != nil {
			return nil
		}
		failed := make(chan error, connections)
		for _, conn := range conns {
			go func() { failed <- askOn(conn, window/connections) }()
		}
		for range conns {
			if err := <-failed; err != nil {
				return err
			}
		}
		if _, err := os.Stdout.Write(one); err != nil {
			return err
		}
	}
}

func askOn(conn net.Conn, n int) error {
	const body = `{"rule":"default","key":"alice","cost":1}`
	request := fmt.Appendf(nil, "POST /v1/take HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	for answers := bufio.NewReader(conn); n > 0; n-- {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		response, err := http.ReadResponse(answers, nil)
		if err != nil || response.StatusCode != http.StatusOK {
			return fmt.Errorf("got %v, %w", response, err)
		}
		if _, err := answers.Discard(int(response.ContentLength)); err != nil {
			return err
		}
	}
	return nil
}

// window has a window asked, and notes the CPU of this process for a request.
func (a *asks) window(b *testing.B) {
	began := cpu()
	if _, err := a.more.Write([]byte{'.'}); err != nil {
		b.Fatal(err)
	}
	if _, err := a.done.ReadByte(); err != nil {
		b.Fatal(err)
	}
	a.costs = append(a.costs, (cpu()-began)/window)
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

// Program middleware compares the middleware of httplimit with those of its rivals, and measures the interceptor of
// grpclimit. It judges their targets.
//
//	go run ./bench/middleware          a minute; writes bench/HTTP.md
//	go run ./bench/middleware -quick   a trial; prints figures that mean nothing
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	"google.golang.org/grpc"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/grpclimit"
)

func main() { bench.Main() }

const (
	clients = 4096
	plenty  = 1_000_000_000 // a limit that no run reaches
	window  = 500           // requests, fewer than a scheduler's slice
	group   = "an admitted request"
)

var bench = &measure.Bench{
	Program: "bench/middleware", Title: "Middleware", Report: "bench/HTTP.md", Reps: 25, Window: 200 * time.Millisecond,
	About: fmt.Sprintf(`One admitted request, by turns of %d clients, to a handler that does nothing, with the writer of the answer in memory. Every
middleware keeps its state in memory and counts by the address of the client. A measurement keeps the fastest of its windows of
%d requests: other programs and the garbage collector interrupt the others. Before the run, each row has refused the second
request of each client under a limit of 1, and set the fields it names. In the run, all of its requests are admitted.`, clients, window),
	Rows:    rows,
	Columns: []measure.Column{{Figure: "ns", Format: "%.0f"}, {Figure: "allocations", Format: "%.1f"}},
	Targets: targets,
}

// subject is something that is measured. Each call of send makes one request, of the clients by turns.
type subject struct {
	send  func()
	check func() error // all requests were admitted
}

func rows(*measure.Options) (list []measure.Row, err error) {
	from := requests()
	for _, p := range peers {
		s, err := newSubject(p, from)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		list = append(list, measure.Row{Group: group, Line: p.name, Measure: s.measure})
	}
	s, err := grpcSubject()
	return append(list, measure.Row{Group: group, Line: grpcName, Measure: s.measure}), err
}

func targets([]measure.Row) []measure.Target {
	target := func(name, figure, format string, bound float64, ours string, over ...string) measure.Target {
		c := measure.Case{Row: ours + ", " + group}
		for _, other := range over {
			c.Over = append(c.Over, other+", "+group)
		}
		return measure.Target{Name: name, Figure: figure, Format: format, Bound: bound, Minus: format == "%.0f ns", Cases: []measure.Case{c}}
	}
	list := []measure.Target{
		target("no fields, over the bare handler", "ns", "%.0f ns", 300, weirNone, bareHandler),
		target("its allocations", "allocations", "%.1f", 2, weirNone),
		target("with the fields of draft 11, over the bare handler", "ns", "%.0f ns", 900, weirDraft11, bareHandler),
		target(grpcName, "ns", "%.0f ns", 500, grpcName),
		target("its allocations", "allocations", "%.1f", 2, grpcName),
	}
	for _, p := range peers[4:] {
		list = append(list, target("with fields of a number each, over "+p.name, "ns", "%.2f ×", 1, weirLegacy, p.name))
	}
	return list
}

// sink is a writer that keeps nothing but its status.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

// requests are one of each client, made beforehand.
func requests() []*http.Request {
	made := make([]*http.Request, clients)
	for i := range made {
		r, err := http.NewRequest(http.MethodGet, "http://example.org/", nil)
		if err != nil {
			panic(err) // the URL is a constant
		}
		r.RemoteAddr = fmt.Sprintf("192.0.%d.%d:1234", i/256, i%256)
		made[i] = r
	}
	return made
}

// newSubject makes the middleware of a peer, and checks that it limits each client alone and sets its fields.
func newSubject(p peer, from []*http.Request) (*subject, error) {
	if err := checkPeer(p, from); err != nil {
		return nil, err
	}
	limited, err := p.make(plenty)
	if err != nil {
		return nil, err
	}
	reached, sent := 0, 0
	h := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	w := &sink{header: http.Header{}}
	return warmed(&subject{func() {
		clear(w.header)
		h.ServeHTTP(w, from[sent%len(from)])
		sent++
	}, func() error {
		if reached != sent || w.status != 0 {
			return fmt.Errorf("%d of %d requests were admitted (status %d), want all", reached, sent, w.status)
		}
		return nil
	}}), nil
}

// warmed makes every client known. The requests that are looked at for mistakes are then over.
func warmed(s *subject) *subject {
	for range 2 * clients {
		s.send()
	}
	return s
}

// checkPeer sends two requests of each client under a limit of one: the first is admitted, and the second refused.
func checkPeer(p peer, from []*http.Request) error {
	limited, err := p.make(1)
	if err != nil {
		return err
	}
	reached := 0
	h := limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached++
		for _, field := range p.fields {
			if len(w.Header()[field]) == 0 {
				err = fmt.Errorf("an answer to an admitted request has no field %s", field)
			}
		}
	}))
	for i, r := range from {
		for range 2 {
			h.ServeHTTP(&sink{header: http.Header{}}, r)
		}
		if want := i + 1; reached != want && p.name != bareHandler {
			return fmt.Errorf("after two requests of each of %d clients, %d were admitted, want %d", i+1, reached, want)
		}
	}
	return err
}

const grpcName = "the interceptor of grpclimit, called directly"

func grpcSubject() (*subject, error) {
	limited, err := grpclimit.PerClient(fmt.Sprintf("%d/h", plenty))
	if err != nil {
		return nil, err
	}
	contexts := make([]context.Context, clients)
	for i := range contexts {
		addr := &net.TCPAddr{IP: net.IPv4(192, 0, byte(i/256), byte(i%256)), Port: 1234}
		contexts[i] = grpcpeer.NewContext(context.Background(), &grpcpeer.Peer{Addr: addr})
	}
	info := &grpc.UnaryServerInfo{FullMethod: "/package.Service/Method"}
	reached, sent := 0, 0
	handler := func(context.Context, any) (any, error) {
		reached++
		return nil, nil
	}
	return warmed(&subject{func() {
		_, _ = limited.Unary(contexts[sent%len(contexts)], nil, info, handler)
		sent++
	}, func() error {
		if reached != sent {
			return fmt.Errorf("%d of %d calls were admitted, want all", reached, sent)
		}
		return nil
	}}), nil
}

// measure returns the fastest window, and the allocations of a request.
func (s *subject) measure(_ context.Context, o *measure.Options) (measure.Figures, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fastest, windows := time.Hour, 0
	for began := time.Now(); time.Since(began) < o.Window; windows++ {
		from := time.Now()
		for range window {
			s.send()
		}
		fastest = min(fastest, time.Since(from))
	}
	runtime.ReadMemStats(&after)
	return measure.Figures{"ns": float64(fastest) / window, "allocations": float64((after.Mallocs-before.Mallocs)*10/uint64(windows*window)) / 10}, s.check()
}

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"time"

	"google.golang.org/grpc"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/weirflow/weir/grpclimit"
)

const (
	clients = 4096
	plenty  = 1_000_000_000 // a limit that no run reaches
	window  = 500           // requests, fewer than a scheduler's slice
)

// subject is something that is measured. Each call of send makes one admitted request, of the clients by turns.
type subject struct {
	name    string
	send    func()
	check   func() error // after the run: all requests were admitted
	allocs  float64      // per request
	minima  []float64    // of each round, in ns per request
	windows int
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
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	limited, err := p.make(plenty)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	reached, sent := 0, 0
	h := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	w := &sink{header: http.Header{}}
	s := &subject{name: p.name, send: func() {
		clear(w.header)
		h.ServeHTTP(w, from[sent%len(from)])
		sent++
	}}
	s.check = func() error {
		if reached != sent || w.status != 0 {
			return fmt.Errorf("%s: %d of %d requests were admitted (status %d), want all", p.name, reached, sent, w.status)
		}
		return nil
	}
	return s, nil
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

// grpcSubject calls the interceptor of a gRPC server directly.
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
	s := &subject{name: "grpclimit, unary, called directly", send: func() {
		_, _ = limited.Unary(contexts[sent%len(contexts)], nil, info, handler)
		sent++
	}}
	s.check = func() error {
		if reached != sent {
			return fmt.Errorf("grpclimit: %d of %d calls were admitted, want all", reached, sent)
		}
		return nil
	}
	return s, nil
}

// subjects are all that is measured.
func subjects() ([]*subject, error) {
	from := requests()
	var list []*subject
	for _, p := range peers {
		s, err := newSubject(p, from)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	s, err := grpcSubject()
	return append(list, s), err
}

// measure runs rounds of all subjects by turns, each for a while. A round keeps the fastest of its windows: other
// programs interrupt the others.
func measure(list []*subject, rounds int, each time.Duration, progress func(string)) error {
	for _, s := range list {
		for range 2 * clients {
			s.send() // each client is known, and the requests that are looked at for mistakes are over
		}
		s.allocs = allocations(s.send)
	}
	for round := range rounds {
		progress(fmt.Sprintf("round %d of %d", round+1, rounds))
		for _, s := range list {
			s.minima = append(s.minima, s.round(each))
		}
	}
	for _, s := range list {
		if err := s.check(); err != nil {
			return err
		}
	}
	return nil
}

// round returns the fastest window of a while.
func (s *subject) round(each time.Duration) (fastest float64) {
	runtime.GC()
	for began := time.Now(); time.Since(began) < each; {
		from := time.Now()
		for range window {
			s.send()
		}
		took := float64(time.Since(from).Nanoseconds()) / window
		if fastest == 0 || took < fastest {
			fastest = took
		}
		s.windows++
	}
	return fastest
}

// allocations returns those of one call.
func allocations(send func()) float64 {
	const calls = 5000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		send()
	}
	runtime.ReadMemStats(&after)
	return float64((after.Mallocs-before.Mallocs)/(calls/10)) / 10
}

// spread is the median, the least and the greatest of some numbers.
type spread struct{ median, least, greatest float64 }

func spreadOf(numbers []float64) spread {
	sorted := slices.Sorted(slices.Values(numbers))
	return spread{sorted[len(sorted)/2], sorted[0], sorted[len(sorted)-1]}
}

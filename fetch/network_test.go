package fetch_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir/fetch"
)

// network is hosts in memory, for tests in virtual time. It keeps what arrives.
type network struct {
	transport *http.Transport
	listeners map[string]*listener
	dialing   func(host string) time.Duration // how long a connection takes
	resolve   func(host string) string        // the host that answers for another

	mu       sync.Mutex
	arrivals []arrival
}

// arrival is a request as its server sees it.
type arrival struct {
	at   time.Time
	host string
	path string
}

// newNetwork returns a network of hosts, which lives until the test ends.
func newNetwork(t *testing.T, hosts map[string]http.Handler) *network {
	n := &network{listeners: map[string]*listener{}, dialing: func(string) time.Duration { return 0 }, resolve: func(host string) string { return host }}
	n.transport = &http.Transport{DialContext: n.dial, DisableCompression: true, MaxIdleConnsPerHost: 4}
	for host, handler := range hosts {
		l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
		n.listeners[host] = l
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n.mu.Lock()
			n.arrivals = append(n.arrivals, arrival{time.Now(), host, r.URL.RequestURI()})
			n.mu.Unlock()
			handler.ServeHTTP(w, r)
		})}
		go server.Serve(l)
		t.Cleanup(func() { server.Close() })
	}
	t.Cleanup(n.transport.CloseIdleConnections)
	return n
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	time.Sleep(n.dialing(host))
	l := n.listeners[n.resolve(host)]
	if l == nil {
		return nil, fmt.Errorf("no such host: %s", host)
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// of returns the arrivals at a host, or all if it is empty.
func (n *network) of(host string) (arrivals []arrival) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.arrivals {
		if host == "" || a.host == host {
			arrivals = append(arrivals, a)
		}
	}
	return arrivals
}

// paths returns the paths of arrivals.
func paths(arrivals []arrival) (paths []string) {
	for _, a := range arrivals {
		paths = append(paths, a.path)
	}
	return paths
}

type listener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *listener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// withRobots serves a robots.txt and otherwise the handler.
func withRobots(robots string, handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/robots.txt":
			handler(w, r)
		case robots == "":
			http.NotFound(w, r)
		default:
			io.WriteString(w, robots)
		}
	})
}

// free serves without a robots.txt.
func free(handler http.HandlerFunc) http.Handler { return withRobots("", handler) }

func hello(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }

// crawl runs a crawl and returns the result of each URL.
func crawl(t *testing.T, n *network, o fetch.Options, urls ...string) map[string]fetch.Result {
	t.Helper()
	results := map[string]fetch.Result{}
	if o.Transport == nil {
		o.Transport = n.transport
	}
	o.Done = func(r fetch.Result) {
		if earlier, twice := results[r.URL]; twice {
			t.Errorf("%s has two results: %+v and %+v", r.URL, earlier, r)
		}
		results[r.URL] = r
	}
	if err := fetch.Run(t.Context(), fetch.URLs(urls...), o); err != nil {
		t.Fatal(err)
	}
	for _, u := range urls {
		if _, found := results[u]; !found {
			t.Errorf("%s has no result", u)
		}
	}
	return results
}

// pagesOf returns n URLs of a host.
func pagesOf(host string, n int) (urls []string) {
	for i := range n {
		urls = append(urls, fmt.Sprintf("http://%s/%d", host, i))
	}
	return urls
}

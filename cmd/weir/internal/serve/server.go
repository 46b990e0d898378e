package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"google.golang.org/grpc"

	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// The bounds of one connection. Requests are small and decisions take no time, so a client that needs longer is lost
// or hostile.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 15 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10 // includes the request line
	headerSlack    = 4 << 10  // net/http reads this much beyond MaxHeaderBytes
)

// server answers over HTTP until its context ends.
type server struct {
	api     *api.API
	desk    *decide.Desk
	traffic http.Handler // the api with its requests counted; nil is the api alone
	auth    auth.Port    // of the traffic
	also    []port
	ports   *portOptions
	log     *slog.Logger
	open    connections
	drain   time.Duration // from the stop signal to the last new connection
	grace   time.Duration // from then to the end of requests that have begun to arrive

	calls     grpc.UnaryServerInterceptor // around calls of Envoy; nil for nothing
	unhealthy func() string               // why health checks of Envoy fail, or ""
}

// The times of a stop. A connection is closed once it has been quiet for the first, so that a client that asks again
// at once connects elsewhere, or for the second if it is new: its client is about to ask. Requests that have not fully
// arrived are cut the third before the end of the grace period, so that their clients still get an answer. The last
// clients have the fourth to read it.
const (
	stopQuiet  = 250 * time.Millisecond
	stopSilent = time.Second
	stopCut    = 500 * time.Millisecond
	stopLinger = 100 * time.Millisecond
	stopTick   = 5 * time.Millisecond
)

// listen listens on the address of a flag: HOST:PORT, or unix:PATH. A socket that the service manager holds stands in for it.
func listen(flag, address string) (net.Listener, error) {
	if on := inherited().take(flag); on != nil {
		return on, nil
	}
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		mode := trafficMode
		if flag == "admin" {
			mode = adminMode
		}
		listener, err := listenUnix(path, mode)
		return listener, cannotListen(flag, address, err)
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, cli.Misuse(fmt.Errorf("--%s: %w", flag, err), "an address is HOST:PORT, like 127.0.0.1:8080, or :8080 for all interfaces, or unix:PATH")
	}
	plain := net.ListenConfig{KeepAlive: -1} // timeouts end dead connections, at less cost for each
	listener, err := plain.Listen(context.Background(), "tcp", address)
	return listener, cannotListen(flag, address, err)
}

// cannotListen explains why the daemon could not listen.
func cannotListen(flag, address string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EADDRINUSE):
		return cli.Fail(fmt.Errorf("serve: %s is in use by another program", address), "choose another address, or any free port: weir serve --"+flag+" 127.0.0.1:0")
	case errors.Is(err, syscall.EACCES):
		return cli.Fail(fmt.Errorf("serve: this user may not listen on %s", address), "ports below 1024 need privileges; try: weir serve --"+flag+" 127.0.0.1:8080")
	}
	return cli.Fail(fmt.Errorf("serve: %w", err), "use an address of this machine, HOST:PORT, like 127.0.0.1:8080, or :8080 for all interfaces, or unix:PATH")
}

// newHTTPServer returns a server of a handler, whose connections are within their bounds.
func newHTTPServer(handler http.Handler, who *auth.Port, open *connections, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes - headerSlack,
		ConnContext:       func(ctx context.Context, conn net.Conn) context.Context { return open.mark(who.Mark(ctx), conn) },
		ConnState:         open.changed,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// handler answers the traffic.
func (s *server) handler() http.Handler {
	if s.traffic != nil {
		return s.traffic
	}
	return s.api
}

// serve answers requests on the listener, which it closes, and on the other ports until the context ends. It then ends readiness, takes no
// new connections, and finishes requests in flight.
func (s *server) serve(ctx context.Context, on net.Listener) error {
	h := newHTTPServer(s.handler(), &s.auth, &s.open, s.log)
	defer func() { _ = h.Close() }()
	ended, failed := make(chan error, 1), make(chan error, len(s.also))
	go func() { ended <- h.Serve(s.ports.encrypted(&listener{on, &s.open}, "http/1.1")) }()
	for _, p := range s.also {
		go func() {
			if err := p.serve(); err != nil {
				failed <- err
			}
		}()
		defer p.stop()
	}
	select {
	case err := <-ended:
		return cli.Fail(fmt.Errorf("serve: %w", err), "the listening socket failed; start again")
	case err := <-failed:
		return cli.Fail(err, "the listening socket failed; start again")
	case <-ctx.Done():
	}
	notify(s.log, daemon.SdNotifyStopping)
	s.api.Stopping()
	s.log.Info("stopping", "drain", s.drain, "grace", s.grace)
	select {
	case <-time.After(s.drain):
	case err := <-ended:
		return cli.Fail(fmt.Errorf("serve: %w", err), "the listening socket failed while stopping: requests may have been cut off; start again")
	}
	_ = on.Close()
	<-ended
	defer s.desk.Stopped()
	return s.stop()
}

// stop finishes requests that have begun to arrive, within the grace period, and closes quiet connections.
// [http.Server.Shutdown] waits for silent connections and drops requests that arrive meanwhile.
func (s *server) stop() error {
	start := time.Now()
	quiet, silent, cutting := min(stopQuiet, s.grace/8), min(stopSilent, s.grace/8), s.grace-min(stopCut, s.grace/4)
	tick := time.NewTicker(stopTick)
	defer tick.Stop()
	for cut := false; ; <-tick.C {
		busy, took := s.open.closeQuiet(quiet, silent), time.Since(start)
		switch {
		case busy == 0:
			time.Sleep(min(stopLinger, s.grace/8))
			s.log.Info("stopped")
			return nil
		case took >= s.grace:
			return cli.Fail(fmt.Errorf("serve: requests took longer than the grace period of %s and were cut off", cli.Duration(s.grace)), "give them longer with --grace")
		}
		if took >= quiet {
			s.api.Ending()
		}
		if took >= cutting && !cut {
			cut = true
			s.log.Warn("the grace period ends; requests that have not fully arrived are cut off", "connections", busy)
			s.open.cut()
		}
	}
}

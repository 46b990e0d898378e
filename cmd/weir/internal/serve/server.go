package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
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
	api   *api.API
	log   *slog.Logger
	open  connections
	drain time.Duration // from the stop signal to the last new connection
	grace time.Duration // from then to the end of requests that have begun to arrive
}

// The times of a stop. A connection is closed once it has been quiet for the first, so that a client that asks again
// at once connects elsewhere. Requests that have not fully arrived are cut the second before the end of the grace
// period, so that their clients still get an answer. The last clients have the third to read it.
const (
	stopQuiet  = 250 * time.Millisecond
	stopCut    = 500 * time.Millisecond
	stopLinger = 100 * time.Millisecond
	stopTick   = 5 * time.Millisecond
)

func listen(address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, cli.Misuse(fmt.Errorf("--http: %w", err), "an address is HOST:PORT, like 127.0.0.1:8080, or :8080 for all interfaces")
	}
	plain := net.ListenConfig{KeepAlive: -1} // timeouts end dead connections, at less cost for each
	listener, err := plain.Listen(context.Background(), "tcp", address)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, cli.Fail(fmt.Errorf("serve: %s is in use by another program", address), "choose another address, or any free port: weir serve --http 127.0.0.1:0")
	case errors.Is(err, syscall.EACCES):
		return nil, cli.Fail(fmt.Errorf("serve: this user may not listen on %s", address), "ports below 1024 need privileges; try: weir serve --http 127.0.0.1:8080")
	}
	return nil, cli.Fail(fmt.Errorf("serve: %w", err), "use an address of this machine, HOST:PORT, like 127.0.0.1:8080, or :8080 for all interfaces")
}

// serve answers requests on the listener, which it closes, until the context ends. It then ends readiness, takes no
// new connections, and finishes requests in flight.
func (s *server) serve(ctx context.Context, on net.Listener) error {
	h := &http.Server{
		Handler:           s.api,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes - headerSlack,
		ConnContext:       s.open.mark,
		ConnState:         s.open.changed,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	defer func() { _ = h.Close() }()
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(&listener{on, &s.open}) }()
	select {
	case err := <-ended:
		return cli.Fail(fmt.Errorf("serve: %w", err), "the listening socket failed; start again")
	case <-ctx.Done():
	}
	s.api.Stopping()
	s.log.Info("stopping", "drain", s.drain, "grace", s.grace)
	select {
	case <-time.After(s.drain):
	case err := <-ended:
		return cli.Fail(fmt.Errorf("serve: %w", err), "the listening socket failed while stopping: requests may have been cut off; start again")
	}
	_ = on.Close()
	<-ended
	defer s.api.Stopped()
	return s.stop()
}

// stop finishes requests that have begun to arrive, within the grace period, and closes quiet connections.
// [http.Server.Shutdown] waits for silent connections and drops requests that arrive meanwhile.
func (s *server) stop() error {
	start := time.Now()
	quiet, cutting := min(stopQuiet, s.grace/8), s.grace-min(stopCut, s.grace/4)
	tick := time.NewTicker(stopTick)
	defer tick.Stop()
	for cut := false; ; <-tick.C {
		busy, took := s.open.closeQuiet(quiet), time.Since(start)
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

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/api"
)

// The bounds of one connection. Requests are small and decided at once, so
// whoever needs longer is lost, or hostile.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 15 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10 // the line of the request included
	headerSlack    = 4 << 10  // what net/http reads beyond what it is told
)

// server answers over HTTP until it is told to stop.
type server struct {
	api   *api.API
	log   *slog.Logger
	open  connections
	drain time.Duration // from the stop signal to the last new connection
	grace time.Duration // from then to the end of requests in flight
}

// serve answers on the listener, which it closes, until the context ends; then
// it stops: first readiness, then new connections, then requests in flight.
func (s *server) serve(ctx context.Context, listener net.Listener) error {
	h := &http.Server{
		Handler:           s.api,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes - headerSlack,
		ConnContext:       s.open.begin,
		ConnState:         s.open.changed,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(listener) }()
	select {
	case err := <-failed:
		_ = h.Close()
		return errorWithHint(fmt.Errorf("serve: %w", err), "the listening socket failed; start again")
	case <-ctx.Done():
	}
	s.api.Stopping()
	s.log.Info("stopping", "drain", s.drain, "grace", s.grace)
	select {
	case <-time.After(s.drain):
	case err := <-failed:
		return errorWithHint(fmt.Errorf("serve: %w", err), "the listening socket failed while stopping")
	}
	return s.stop(h)
}

// stop lets requests in flight finish, for as long as grace.
func (s *server) stop(h *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.grace)
	defer cancel()
	err := h.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		_ = h.Close()
		return errorWithHint(fmt.Errorf("serve: requests were cut off: they took longer than the grace period of %v", s.grace), "give them longer with --grace")
	}
	if err != nil {
		return errorWithHint(fmt.Errorf("serve: stop: %w", err), "the listening socket failed while stopping")
	}
	s.log.Info("stopped")
	return nil
}

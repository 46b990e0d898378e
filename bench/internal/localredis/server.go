// Package localredis starts servers of Redis for programs of the bench, and links that delay.
package localredis

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server of the bench, which keeps nothing on disk.
type Server struct {
	Addr string
	cmd  *exec.Cmd
	dir  string
}

// Start starts a redis-server with a configuration as on its command line. It returns when the server answers.
func Start(ctx context.Context, config ...string) (*Server, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weir-bench-redis")
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), dir: dir}
	s.cmd = exec.Command("redis-server", append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no", "--loglevel", "warning"}, config...)...)
	if err := s.cmd.Start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("redis-server does not start (apt-get install redis-server installs it): %w", err)
	}
	if err := s.awaitReady(ctx); err != nil {
		s.End()
		return nil, err
	}
	return s, nil
}

// FreePort returns a port on which nothing listens.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func (s *Server) awaitReady(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis-server at %s does not answer: %w", s.Addr, err)
		case <-tick.C:
		}
	}
}

// End kills the server.
func (s *Server) End() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

// Package redistest starts real redis-server processes for tests. [Start] starts one server, [StartCluster] a cluster
// of six nodes, and [StartSentinel] a master, a replica and their sentinels.
//
// Each server listens on a free port of the loopback interface and keeps its files in a folder of the test. It ends
// with the test, even if the test is killed. The servers are ready when the call returns.
//
// Without redis-server, the test is skipped with a line that says how to install it. If the environment variable CI
// is set, the test fails instead.
package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/testprocess"
)

// patience bounds the time that a server may take to get ready. It is generous, for busy machines.
const patience = 2 * time.Minute

// A test that is patient sets that time itself.
type patient interface{ Patience() time.Duration }

func patienceOf(t testing.TB) time.Duration {
	if own, ok := t.(patient); ok {
		return own.Patience()
	}
	return patience
}

// Server is one redis-server process. Its methods are safe for concurrent use, except that only one of [Server.Kill],
// [Server.Restart], [Server.Stop] and [Server.Cont] may run at a time.
type Server struct {
	Addr string // host:port
	Port int

	t        testing.TB
	sentinel bool
	clock    *testprocess.Clock // nil if none moves it
	env      []string           // further variables of the environment
	dir      string
	process  *testprocess.Process
}

// Start starts one server, which keeps nothing on disk. Each config text, like "maxmemory 10mb", becomes a line of
// redis.conf.
func Start(t testing.TB, config ...string) *Server {
	t.Helper()
	return start(t, &Server{}, config)
}

// start starts a server that is like the given one. It tries several ports, because another program can take a free port
// first.
func start(t testing.TB, like *Server, config []string) *Server {
	t.Helper()
	testprocess.Require(t, "redis-server", "redis-server")
	const attempts = 5
	var failure error
	for range attempts {
		s := &Server{t: t, sentinel: like.sentinel, clock: like.clock, env: like.env, dir: t.TempDir(), Port: testprocess.FreePort(t)}
		s.Addr = "127.0.0.1:" + strconv.Itoa(s.Port)
		s.writeConfig(config)
		if failure = s.launch(); failure == nil {
			t.Cleanup(s.end)
			return s
		}
	}
	t.Fatalf("redistest: redis-server does not start: %v", failure)
	return nil
}

func (s *Server) configFile() string { return filepath.Join(s.dir, "redis.conf") }
func (s *Server) logFile() string    { return filepath.Join(s.dir, "log") }

func (s *Server) writeConfig(config []string) {
	s.t.Helper()
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\nprotected-mode no\ndir %s\nlogfile %s\ndaemonize no\n", s.Port, s.dir, s.logFile())
	if !s.sentinel {
		text += "save \"\"\nappendonly no\n"
	}
	for _, line := range config {
		text += line + "\n"
	}
	if err := os.WriteFile(s.configFile(), []byte(text), 0o600); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
}

// launch starts the process and waits until it answers.
func (s *Server) launch() error {
	args := []string{s.configFile()}
	if s.sentinel {
		args = append(args, "--sentinel")
	}
	command := exec.Command("redis-server", args...)
	command.Env = append(os.Environ(), s.env...)
	p, err := testprocess.Start(command)
	if err != nil {
		return err
	}
	err = eventually(patienceOf(s.t), func() error {
		if p.Ended() {
			return fmt.Errorf("the process ended")
		}
		return s.answers(p)
	}, p.Ended)
	if err != nil {
		p.End()
		return fmt.Errorf("%s: %w\n%s", s.Addr, err, s.Log())
	}
	s.process = p
	return nil
}

// answers returns nil if our process answers, and not another program that took the port first.
func (s *Server) answers(p *testprocess.Process) error {
	if _, err := ask(s.Addr, "PING"); err != nil {
		return err
	}
	info, err := ask(s.Addr, "INFO", "server")
	if err != nil {
		return err
	}
	if text, _ := info.(string); !strings.Contains(text, fmt.Sprintf("process_id:%d\r", p.Pid)) {
		return fmt.Errorf("another program listens on port %d", s.Port)
	}
	return nil
}

// end stops the server at the end of the test.
func (s *Server) end() {
	s.process.End()
	if s.t.Failed() {
		s.t.Logf("redistest: the log of %s:\n%s", s.Addr, s.Log())
	}
}

// Kill ends the server with SIGKILL and returns when it has ended.
func (s *Server) Kill() { s.process.End() }

// Restart starts a killed server again, on its port and with its configuration. It returns when the server answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.process.End()
	if err := s.launch(); err != nil {
		s.t.Fatalf("redistest: restart: %v", err)
	}
}

// Revive resumes a stopped server and starts a killed one again. A server that runs stays as it is.
func (s *Server) Revive() {
	s.t.Helper()
	if s.process.Ended() {
		s.Restart()
		return
	}
	s.Cont()
}

// Stop makes the server hang: it keeps its connections and does not answer until [Server.Cont].
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Cont resumes a stopped server.
func (s *Server) Cont() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.process.Signal(signal); err != nil {
		s.t.Fatalf("redistest: %v to %s: %v", signal, s.Addr, err)
	}
}

// Log returns the last 4 KiB of the server's log.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4<<10):])
}

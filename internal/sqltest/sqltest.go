// Package sqltest starts real PostgreSQL, MariaDB and PgBouncer servers for the tests of all modules, on sockets of their
// own. The servers give up root's privileges. They end with their test.
package sqltest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/testprocess"
)

// Server is a server of a test.
type Server struct {
	Dir     string // has the socket and the data
	Port    int    // in the name of the socket
	t       testing.TB
	command func() *exec.Cmd
	socket  string
	ready   func() bool // whether the server answers on its socket
	process *testprocess.Process
	clock   *testprocess.Clock // nil if none moves it
}

// user runs the servers that refuse to run as root. Debian's package of PostgreSQL brings it.
const user = "postgres"

// unprivileged returns a command that runs without root's privileges.
func unprivileged(name string, args ...string) *exec.Cmd {
	if os.Geteuid() != 0 {
		return exec.Command(name, args...)
	}
	return exec.Command("setpriv", append([]string{"--reuid=" + user, "--regid=" + user, "--clear-groups", name}, args...)...)
}

// folder returns a short folder, because a socket's path has at most 107 bytes, that servers may write.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Geteuid() == 0 {
		if out, err := exec.Command("chown", user+":", dir).CombinedOutput(); err != nil {
			t.Fatalf("sqltest: chown %s: %v: %s", dir, err, out)
		}
	}
	return dir
}

// program returns a program of PostgreSQL, which Debian keeps outside PATH.
func program(name string) string {
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
		return found[len(found)-1]
	}
	return name
}

func run(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sqltest: %v: %v\n%s", cmd.Args, err, out)
	}
}

// PostgreSQL starts a server with settings such as fsync=off. Its only user is postgres, without a password.
func PostgreSQL(t testing.TB, settings ...string) *Server {
	t.Helper()
	return postgreSQL(&Server{Dir: folder(t), Port: 5432, t: t}, settings)
}

// PostgreSQLWithClock starts a server whose clock [Server.SetClock] moves.
func PostgreSQLWithClock(t testing.TB, settings ...string) *Server {
	t.Helper()
	return postgreSQL(withClock(&Server{Dir: folder(t), Port: 5432, t: t}), settings)
}

func postgreSQL(s *Server, settings []string) *Server {
	t := s.t
	testprocess.Require(t, program("postgres"), "postgresql")
	run(t, unprivileged(program("initdb"), "-D", s.data(), "-N", "-A", "trust", "-U", user, "--locale=C", "--encoding=UTF8"))
	s.startPostgreSQL(settings...)
	return s
}

// Replica starts a server that follows another one asynchronously. It is read-only until it is promoted.
func Replica(t testing.TB, primary *Server) *Server {
	t.Helper()
	s := &Server{Dir: folder(t), Port: 5432, t: t}
	run(t, unprivileged(program("pg_basebackup"), "-D", s.data(), "-h", primary.Dir, "-U", user, "-R", "-c", "fast"))
	s.startPostgreSQL()
	return s
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

func (s *Server) startPostgreSQL(settings ...string) {
	args := []string{"-D", s.data(), "-k", s.Dir, "-c", "listen_addresses="}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	s.command = func() *exec.Cmd { return unprivileged(program("postgres"), args...) }
	s.socket = filepath.Join(s.Dir, ".s.PGSQL.5432")
	s.ready = func() bool { return exec.Command(program("pg_isready"), "-q", "-h", s.Dir).Run() == nil }
	s.Start()
}

// MariaDB starts a server with settings such as --innodb-flush-log-at-trx-commit=2. Its user is root, without a password,
// and it has the database test.
func MariaDB(t testing.TB, settings ...string) *Server {
	t.Helper()
	return mariaDB(&Server{Dir: folder(t), t: t}, settings)
}

// MariaDBWithClock starts a server whose clock [Server.SetClock] moves.
func MariaDBWithClock(t testing.TB, settings ...string) *Server {
	t.Helper()
	return mariaDB(withClock(&Server{Dir: folder(t), t: t}), settings)
}

func withClock(s *Server) *Server {
	s.clock = testprocess.NewClock(s.t, s.Dir)
	return s
}

// SetClock sets the clock of a server with one ahead of the machine's clock, or behind it.
func (s *Server) SetClock(ahead time.Duration) {
	s.t.Helper()
	s.clock.Set(ahead)
}

func mariaDB(s *Server, settings []string) *Server {
	t := s.t
	testprocess.Require(t, "mariadbd", "mariadb-server-core")
	run(t, unprivileged("mkdir", s.data()))
	args := []string{"--no-defaults", "--datadir=" + s.data(), "--innodb-log-file-size=16M", "--innodb-buffer-pool-size=32M"}
	bootstrap := unprivileged("mariadbd", append(args, "--bootstrap")...)
	bootstrap.Stdin = systemTables(t)
	run(t, bootstrap)
	s.socket = filepath.Join(s.Dir, "socket")
	args = append(args, "--socket="+s.socket, "--skip-networking", "--pid-file="+filepath.Join(s.Dir, "pid"))
	s.command = func() *exec.Cmd { return unprivileged("mariadbd", append(args, settings...)...) }
	s.Start()
	return s
}

// systemTables returns the statements that make the tables of a new MariaDB server, such as those of permissions. The program
// that runs them is in another package of Debian.
func systemTables(t testing.TB) io.Reader {
	t.Helper()
	text := []byte("CREATE DATABASE test;\nCREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n")
	for _, pattern := range []string{"/usr/share/m*/m*_system_tables.sql", "/usr/share/m*/m*_system_tables_data.sql"} {
		found, _ := filepath.Glob(pattern)
		if len(found) == 0 {
			t.Fatalf("sqltest: no %s", pattern)
		}
		more, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, more...)
	}
	return bytes.NewReader(text)
}

// PgBouncer starts a pooler in transaction mode before a PostgreSQL server.
func PgBouncer(t testing.TB, before *Server) *Server {
	t.Helper()
	testprocess.Require(t, "pgbouncer", "pgbouncer")
	s := &Server{Dir: folder(t), Port: 6432, t: t}
	users, config := filepath.Join(s.Dir, "users"), filepath.Join(s.Dir, "config")
	text := fmt.Sprintf("[databases]\n* = host=%s port=5432 user=postgres\n[pgbouncer]\nunix_socket_dir=%s\nlisten_port=%d\nlisten_addr=\nauth_type=trust\n"+
		"auth_file=%s\npool_mode=transaction\ndefault_pool_size=4\nmax_client_conn=200\n", before.Dir, s.Dir, s.Port, users)
	for file, content := range map[string]string{users: `"postgres" ""` + "\n", config: text} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.command = func() *exec.Cmd { return unprivileged("pgbouncer", config) }
	s.socket = filepath.Join(s.Dir, ".s.PGSQL."+strconv.Itoa(s.Port))
	s.Start()
	return s
}

// URL returns the connection string of a PostgreSQL server or pooler.
func (s *Server) URL() string {
	return fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres sslmode=disable", s.Dir, s.Port)
}

// Socket returns the path of the server's socket.
func (s *Server) Socket() string { return s.socket }

// Start starts the server, again after Kill, and waits until it accepts connections. The processes of a killed server may
// keep its data for a moment.
func (s *Server) Start() {
	s.t.Helper()
	for range 20 {
		if s.try() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	text, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
	s.t.Fatalf("sqltest: %v does not accept connections:\n%s", s.command().Args, text)
}

// try starts the server once.
func (s *Server) try() bool {
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd := s.command()
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, s.Dir
	if s.clock != nil {
		cmd.Env = append(os.Environ(), s.clock.Env...)
	}
	if s.process, err = testprocess.Start(cmd); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.process.End)
	for !s.process.Ended() {
		if c, err := net.Dial("unix", s.socket); err == nil {
			if _ = c.Close(); s.ready == nil || s.ready() {
				return true
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// Kill ends the server as a crash would. The processes of PostgreSQL that serve connections would outlive the first one for a
// moment, and answer.
func (s *Server) Kill() {
	_ = s.process.Signal(syscall.SIGSTOP)                                       // it would start others in their place
	_ = exec.Command("pkill", "-KILL", "-P", strconv.Itoa(s.process.Pid)).Run() // fails if there are none
	s.process.End()
}

// Stop freezes the server: it keeps its connections and answers nothing until Cont.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Cont resumes a stopped server.
func (s *Server) Cont() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.process.Signal(signal); err != nil {
		s.t.Fatalf("sqltest: %v: %v", signal, err)
	}
}

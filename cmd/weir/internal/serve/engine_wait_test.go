package serve

import (
	"bufio"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

func TestStartWaitsForARedisThatIsAbsentOrTakesNoWrites(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]struct {
		away, back func(*redistest.Server)
		reason     string
	}{
		"absent":    {(*redistest.Server).Kill, (*redistest.Server).Restart, "no Redis answers at"},
		"read only": {func(s *redistest.Server) { s.Do("REPLICAOF", "127.0.0.1", "1") }, func(s *redistest.Server) { s.Do("REPLICAOF", "NO", "ONE") }, "read only"},
	} {
		t.Run(name, func(t *testing.T) {
			redis := redistest.Start(t)
			server.away(redis)
			cmd := daemonCommand(t, "--http", "127.0.0.1:0", "--engine", "redis://"+redis.Addr, "--engine-wait", patience.String())
			log, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(log)
			if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "trying again") || !strings.Contains(line, server.reason) {
				t.Errorf("the log says %q, want that it tries again, and %q (%v)", line, server.reason, err)
			}
			time.Sleep(2 * engineRetry) // for more attempts, which must not be logged
			server.back(redis)
			if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "weir listens on ") {
				t.Errorf("when Redis is back: got %q, %v, want where it listens", line, err)
			}
			go func() { _, _ = io.Copy(io.Discard, out) }()
			rest := make(chan string)
			go func() {
				text, _ := io.ReadAll(lines)
				rest <- string(text)
			}()
			if err := stopDaemon(cmd); err != nil {
				t.Errorf("weir serve ended with %v", err)
			}
			if text := <-rest; strings.Contains(text, "trying again") {
				t.Errorf("it says more than once that it tries again: %s", text)
			}
		})
	}
}

func TestStartEndsClearlyWithARedisThatStaysReadOnly(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Do("REPLICAOF", "127.0.0.1", "1")
	cmd := daemonCommand(t, "--http", "127.0.0.1:0", "--engine", "redis://"+redis.Addr, "--engine-wait", "3s")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := waitForEnd(cmd); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("got %v, want exit code 1", err)
	}
	// The first attempt alone may take that long, and then the log has no line before.
	for _, want := range []string{"\nweir: serve: --engine: not ready within 3s: ", "READONLY", "\nhint: name the master, or its Sentinels"} {
		if !strings.Contains("\n"+log.String(), want) {
			t.Errorf("got %s, want …%q…", log.String(), want)
		}
	}
}

func TestTheStateOfTheEngineFollowsRedisWithoutTraffic(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	socket := filepath.Join(t.TempDir(), "admin")
	url := startDaemon(t, "--http", "127.0.0.1:0", "--engine", "redis://"+redis.Addr, "--admin", "unix:"+socket)
	redis.Do("REPLICAOF", "127.0.0.1", "1")
	const reason = "Redis refuses writes: it is a replica, or lacks replicas"
	// The engine dials again in between, and the last failure may be that of a call on a closed connection.
	awaitReadyz(t, socketClient(t, socket), "http://localhost/readyz?engine=1", http.StatusServiceUnavailable, reason)
	awaitReadyz(t, http.DefaultClient, url+"/readyz?engine=1", http.StatusServiceUnavailable, "the engine does not decide; the admin port tells why")
	redis.Do("REPLICAOF", "NO", "ONE")
	awaitReadyz(t, http.DefaultClient, url+"/readyz?engine=1", http.StatusOK, "")
}

// awaitReadyz repeats a request until it gets the wanted status and a text in the
// body.
func awaitReadyz(t *testing.T, client *http.Client, url string, want int, text string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // between two requests
		response, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err == nil && response.StatusCode == want && strings.Contains(string(body), text) {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: got %d %s, and no %d with %q within %v", url, response.StatusCode, body, want, text, patience)
		}
	}
}

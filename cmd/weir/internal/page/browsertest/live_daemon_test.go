package browsertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/testprocess"
)

// liveDaemon is a weir serve, with a tunnel to its admin socket like that of ssh -L.
type liveDaemon struct {
	t                   *testing.T
	traffic, page       string // URLs
	socket, rules, logs string // files
}

const liveRules = `
rules:
  - {name: login, match: {path: /login}, key: client, limit: 2/h, candidate: 1/h}
  - {name: api, match: {path: /api/*}, key: client, limit: 1000/s}
  - {name: quiet, match: {path: /quiet}, key: client, limit: 1/h}
`

// startLive starts a daemon with rules in a file.
func startLive(t *testing.T, args ...string) *liveDaemon {
	t.Helper()
	folder := t.TempDir()
	d := &liveDaemon{t: t, socket: filepath.Join(folder, "admin"), rules: filepath.Join(folder, "rules.yaml"), logs: filepath.Join(folder, "log")}
	d.write(liveRules)
	d.start(append([]string{"--config", d.rules}, args...)...)
	return d
}

// start starts the daemon. Its page is at the end of a tunnel to its socket.
func (d *liveDaemon) start(args ...string) {
	d.t.Helper()
	logs, err := os.Create(d.logs)
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := weirCommand(d.t, append([]string{"serve", "--http", "127.0.0.1:0", "--admin", "unix:" + d.socket}, args...)...)
	cmd.Stderr, cmd.Dir = logs, filepath.Dir(d.socket)
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	process, err := testprocess.Start(cmd)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(process.End)
	for lines := bufio.NewScanner(out); d.traffic == "" && lines.Scan(); {
		d.traffic, _ = strings.CutPrefix(lines.Text(), "weir listens on ")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if d.traffic == "" {
		text, _ := os.ReadFile(d.logs)
		d.t.Fatalf("weir serve did not say where it listens: %s", text)
	}
	d.page = "http://" + tunnel(d.t, d.socket) + "/"
}

// weirCommand returns a command of weir.
func weirCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args = append([]string{"weir"}, args...)
	return cmd
}

// tunnel leads from a port of this machine to a socket, and returns the address.
func tunnel(t *testing.T, socket string) string {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = on.Close() })
	go func() {
		for {
			near, err := on.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", socket)
			if err != nil {
				_ = near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
		}
	}()
	return on.Addr().String()
}

// behind serves a URL below a prefix, as a gateway does, and returns the address of the page there.
func behind(t *testing.T, prefix, to string) string {
	t.Helper()
	at, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gateway := &http.Server{Handler: http.StripPrefix(strings.TrimSuffix(prefix, "/"), httputil.NewSingleHostReverseProxy(at))}
	t.Cleanup(func() { _ = gateway.Close() })
	go func() { _ = gateway.Serve(on) }()
	return "http://" + on.Addr().String() + prefix
}

func (d *liveDaemon) write(text string) {
	d.t.Helper()
	if err := os.WriteFile(d.rules+".new", []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(d.rules+".new", d.rules); err != nil {
		d.t.Fatal(err)
	}
}

// ctl runs weir ctl on the daemon.
func (d *liveDaemon) ctl(args ...string) string {
	d.t.Helper()
	out, err := weirCommand(d.t, append([]string{"ctl", "--admin", "unix:" + d.socket}, args...)...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("weir ctl %q: %v: %s", args, err, out)
	}
	return string(out)
}

// take asks for one unit, and reports whether it was admitted.
func (d *liveDaemon) take(request any) bool {
	d.t.Helper()
	body, _ := json.Marshal(request)
	response, err := http.Post(d.traffic+"/v1/take", "application/json", bytes.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct{ Allowed *bool }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Allowed == nil {
		d.t.Fatalf("take %s: got %s, %v", body, response.Status, err)
	}
	return *answer.Allowed
}

// client is a request by attributes.
func client(path, address string) any {
	return map[string]any{"attributes": map[string]string{"path": path, "client": address}}
}

// load asks until the test ends.
func (d *liveDaemon) load() {
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			body, _ := json.Marshal(client([]string{"/api/a", "/login"}[i%10/9], fmt.Sprintf("203.0.113.%d", i*i%17)))
			if response, err := http.Post(d.traffic+"/v1/take", "application/json", bytes.NewReader(body)); err == nil {
				_ = response.Body.Close()
			}
		}
	})
	d.t.Cleanup(func() { close(stop); done.Wait() })
}

// log returns what the daemon has logged.
func (d *liveDaemon) log() string {
	d.t.Helper()
	text, err := os.ReadFile(d.logs)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", testprocess.FreePort(t))
}

package backtest_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/program"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/gatewaytest"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/testprocess"
)

// TestMain lets the tests start this binary as the real program, under the name weir.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weir": func() { os.Exit(program.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }})
}

const nginxRules = `rules:
  - {name: login, match: {method: POST, path: /login}, key: client, limit: 3/m}
  - {name: client, match: any, key: client, limit: token bucket 2/s burst 6}
  - {name: all, match: {path: /api/*}, limit: fixed window 20/10s}
  - {name: banned, match: {client: 127.0.0.9}, deny: true}
`

// nginxSite asks the daemon about each request, and writes three logs of them.
const nginxSite = `log_format milliseconds '$remote_addr [$msec] "$request" $status $request_time';
log_format seconds '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for"';
server {
	listen %s;
	access_log milliseconds.log milliseconds;
	access_log seconds.log seconds;
	location / {
		auth_request /weir;
		proxy_pass http://%s;
	}
	location = /weir {
		internal;
		proxy_pass http://%s/v1/check;
		proxy_pass_request_body off;
		proxy_set_header Host localhost;
		proxy_set_header Content-Length "";
		proxy_set_header X-Forwarded-Method $request_method;
		proxy_set_header X-Forwarded-Uri $request_uri;
		proxy_set_header X-Forwarded-Host $host;
		proxy_set_header X-Forwarded-For $remote_addr;
	}
}
`

// serveRecording starts a daemon. stop ends it, so that the recording is whole.
func serveRecording(t *testing.T, config, record string) (addr string, stop func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), exe)
	cmd.Args = []string{"weir", "serve", "--config", config, "--record", record, "--check-trust", "127.0.0.1", "--check-status", "403", "--http", "127.0.0.1:0"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	if _, err := fmt.Fscanf(out, "weir listens on http://%s\n", &addr); err != nil {
		t.Fatalf("weir prints no address: %v", err)
	}
	return addr, stop
}

// sendTraffic sends requests of several clients, some of them at once.
func sendTraffic(t *testing.T, addr string) {
	var clients sync.WaitGroup
	for i, from := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.9"} {
		random := randtest.New(uint64(i))
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}, Timeout: time.Minute}
		clients.Go(func() {
			for range 60 {
				r, _ := http.NewRequest(pick(random, "GET", "POST"), "http://"+addr+pick(random, "/login", "/api/x?y", "/"), nil)
				response, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				_ = response.Body.Close()
				time.Sleep(time.Duration(random.Int64N(int64(pick(random, time.Millisecond, 100*time.Millisecond, 400*time.Millisecond)))))
			}
		})
	}
	clients.Wait()
}

// A daemon behind nginx decides real traffic. Its recording gives each of its decisions, except where the time from a decision to
// its stamp matters. The logs of nginx give each one that is
// sure: more of them in milliseconds with the time of requests than in seconds without.
func TestLogsOfNginxGiveTheSureDecisionsOfADaemon(t *testing.T) {
	folder := t.TempDir()
	file, record := filepath.Join(folder, "weir.yaml"), filepath.Join(folder, "record.jsonl")
	if err := os.WriteFile(file, []byte(nginxRules), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := rulefiles.Load(rulefiles.Options{}, file)
	if err != nil {
		t.Fatal(err)
	}
	daemon, stop := serveRecording(t, file, record)
	pages := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer pages.Close()
	addr := "127.0.0.1:" + strconv.Itoa(testprocess.FreePort(t))
	site := fmt.Sprintf(nginxSite, addr, pages.Listener.Addr(), daemon)
	for _, name := range []string{"milliseconds", "seconds"} {
		site = strings.Replace(site, "access_log "+name+".log", "access_log "+filepath.Join(folder, name), 1)
	}
	gatewaytest.Nginx(t, addr, site)
	sendTraffic(t, addr)
	stop()

	checkRecording(t, config, record)
	sureIn := map[string]int{}
	for _, c := range []struct{ name, format string }{
		{"milliseconds", `$remote_addr [$msec] "$request" $status $request_time`}, {"seconds", ""},
	} {
		text, err := os.ReadFile(filepath.Join(folder, c.name))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) == 0 {
			t.Fatalf("%s: nginx has logged nothing", c.name)
		}
		sureIn[c.name] = checkLog(t, config, c.name, string(text), c.format)
	}
	if sureIn["seconds"] < 60 || sureIn["milliseconds"] <= sureIn["seconds"] {
		t.Errorf("of 240 decisions, %v are sure, want at least 60 of refused networks in seconds, and more in milliseconds", sureIn)
	}
}

// busyStamp is how long after its decision a busy machine may stamp a line.
const busyStamp = 100 * time.Millisecond

// checkRecording checks that a recording gives each decision that it names, except some that an earlier instant would change.
func checkRecording(t *testing.T, config *rules.Config, record string) {
	t.Helper()
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	var want []bool
	last := ""
	for line := range strings.Lines(string(text)) {
		at, rest, _ := strings.Cut(line, ",")
		if at != last {
			want = append(want, strings.Contains(rest, `"allowed":true`))
		}
		last = at
	}
	traffic := trafficOf(t, config, string(text), "", backtest.DefaultLongest)
	all, err := traffic.Decisions(0)
	if err != nil {
		t.Fatal(err)
	}
	traffic.Widen(busyStamp)
	earlier, err := traffic.Decisions(0)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(want) || len(want) != 180 {
		t.Fatalf("the recording has %d calls, and %d are decided, want 180 of three clients", len(want), len(all))
	}
	otherwise := 0
	for i, got := range all {
		switch {
		case got.Open || got.Allowed != want[i] && earlier[i].Sure:
			t.Errorf("recorded call %d: got %+v, want %v", i, got, want[i])
		case got.Allowed != want[i]:
			otherwise++
		}
	}
	if otherwise > len(all)/10 {
		t.Errorf("%d of %d decisions are not as recorded", otherwise, len(all))
	}
}

// checkLog checks the sure decisions of a log, and returns their number.
func checkLog(t *testing.T, config *rules.Config, name, text, format string) (sure int) {
	t.Helper()
	all := decisionsOf(t, config, text, format, backtest.DefaultLongest)
	i := 0
	for line := range strings.Lines(text) {
		want := !strings.Contains(line, `" 403 `)
		switch got := all[i]; {
		case got.Open:
			t.Errorf("%s:%d is undecided: %s", name, i+1, line)
		case got.Sure && got.Allowed != want:
			t.Errorf("%s:%d: got %v, want %v: %s", name, i+1, got.Allowed, want, line)
		case got.Sure:
			sure++
		}
		i++
	}
	return sure
}

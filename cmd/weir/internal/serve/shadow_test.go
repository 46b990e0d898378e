package serve

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirflow/weir/internal/redistest"
)

const watchedRules = `rules:
  - {name: login, match: {path: /login}, key: client, limit: 2/d}
  - {name: user, match: {descriptor.user: "*"}, key: descriptor.user, limit: 2/d}
`

// watching is a daemon that runs with --shadow, and may be started again.
type watching struct {
	t            *testing.T
	args         []string
	admin, envoy string // sockets
	cmd          *exec.Cmd
	url          string
	log          *output
}

func startWatching(t *testing.T, args ...string) *watching {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "weir.yaml")
	if err := os.WriteFile(file, []byte(watchedRules), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &watching{t: t, admin: filepath.Join(folder, "admin"), envoy: filepath.Join(folder, "grpc")}
	d.args = append([]string{"--shadow", "--config", file, "--http", "127.0.0.1:0", "--admin", "unix:" + d.admin, "--grpc", "unix:" + d.envoy}, args...)
	d.start()
	t.Cleanup(func() { _ = stopDaemon(d.cmd) })
	return d
}

func (d *watching) start() {
	d.t.Helper()
	d.cmd, d.log = daemonCommand(d.t, d.args...), &output{}
	d.cmd.Stderr = d.log
	d.url = startAndFindURL(d.t, d.cmd)
}

func (d *watching) restart() {
	d.t.Helper()
	if err := stopDaemon(d.cmd); err != nil {
		d.t.Fatalf("the daemon ended with %v: %s", err, d.log)
	}
	d.start()
}

// login returns whether a login is admitted.
func (d *watching) login() bool {
	d.t.Helper()
	return strings.Contains(postTake(d.t, d.url, `{"attributes":{"path":"/login","client":"203.0.113.7"}}`), `"allowed":true`)
}

// ask asks as Envoy does.
func (d *watching) ask(user string) ratelimit.RateLimitResponse_Code {
	d.t.Helper()
	conn, err := grpc.NewClient("unix:"+d.envoy, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	a, err := ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(d.t.Context(), &ratelimit.RateLimitRequest{Domain: "d", Descriptors: descriptorsOf(user)})
	if err != nil {
		d.t.Fatal(err)
	}
	return a.OverallCode
}

// post asks the admin port, as weir ctl does.
func (d *watching) post(what, body string) string {
	d.t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://localhost/v1/admin/"+what, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Weir-Request", "test")
	r.Header.Set("Content-Type", "application/json")
	a, err := socketClient(d.t, d.admin).Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		d.t.Fatalf("%s %s: got %s %s %v", what, body, a.Status, text, err)
	}
	return string(text)
}

// set changes the mode of a rule.
func (d *watching) set(rule, mode string) {
	d.t.Helper()
	d.post("mode", fmt.Sprintf(`{"rule":%q,"mode":%q}`, rule, mode))
}

// counted waits until a shadow, which decides beside the calls, has counted all units of a key.
func (d *watching) counted(rule, key string) {
	d.t.Helper()
	await(d.t, "the shadow "+rule+" has counted", func() bool {
		return strings.Contains(d.post("peek", fmt.Sprintf(`{"rule":%q,"key":%q}`, rule, key)), `"remaining":0`)
	})
}

// await asks until it gets what it wants. Another daemon follows within a second, unless the machine is busy.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(20 * time.Millisecond) { // between two questions
		if time.Since(began) > 30*time.Second {
			t.Fatalf("never: %s", what)
		}
	}
}

// weir ctl enforce and shadow at one daemon are in force at every daemon on the same Redis, for every front, over restarts, and are audited.
func TestTheModeOfARuleIsThatOfAllDaemonsOnARedis(t *testing.T) {
	server := redistest.Start(t)
	onRedis := []string{"--engine", "redis://" + server.Addr, "--deadline", "5s"} // a busy machine must not look like an outage
	one, other := startWatching(t, onRedis...), startWatching(t, onRedis...)
	for range 3 {
		if !one.login() || !other.login() || one.ask("ann") != ratelimit.RateLimitResponse_OK || other.ask("ann") != ratelimit.RateLimitResponse_OK {
			t.Fatal("a daemon with --shadow refuses")
		}
	}
	one.counted("login", "203.0.113.7")
	one.counted("user", "ann")
	one.set("login", "enforced")
	if one.login() {
		t.Error("the daemon that enforces a rule admits what its shadow has counted")
	}
	await(t, "the other daemon enforces login, too", func() bool { return !other.login() })
	if got := other.ask("ann"); got != ratelimit.RateLimitResponse_OK {
		t.Errorf("Envoy gets %v by a rule that is a shadow still", got)
	}
	other.set("user", "enforced")
	await(t, "the first daemon refuses Envoy", func() bool { return one.ask("ann") == ratelimit.RateLimitResponse_OVER_LIMIT })
	for _, want := range []string{`msg=audit who="admin socket"`, "what=mode rule=login", `before="\"shadow\"" after="\"enforced\""`} {
		if !strings.Contains(one.log.String(), want) {
			t.Errorf("the log of the daemon that was asked lacks %s:\n%s", want, one.log)
		}
	}
	if want := `level=WARN msg="a rule is enforced now" rule=login`; !strings.Contains(other.log.String(), want) {
		t.Errorf("the log of the other daemon lacks %s:\n%s", want, other.log)
	}
	other.restart()
	if other.login() || other.ask("ann") != ratelimit.RateLimitResponse_OVER_LIMIT {
		t.Error("a restart has made rules shadows again")
	}
	other.set("login", "shadow")
	await(t, "the first daemon watches again", one.login)
}

// Shadows count what Envoy asks, and refuse it nothing, over gRPC and as JSON.
func TestEnvoyIsRefusedNothingByADaemonThatOnlyWatches(t *testing.T) {
	d := startWatching(t)
	for range 5 {
		if got := d.ask("ann"); got != ratelimit.RateLimitResponse_OK {
			t.Errorf("Envoy gets %v", got)
		}
		answer, err := http.Post(d.url+"/json", "application/json", strings.NewReader(`{"domain":"d","descriptors":[{"entries":[{"key":"user","value":"ann"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("as JSON Envoy gets %s", answer.Status)
		}
	}
	d.counted("user", "ann")
	d.set("user", "enforced")
	if got := d.ask("ann"); got != ratelimit.RateLimitResponse_OVER_LIMIT {
		t.Errorf("Envoy gets %v by an enforced rule that has counted ten of two", got)
	}
	d.set("user", "shadow")
	if got := d.ask("ann"); got != ratelimit.RateLimitResponse_OK {
		t.Errorf("Envoy gets %v by a rule that only watches again", got)
	}
}

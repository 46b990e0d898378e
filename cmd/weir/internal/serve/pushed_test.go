package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir/cmd/weir/internal/xdstest"
	"github.com/weirflow/weir/internal/redistest"
)

// pushedDaemon is a daemon whose rules a control plane pushes.
type pushedDaemon struct {
	rls.RateLimitServiceClient
	t       *testing.T
	url     string
	log     *output
	admin   *http.Client
	adminAt string
	stop    func()
}

// output is what a program writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// startPushed starts a daemon with the environment of Envoy Gateway's pod, as far as it concerns rules.
func startPushed(t *testing.T, server string, environment []string, args ...string) *pushedDaemon {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "grpc")
	admin := filepath.Join(t.TempDir(), "admin")
	cmd := daemonCommand(t, append([]string{"--compat", "envoyproxy", "--http", "127.0.0.1:0", "--grpc", "unix:" + socket, "--admin", "unix:" + admin}, args...)...)
	cmd.Env = append(append(os.Environ(), "CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL="+server, "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit",
		"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=50ms", "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=50ms", "XDS_CLIENT_BACKOFF_MAX_INTERVAL=100ms"), environment...)
	d := &pushedDaemon{t: t, log: &output{}, admin: socketClient(t, admin), adminAt: "unix:" + admin}
	cmd.Stderr = d.log
	d.stop = sync.OnceFunc(func() {
		if err := stopDaemon(cmd); err != nil {
			t.Errorf("weir serve ended with %v: %s", err, d.log)
		}
	})
	t.Cleanup(d.stop)
	d.url = startAndFindURL(t, cmd)
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	d.RateLimitServiceClient = rls.NewRateLimitServiceClient(conn)
	return d
}

// ask asks for one hit of a rule of a route, as Envoy does for Envoy Gateway, and returns the code of the call.
func (d *pushedDaemon) ask(domain, route, rule, value string) (string, *rls.RateLimitResponse) {
	d.t.Helper()
	key := xdstest.RouteKey(route)
	ctx, cancel := context.WithTimeout(d.t.Context(), 10*time.Second)
	defer cancel()
	a, err := d.ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: domain, Descriptors: []*ratelimit.RateLimitDescriptor{
		{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: key, Value: key}, {Key: rule, Value: value}}}}})
	if err != nil {
		return status.Code(err).String(), nil
	}
	return a.OverallCode.String(), a
}

// codes asks n times, and returns the codes.
func (d *pushedDaemon) codes(n int, domain, route, value string) string {
	d.t.Helper()
	var all []string
	for range n {
		code, _ := d.ask(domain, route, "rule-0-match-0", value)
		all = append(all, code)
	}
	return strings.Join(all, " ")
}

func (d *pushedDaemon) want(what, got, want string) {
	d.t.Helper()
	if got != want {
		d.t.Errorf("%s: got %s, want %s\nthe log:\n%s", what, got, want, d.log)
	}
}

// healthcheck returns the status of the probe.
func (d *pushedDaemon) healthcheck() int {
	d.t.Helper()
	response, err := http.Get(d.url + "/healthcheck")
	if err != nil {
		d.t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func (d *pushedDaemon) awaitLog(text string) {
	d.t.Helper()
	for end := time.Now().Add(xdstest.Patience); !strings.Contains(d.log.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("the log lacks %q:\n%s", text, d.log)
		}
	}
}

func hour(key string, count uint32) *pb.RateLimitDescriptor {
	return xdstest.Limit(key, "", count, pb.RateLimitUnit_HOUR)
}

// gatewayListener is the resource of a listener with a route, of one limit.
func gatewayListener(domain string, count uint32) *pb.RateLimitConfig {
	return xdstest.Resource(domain, xdstest.Route("backend", hour("rule-0-match-0", count)))
}

func TestPushedRulesDecideChangeAndGo(t *testing.T) {
	t.Parallel()
	plane := xdstest.Start(t, "envoy-ratelimit")
	d := startPushed(t, plane.Addr, nil)
	if got := d.healthcheck(); got != http.StatusInternalServerError {
		t.Errorf("the probe before the first rules: got %d, want 500", got)
	}
	d.want("before the first rules", d.codes(1, "default/eg/http", "backend", "u"), codes.Unavailable.String())

	plane.Push("1", gatewayListener("default/eg/http", 3), gatewayListener("default/eg/https", 5))
	plane.Accepted("1")
	if got := d.healthcheck(); got != http.StatusOK {
		t.Errorf("the probe after the first rules: got %d, want 200", got)
	}
	d.want("3 an hour", d.codes(4, "default/eg/http", "backend", "u"), "OK OK OK OVER_LIMIT")
	d.want("another value", d.codes(1, "default/eg/http", "backend", "v"), "OK")

	plane.Push("2", gatewayListener("default/eg/http", 5), gatewayListener("default/eg/https", 5))
	plane.Accepted("2")
	d.want("5 an hour, of which the refused request has counted one", d.codes(2, "default/eg/http", "backend", "u"), "OK OVER_LIMIT")

	bad := xdstest.Resource("default/eg/http", xdstest.Route("backend", xdstest.Limit("rule-0-match-0", "", 1, pb.RateLimitUnit_UNKNOWN)))
	plane.Push("3", bad, gatewayListener("default/eg/https", 1))
	if r := plane.Refused(); r.VersionInfo != "2" || !strings.Contains(r.ErrorDetail.GetMessage(), "default/eg/http: rule-0-match-0: the unit") {
		t.Errorf("got the refusal %v, want one of the resource, which names version 2", r)
	}
	d.want("the bad resource", d.codes(2, "default/eg/http", "backend", "w"), "OK OK")
	d.want("the good one beside it", d.codes(2, "default/eg/https", "backend", "w"), "OK OVER_LIMIT")
	d.awaitLog("its version 2 stays in force")

	plane.Push("4", gatewayListener("default/eg/http", 5))
	plane.Accepted("4")
	d.want("the removed resource", d.codes(3, "default/eg/https", "backend", "w"), "OK OK OK")
	plane.Push("5")
	plane.Accepted("5")
	d.want("without any rules", d.codes(2, "default/eg/http", "backend", "u"), "OK OK")
}

func TestPushedRulesStayWhileTheControlPlaneIsAway(t *testing.T) {
	t.Parallel()
	plane := xdstest.Start(t, "envoy-ratelimit")
	state := filepath.Join(t.TempDir(), "weir.state")
	d := startPushed(t, plane.Addr, nil, "--state", state)
	plane.Push("1", gatewayListener("default/eg/http", 3))
	plane.Accepted("1")
	d.want("with the control plane", d.codes(2, "default/eg/http", "backend", "u"), "OK OK")
	plane.Stop()
	d.awaitLog("the control plane is away, and the rules in force stay")
	d.want("without it", d.codes(2, "default/eg/http", "backend", "u"), "OK OVER_LIMIT")
	d.stop()

	d = startPushed(t, plane.Addr, nil, "--state", state)
	if got := d.healthcheck(); got != http.StatusOK {
		t.Errorf("the probe with restored rules: got %d, want 200", got)
	}
	d.want("after a start without it", d.codes(1, "default/eg/http", "backend", "u"), "OVER_LIMIT")
	d.want("after a start without it", d.codes(4, "default/eg/http", "backend", "v"), "OK OK OK OVER_LIMIT")
	d.awaitLog("rules restored that a control plane pushed before")

	plane.Push("2", gatewayListener("default/eg/http", 10))
	plane.Again()
	plane.Accepted("2")
	d.want("with the control plane again", d.codes(1, "default/eg/http", "backend", "v"), "OK")
}

func TestADamagedFileOfPushedRulesDelaysNothing(t *testing.T) {
	t.Parallel()
	plane := xdstest.Start(t, "envoy-ratelimit")
	state := filepath.Join(t.TempDir(), "weir.state")
	writeFile(t, state+".xds", `{"version": "1", "resources"`)
	d := startPushed(t, plane.Addr, nil, "--state", state)
	d.awaitLog("are not restored")
	plane.Push("2", gatewayListener("default/eg/http", 1))
	plane.Accepted("2")
	d.want("after a push", d.codes(2, "default/eg/http", "backend", "u"), "OK OVER_LIMIT")
	content, err := os.ReadFile(state + ".xds")
	if err != nil || !json.Valid(content) {
		t.Errorf("the file is %q, %v, want the rules that were pushed", content, err)
	}
}

// Envoy Gateway sets this variable, so that the pod is ready before the first rules. Calls are errors until then, as with
// envoyproxy/ratelimit, and the failure mode of Envoy decides.
func TestADaemonMayBeReadyBeforeItsFirstRules(t *testing.T) {
	t.Parallel()
	plane := xdstest.Start(t, "envoy-ratelimit")
	for more, want := range map[string]int{"A=": http.StatusOK, "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true": http.StatusInternalServerError} {
		d := startPushed(t, plane.Addr, []string{"FORCE_START_WITHOUT_INITIAL_CONFIG=true", more})
		if got := d.healthcheck(); got != want {
			t.Errorf("%s: got %d, want %d", more, got, want)
		}
		d.want(more, d.codes(1, "default/eg/http", "backend", "u"), codes.Unavailable.String())
	}
}

func TestTheAdminPortSaysWhichPushedRulesAreInForce(t *testing.T) {
	t.Parallel()
	plane := xdstest.Start(t, "envoy-ratelimit")
	d := startPushed(t, plane.Addr, nil)
	plane.Push("7", gatewayListener("default/eg/http", 3))
	plane.Accepted("7")
	bad := xdstest.Resource("bad", xdstest.Limit("", "", 1, pb.RateLimitUnit_DAY))
	plane.Push("8", gatewayListener("default/eg/http", 3), bad)
	plane.Refused()
	text := getText(t, d.admin, "http://localhost/v1/admin/rules")
	for _, want := range []string{
		`"rule":"backend/rule/0.rule-0-match-0"`, `"text":"default/eg/http.` + xdstest.RouteKey("backend"), `"version":"8"`, `"connected":true`, `"node":"envoy-ratelimit"`,
		`"server":"` + plane.Addr + `"`, `"bad":[{"name":"bad","why":"bad: the descriptor has no key"}]`, `"pushed":"2`, `"accepted":1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/v1/admin/rules lacks %s: %s", want, text)
		}
	}
	metrics := getText(t, d.admin, "http://localhost/metrics")
	for _, want := range []string{"weir_control_plane_connected 1\n", "weir_pushed_resources 1\n", "weir_pushed_resources_refused 1\n", "weir_pushed_timestamp_seconds 1", "weir_rules 1\n", `weir_control_plane_answers_total{result="accepted"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s:\n%s", want, metrics)
		}
	}
	out := d.ctl("ctl", "rules", "--admin", d.adminAt)
	for _, want := range []string{"backend/rule/0.rule-0-match-0, default/eg/http\n", "version 8", "1 resource", "bad: the descriptor has no key"} {
		if !strings.Contains(out, want) {
			t.Errorf("weir ctl rules lacks %q:\n%s", want, out)
		}
	}
}

// ctl runs a command of the program beside the daemon.
func (d *pushedDaemon) ctl(words ...string) string {
	d.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args = append([]string{"weir"}, words...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Errorf("weir %q: %v\n%s", words, err, out)
	}
	return string(out)
}

// Two daemons on a Redis count together, whatever each calls a limit, and a file beside --state has the rules alone.
func TestPushedRulesCountOnASharedEngine(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	plane := xdstest.Start(t, "envoy-ratelimit")
	plane.Push("1", gatewayListener("default/eg/http", 4), gatewayListener("default/eg/https", 4))
	engine := []string{"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis.Addr}
	state := filepath.Join(t.TempDir(), "weir.state")
	one, two := startPushed(t, plane.Addr, engine, "--state", state, "--deadline", "5s"), startPushed(t, plane.Addr, engine, "--deadline", "5s")
	plane.Accepted("1")
	plane.Accepted("1") // by both
	one.want("the first daemon", one.codes(2, "default/eg/http", "backend", "u"), "OK OK")
	two.want("the second daemon", two.codes(3, "default/eg/http", "backend", "u"), "OK OK OVER_LIMIT")
	one.stop()
	if files, err := filepath.Glob(state + "*"); err != nil || len(files) != 2 { // and the lock
		t.Errorf("beside --state are %q, %v, want the pushed rules and the lock", files, err)
	}
	plane.Stop()
	one = startPushed(t, plane.Addr, engine, "--state", state, "--deadline", "5s")
	one.want("after a start without the control plane", one.codes(1, "default/eg/http", "backend", "u"), "OVER_LIMIT")
}

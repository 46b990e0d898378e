package serve

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/weirflow/weir/cmd/weir/internal/xdstest"
	"github.com/weirflow/weir/internal/testprocess"
)

// placed is a daemon that is called as ratelimit, with all variables of Envoy Gateway's pod.
type placed struct {
	*pushedDaemon
	ports map[string]int
}

// secretVolume makes a folder as Kubernetes mounts a secret: links to the files of the current version.
func secretVolume(t *testing.T, from string) string {
	t.Helper()
	volume := t.TempDir()
	if err := os.Mkdir(filepath.Join(volume, "..2026"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..2026", filepath.Join(volume, "..data")); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"tls.crt": "server.pem", "tls.key": "server.key", "ca.crt": "ca.pem"} {
		content, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(volume, "..2026", name), content, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("..data/"+name, filepath.Join(volume, name)); err != nil {
			t.Fatal(err)
		}
	}
	return volume
}

// startInPlace starts the daemon as the pod does. Only the ports differ, because tests share a machine.
func startInPlace(t *testing.T, plane, certificates string, more ...string) *placed {
	t.Helper()
	d := &placed{&pushedDaemon{t: t, log: &output{}}, map[string]int{}}
	for _, name := range []string{"http", "grpc", "prometheus", "debug"} {
		d.ports[name] = testprocess.FreePort(t)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args = []string{"/bin/ratelimit"}
	in := func(name string) string { return filepath.Join(certificates, name) }
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + t.TempDir(),
		"RUNTIME_ROOT=/data", "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_IGNOREDOTFILES=true", "RUNTIME_WATCH_ROOT=false", "LOG_LEVEL=info", "USE_STATSD=false",
		"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL=" + plane, "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit",
		"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=" + in("tls.crt"), "GRPC_SERVER_TLS_KEY=" + in("tls.key"), "GRPC_SERVER_TLS_CA_CERT=" + in("ca.crt"),
		"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=" + in("tls.crt"), "CONFIG_GRPC_XDS_CLIENT_TLS_KEY=" + in("tls.key"), "CONFIG_GRPC_XDS_SERVER_TLS_CACERT=" + in("ca.crt"),
		"FORCE_START_WITHOUT_INITIAL_CONFIG=true", "USE_PROMETHEUS=true", fmt.Sprintf("PROMETHEUS_ADDR=:%d", d.ports["prometheus"]), "PROMETHEUS_MAPPER_YAML=/etc/statsd-exporter/conf.yaml",
		fmt.Sprintf("PORT=%d", d.ports["http"]), fmt.Sprintf("GRPC_PORT=%d", d.ports["grpc"]), fmt.Sprintf("DEBUG_PORT=%d", d.ports["debug"]),
		"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=50ms", "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=50ms", "XDS_CLIENT_BACKOFF_MAX_INTERVAL=100ms",
	}, more...)
	cmd.Stderr = d.log
	d.stop = sync.OnceFunc(func() {
		if err := stopDaemon(cmd); err != nil {
			t.Errorf("ratelimit ended with %v: %s", err, d.log)
		}
	})
	t.Cleanup(d.stop)
	startAndFindURL(t, cmd)
	return d
}

func (d *placed) get(host, port, path string) (int, string) {
	d.t.Helper()
	response, err := http.Get("http://" + net.JoinHostPort(host, strconv.Itoa(d.ports[port])) + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// outside returns an address of this machine that is not loopback.
func outside(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return "127.0.0.2" // a machine without a network: what listens on all addresses listens there, too
}

// Envoy Gateway's pod runs /bin/ratelimit with these variables and probes it over plain HTTP; neither can be chosen.
func TestTheProgramStandsInThePlaceOfRatelimit(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	root := (&authority{t: t}).sign(folder, "ca")
	root.sign(folder, "server")
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "server.pem"), filepath.Join(folder, "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(text)
	mutual := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: authorities, ClientAuth: tls.RequireAndVerifyClientCert})
	plane := xdstest.Start(t, "envoy-ratelimit", grpc.Creds(mutual))
	plane.Push("1", gatewayListener("default/eg/http", 2))
	d := startInPlace(t, plane.Addr, secretVolume(t, folder))
	plane.Accepted("1")

	away := outside(t)
	for _, c := range []struct {
		host, port, path string
		status           int
		text             string
	}{
		{away, "http", "/healthcheck", 200, "OK"},
		{away, "http", "/v1/stats", 401, "the rest needs a token"},
		{away, "http", "/v1/take", 401, "the rest needs a token"},
		{away, "http", "/readyz", 401, "the rest needs a token"},
		{away, "http", "/stats", 401, "the rest needs a token"},
		{away, "prometheus", "/metrics", 200, "weir_control_plane_connected 1\n"},
		{"127.0.0.1", "debug", "/rlconfig", 200, "rule-0-match-0: unit=HOUR requests_per_unit=2, shadow_mode: false, quota_mode: false\n"},
		{"127.0.0.1", "debug", "/stats", 200, "ratelimit.service.config_load_success: 1\n"},
		{away, "debug", "/stats", 0, "refused"},
	} {
		if status, text := d.get(c.host, c.port, c.path); status != c.status || !strings.Contains(text, c.text) {
			t.Errorf("%s %s of %s: got %d %q, want %d %q", c.port, c.path, c.host, status, text, c.status, c.text)
		}
	}
	call := fmt.Sprintf(`{"domain":"default/eg/http","descriptors":[{"entries":[{"key":%[1]q,"value":%[1]q},{"key":"rule-0-match-0","value":"j"}]}]}`, xdstest.RouteKey("backend"))
	response, err := http.Post(fmt.Sprintf("http://%s:%d/json", away, d.ports["http"]), "application/json", bytes.NewReader([]byte(call)))
	if err != nil || response.StatusCode != 200 {
		t.Errorf("/json: %v, %v, want 200", response, err)
	}

	conn, err := grpc.NewClient(fmt.Sprintf("%s:%d", away, d.ports["grpc"]), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: authorities, ServerName: "127.0.0.1"})))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	d.RateLimitServiceClient = rls.NewRateLimitServiceClient(conn)
	d.want("2 an hour, over TLS", d.codes(3, "default/eg/http", "backend", "u"), "OK OK OVER_LIMIT")
	for _, line := range []string{"called as ratelimit"} {
		if n := strings.Count(d.log.String(), line); n != 1 {
			t.Errorf("the log has %q %d times, want once:\n%s", line, n, d.log)
		}
	}
	for _, line := range []string{"can read or change the key", "RUNTIME_", "GRPC_SERVER_TLS_CA_CERT"} {
		if strings.Contains(d.log.String(), line) {
			t.Errorf("the log has %q:\n%s", line, d.log)
		}
	}
}

// The addresses are those of the original only under its name.
func TestOnlyUnderItsNameTheProgramListensWhereRatelimitDoes(t *testing.T) {
	t.Parallel()
	port := testprocess.FreePort(t)
	cmd := daemonCommand(t, "--compat", "envoyproxy")
	cmd.Env = append(os.Environ(), "CONFIG_TYPE=GRPC_XDS_SOTW", "HOST=0.0.0.0", fmt.Sprintf("PORT=%d", port), "GRPC_PORT=0")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "other machines can reach this address") {
		t.Errorf("got %v: %s, want an error about the address", err, out)
	}
}

// Envoy sends the trace of a request with its call. The variables are those of Envoy Gateway's telemetry of the service.
func TestCallsOfSampledTracesAreSpansOfTheNamedService(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	defer collector.Close()
	plane := xdstest.Start(t, "envoy-ratelimit")
	d := startPushed(t, plane.Addr, []string{"TRACING_ENABLED=true", "TRACING_SERVICE_NAME=limits", "TRACING_SERVICE_INSTANCE_ID=pod-1", "TRACING_SAMPLING_RATE=1", "OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL})
	plane.Push("1", gatewayListener("default/eg/http", 2))
	plane.Accepted("1")
	key := xdstest.RouteKey("backend")
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if _, err := d.ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "default/eg/http", Descriptors: []*ratelimit.RateLimitDescriptor{
		{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: key, Value: key}, {Key: "rule-0-match-0", Value: "u"}}}}}); err != nil {
		t.Fatal(err)
	}
	select {
	case body := <-bodies:
		for _, want := range []string{`"envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"`, `"weir record"`, `"backend/rule/0.rule-0-match-0"`, `"0af7651916cd43dd8448eb211c80319c"`, `"stringValue":"limits"`, `"service.instance.id"`} {
			if !strings.Contains(body, want) {
				t.Errorf("got %s, want …%s…", body, want)
			}
		}
	case <-time.After(xdstest.Patience):
		t.Error("no span has come")
	}
}

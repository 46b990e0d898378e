//go:build unix

package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/gatewaytest"
	"github.com/weirflow/weir/internal/testprocess"
)

// A daemon that hangs costs each request at most the timeouts of docs/howto/gateways.md. Then the gateway refuses it, or lets
// it through by the configuration of its section there.
func TestAFrozenDaemonCostsAGatewayItsTimeoutAlone(t *testing.T) {
	for _, gateway := range []struct {
		name, tag string
		start     func(t testing.TB, addr, config string)
		closed    int
		open      func(config string) string
	}{
		{"nginx", "nginx/check", gatewaytest.Nginx, http.StatusInternalServerError, func(config string) string {
			return replaced(t, config, `        proxy_read_timeout [^\n]*\n    }\n`, "        proxy_read_timeout 200ms;\n"+gatewaytest.Documented(t, "nginx/open").Text)
		}},
		{"Caddy", "caddy/check", gatewaytest.Caddy, http.StatusGatewayTimeout, func(string) string { return gatewaytest.Documented(t, "caddy/open").Text }},
		{"HAProxy", "haproxy/check", scripted(t), http.StatusServiceUnavailable, func(config string) string {
			return strings.Replace(config, "unless { var(txn.weir_status) -m int 204 }", "unless { var(txn.weir_status) -m int 204 502:504 }", 1)
		}},
	} {
		documented := gatewaytest.Documented(t, gateway.tag)
		for open, want := range map[bool]int{false: gateway.closed, true: http.StatusOK} {
			t.Run(gateway.name+" open "+strconv.FormatBool(open), func(t *testing.T) {
				config := documented.Text
				if open {
					config = gateway.open(config)
				}
				url, frozen, end := startFrozen(t, documented.Command, config, gateway.start)
				began := time.Now()
				response, body := askFrom(t, "127.0.0.1", url+"/x")
				took := time.Since(began)
				if response.StatusCode != want || open && body != "page" {
					t.Errorf("a daemon that hangs: got %d %q, want %d", response.StatusCode, body, want)
				}
				if took > 5*time.Second { // 0.2 s on a machine that is not busy, and 60 s without timeouts
					t.Errorf("a daemon that hangs costs %v", took)
				}
				t.Logf("%d after %v", response.StatusCode, took)
				frozen(syscall.SIGCONT)
				end()
				response, body = askFrom(t, "127.0.0.1", url+"/x")
				if gone := response.StatusCode; gone != want && (open || gone < 500) || open && body != "page" {
					t.Errorf("a daemon that is gone: got %d %q, want %d", gone, body, want)
				}
			})
		}
	}
}

// startFrozen starts a gateway with a daemon that hangs after its first answer.
func startFrozen(t *testing.T, command []string, config string, start func(testing.TB, string, string)) (url string, signal func(syscall.Signal), end func()) {
	t.Helper()
	addr, daemon, end := serveProcessed(t, "127.0.0.1:0", command...)
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") }))
	t.Cleanup(pages.Close)
	port := strconv.Itoa(testprocess.FreePort(t))
	start(t, "127.0.0.1:"+port, replaceAll(t, config, map[string]string{"127.0.0.1:8080": addr, "127.0.0.1:9000": pages.Listener.Addr().String(), "8000": port}))
	url = "http://127.0.0.1:" + port
	for began := time.Now(); ; { // a busy machine may miss the timeouts
		response, body := askFrom(t, "127.0.0.1", url+"/x")
		if response.StatusCode == http.StatusOK && body == "page" {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("no page before the daemon hangs: %d %q", response.StatusCode, body)
		}
	}
	signal = func(s syscall.Signal) {
		if err := daemon.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	for client := (&http.Client{Timeout: 300 * time.Millisecond}); ; { // until the signal has stopped it
		response, err := client.Get("http://" + addr + "/healthz")
		if err != nil {
			return url, signal, end
		}
		_ = response.Body.Close()
	}
}

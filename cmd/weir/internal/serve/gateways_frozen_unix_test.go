//go:build unix

package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
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
		name, block string
		start       func(t testing.TB, addr, config string)
		closed      int
		open        func(config, second string) string
	}{
		{"nginx", "nginx", gatewaytest.Nginx, http.StatusInternalServerError, func(config, second string) string {
			return regexp.MustCompile(`(?s)    location = /weir \{.*?\n    }\n`).ReplaceAllLiteralString(config, second)
		}},
		{"Caddy", "caddyfile", gatewaytest.Caddy, http.StatusGatewayTimeout, func(_, second string) string { return second }},
		{"HAProxy", "haproxy", scripted(t), http.StatusServiceUnavailable, func(config, _ string) string {
			return strings.Replace(config, "unless { var(txn.weir_status) -m int 204 }", "unless { var(txn.weir_status) -m int 204 502:504 }", 1)
		}},
	} {
		_, config := documented(t, gateway.name, gateway.block)
		second := outageBlock(t, gateway.name, gateway.block)
		for open, want := range map[bool]int{false: gateway.closed, true: http.StatusOK} {
			t.Run(gateway.name+" open "+strconv.FormatBool(open), func(t *testing.T) {
				config := config
				if open {
					config = gateway.open(config, second)
				}
				url, frozen, end := startFrozen(t, gateway.name, gateway.block, config, gateway.start)
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
func startFrozen(t *testing.T, name, block, config string, start func(testing.TB, string, string)) (url string, signal func(syscall.Signal), end func()) {
	t.Helper()
	command, _ := documented(t, name, block)
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

// outageBlock returns the block of a language that docs/howto/gateways.md has for a gateway that lets requests through, or "".
func outageBlock(t *testing.T, gateway, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/howto/gateways.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\n### "+gateway+" lets requests through\n")
	after, _, _ = strings.Cut(after, "\n##")
	if found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(after); found != nil {
		return found[1]
	}
	return ""
}

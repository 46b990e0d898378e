package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/gatewaytest"
	"github.com/weirflow/weir/internal/testprocess"
)

// TestGatewaysRefuseAndAdmit runs the whole configurations of docs/howto/gateways.md as they stand there, except that ports are free
// ones of this machine. Each gateway has clients at different addresses, who all claim to be another.
func TestGatewaysRefuseAndAdmit(t *testing.T) {
	for _, gateway := range []struct {
		name, tag string
		start     func(t testing.TB, addr, config string)
		down      int // the status while the daemon is gone
	}{
		{"nginx", "nginx/check", gatewaytest.Nginx, http.StatusInternalServerError},
		{"Caddy", "caddy/check", gatewaytest.Caddy, http.StatusBadGateway},
		{"HAProxy", "haproxy/check", scripted(t), http.StatusServiceUnavailable},
	} {
		t.Run(gateway.name, func(t *testing.T) {
			documented := gatewaytest.Documented(t, gateway.tag)
			config, admin := patient(documented.Text), filepath.Join(t.TempDir(), "admin.sock")
			daemon, end := serveProcess(t, "127.0.0.1:0", append(documented.Command, "--admin", "unix:"+admin)...)
			pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/forbidden" {
					w.WriteHeader(http.StatusForbidden)
				}
				sent, _ := io.Copy(io.Discard, r.Body)
				fmt.Fprintf(w, "page %s", r.URL)
				if sent > 0 {
					fmt.Fprintf(w, ", %d bytes", sent)
				}
			}))
			defer pages.Close()
			port := strconv.Itoa(testprocess.FreePort(t))
			gateway.start(t, "127.0.0.1:"+port, replaceAll(t, config, map[string]string{
				"127.0.0.1:8080": daemon,
				"127.0.0.1:9000": pages.Listener.Addr().String(),
				"8000":           port,
			}))
			refused := checkGateway(t, "http://127.0.0.1:"+port)
			if got := refusals(t, admin); got["web"] != refused {
				t.Errorf("Weir counts the refusals %v, want the %d that clients got", got, refused)
			}
			checkMethods(t, "http://127.0.0.1:"+port)
			end()
			if response, body := askFrom(t, "127.0.0.3", "http://127.0.0.1:"+port+"/"); response.StatusCode != gateway.down {
				t.Errorf("without the daemon: %d %q, want %d", response.StatusCode, body, gateway.down)
			}
		})
	}
}

// With rules in files the gateways describe the request by the header fields of docs/howto/gateways.md.
func TestGatewaysDecideByRulesInFiles(t *testing.T) {
	files := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(files, []byte(`rules:
  - {name: login, match: {method: POST, path: /login, host: 127.0.0.1}, key: [client, header.x-api-key], limit: 2/h, message: Too many attempts.}
  - {name: banned, match: {client: 127.0.0.66}, deny: true}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	inFiles := gatewaytest.Documented(t, "nginx/rules")
	for _, gateway := range []struct {
		name, tag string
		start     func(t testing.TB, addr, config string)
		edit      func(config string) string
		status    []string
	}{
		{"nginx", "nginx/check", gatewaytest.Nginx, func(config string) string { return described(t, config) }, nil},
		{"Caddy", "caddy/check", gatewaytest.Caddy, func(config string) string { return strings.Replace(config, "?rule=web", "", 1) }, []string{"--check-status", "429"}},
	} {
		t.Run(gateway.name, func(t *testing.T) {
			config, admin := gatewaytest.Documented(t, gateway.tag).Text, filepath.Join(t.TempDir(), "admin.sock")
			daemon, _ := serveProcess(t, "127.0.0.1:0", append(append(replaceWord(inFiles.Command, "weir.yaml", files), "--admin", "unix:"+admin), gateway.status...)...)
			pages := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			defer pages.Close()
			port := strconv.Itoa(testprocess.FreePort(t))
			gateway.start(t, "127.0.0.1:"+port, replaceAll(t, patient(gateway.edit(config)), map[string]string{
				"127.0.0.1:8080": daemon, "127.0.0.1:9000": pages.Listener.Addr().String(), "8000": port,
			}))
			url := "http://127.0.0.1:" + port
			for i, c := range []struct {
				method, from, path string
				want               int
			}{
				{"POST", "127.0.0.1", "/login", 200}, {"POST", "127.0.0.1", "/%6Cogin;a?b", 200}, {"POST", "127.0.0.1", "/.//LOGIN/", 429},
				{"GET", "127.0.0.1", "/login", 200}, {"POST", "127.0.0.2", "/login", 200}, {"GET", "127.0.0.66", "/", 0},
			} {
				response, body := sendFrom(t, c.method, c.from, url+c.path, "", "X-Api-Key", "k", "X-Forwarded-For", "192.0.2.1", "X-Forwarded-Uri", "/")
				denied := c.want == 0 && (response.StatusCode == 403 || response.StatusCode == 429) // 429 by the error_page of nginx
				if response.StatusCode != c.want && !denied {
					t.Errorf("%d: %s %s from %s: got %d %q, want %d", i, c.method, c.path, c.from, response.StatusCode, body, c.want)
				}
				if denied && (strings.Contains(body, "Retry") || response.Header.Get("Retry-After") != "") {
					t.Errorf("a banned client: got %q and Retry-After %q, want no word of a retry", body, response.Header.Get("Retry-After"))
				}
			}
			if got := refusals(t, admin); got["login"] != 1 {
				t.Errorf("Weir counts the refusals %v, want 1 by login", got)
			}
		})
	}
}

// described returns a configuration of nginx/check that describes requests to rules in files, as docs/howto/gateways.md says.
func described(t *testing.T, config string) string {
	t.Helper()
	return replaced(t, config, `(?s)        proxy_pass http://weir/.*?proxy_read_timeout [^\n]*\n`, gatewaytest.Documented(t, "nginx/rules").Text)
}

// replaced replaces the only match of an expression.
func replaced(t *testing.T, config, expression, by string) string {
	t.Helper()
	found := regexp.MustCompile(expression)
	if n := len(found.FindAllString(config, -1)); n != 1 {
		t.Fatalf("%d matches of %s, want one, in\n%s", n, expression, config)
	}
	return found.ReplaceAllLiteralString(config, by)
}

func replaceWord(words []string, from, to string) []string {
	replaced := slices.Clone(words)
	replaced[slices.Index(words, from)] = to
	return replaced
}

// checkGateway asks as two clients. The rule of the documents admits each 60 times.
// It returns how many requests were refused.
func checkGateway(t *testing.T, url string) (all int) {
	t.Helper()
	for _, client := range []string{"127.0.0.1", "127.0.0.2"} {
		refused := 0
		for i := range 70 {
			response, body := askFrom(t, client, url+"/x?y=1", "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
			if response.StatusCode == http.StatusTooManyRequests {
				checkRefusal(t, client, response, body)
				refused++
				continue
			}
			if response.StatusCode != http.StatusOK || body != "page /x?y=1" {
				t.Fatalf("client %s, request %d: %d %q, want the page", client, i+1, response.StatusCode, body)
			}
			if limit := response.Header.Get("RateLimit"); !strings.HasPrefix(limit, `"web";r=`) {
				t.Errorf("client %s, request %d: RateLimit is %q, want what remains", client, i+1, limit)
			}
		}
		if refused < 5 || refused > 10 { // some units come back during the test
			t.Errorf("client %s: %d of 70 requests were refused, want about 10", client, refused)
		}
		all += refused
	}
	// The application's own 403 is not a refusal by a limit.
	if response, body := askFrom(t, "127.0.0.3", url+"/forbidden"); response.StatusCode != http.StatusForbidden || body != "page /forbidden" {
		t.Errorf("a page with status 403: %d %q, want 403 and the page", response.StatusCode, body)
	}
	// A browser that follows a link from elsewhere, with a large cookie, is a client like any other.
	response, body := askFrom(t, "127.0.0.3", url+"/", "Sec-Fetch-Site", "cross-site", "Cookie", strings.Repeat("c", 3<<10))
	if response.StatusCode != http.StatusOK {
		t.Errorf("a browser from another site: %d %q, want the page", response.StatusCode, body)
	}
	return all
}

// checkMethods sends requests that are not GET. The gateway asks by GET all the same, and the page gets the request.
func checkMethods(t *testing.T, url string) {
	t.Helper()
	body := strings.Repeat("b", 100_000)
	if response, got := sendFrom(t, http.MethodPost, "127.0.0.4", url+"/form", body); response.StatusCode != http.StatusOK || got != "page /form, 100000 bytes" {
		t.Errorf("POST: %d %q, want the page with the whole body", response.StatusCode, got)
	}
	if response, _ := sendFrom(t, http.MethodHead, "127.0.0.4", url+"/", ""); response.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %d, want 200", response.StatusCode)
	}
}

func checkRefusal(t *testing.T, client string, response *http.Response, body string) {
	t.Helper()
	retry, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || retry != 1 {
		t.Errorf("client %s: refused with Retry-After %q, want 1", client, response.Header.Get("Retry-After"))
	}
	if got := response.Header.Get("RateLimit"); got != `"web";r=0;t=1` {
		t.Errorf("client %s: refused with RateLimit %q", client, got)
	}
	if got := response.Header.Get("RateLimit-Policy"); got != `"web";q=60;w=60` {
		t.Errorf("client %s: refused with RateLimit-Policy %q", client, got)
	}
	if !strings.Contains(body, "Retry in 1 second") {
		t.Errorf("client %s: refused with %q, which does not say when to retry", client, body)
	}
}

// askFrom asks for a page from an address of the loopback interface.
func askFrom(t *testing.T, from, url string, fields ...string) (*http.Response, string) {
	t.Helper()
	return sendFrom(t, http.MethodGet, from, url, "", fields...)
}

// sendFrom sends a request from an address of the loopback interface.
func sendFrom(t *testing.T, method, from, url, content string, fields ...string) (*http.Response, string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true},
		Timeout:   time.Minute,
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// patient returns a configuration with timeouts for a busy machine.
func patient(config string) string {
	return strings.NewReplacer("200ms", "30s", "100ms", "30s").Replace(config)
}

// scripted returns what starts HAProxy with its script. Both name the port at which the script asks.
func scripted(t *testing.T) func(t testing.TB, addr, config string) {
	script := gatewaytest.Documented(t, "haproxy/script").Text
	return func(t testing.TB, addr, config string) {
		t.Helper()
		file, asks := filepath.Join(t.TempDir(), "weir.lua"), "127.0.0.1:"+strconv.Itoa(testprocess.FreePort(t))
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(script, "127.0.0.1:8079", asks)), 0o600); err != nil {
			t.Fatal(err)
		}
		gatewaytest.HAProxy(t, addr, strings.NewReplacer("127.0.0.1:8079", asks, "/etc/haproxy/weir.lua", file).Replace(config))
	}
}

// loopback returns a free address.
func loopback(t *testing.T) string { return "127.0.0.1:" + strconv.Itoa(testprocess.FreePort(t)) }

// refusals returns how often each rule refused, by the metrics on the admin socket of a daemon.
func refusals(t *testing.T, admin string) map[string]int {
	t.Helper()
	text := getText(t, socketClient(t, admin), "http://localhost/metrics")
	refused := map[string]int{}
	for line := range strings.Lines(text) {
		labels, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if !strings.HasPrefix(labels, "weir_decisions_total{") || !strings.Contains(labels, `result="refused"`) {
			continue
		}
		_, rule, _ := strings.Cut(labels, `rule="`)
		rule, _, _ = strings.Cut(rule, `"`)
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatalf("the metric %s", line)
		}
		refused[rule] += n
	}
	return refused
}

// replaceAll replaces texts that the configuration must contain.
func replaceAll(t *testing.T, config string, texts map[string]string) string {
	t.Helper()
	var pairs []string
	for from, to := range texts {
		if !strings.Contains(config, from) {
			t.Fatalf("the configuration does not contain %q", from)
		}
		pairs = append(pairs, from, to)
	}
	return strings.NewReplacer(pairs...).Replace(config)
}

// serveProcess runs weir with the arguments, and returns the address that it listens on. end kills it.
func serveProcess(t *testing.T, listen string, arguments ...string) (addr string, end func()) {
	t.Helper()
	addr, _, end = serveProcessed(t, listen, arguments...)
	return addr, end
}

// serveProcessed is serveProcess, and returns the process.
func serveProcessed(t *testing.T, listen string, arguments ...string) (addr string, daemon *os.Process, end func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, exe)
	cmd.Args = append(append([]string{"weir"}, arguments...), "--http", listen)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		cancel()
		_ = cmd.Wait()
	})
	t.Cleanup(end)
	if _, err := fmt.Fscanf(out, "weir listens on http://%s\n", &addr); err != nil {
		t.Fatalf("weir %q prints no address: %v", arguments, err)
	}
	return addr, cmd.Process, end
}

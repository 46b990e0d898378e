package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/internal/gatewaytest"
)

// These tests run the blocks of docs/howto/envoy.md with a real Envoy, on free ports and with timeouts for a busy machine.

// shop is a shop behind Envoy, which asks a daemon.
type shop struct {
	url   string
	envoy *gatewaytest.Proxy
	admin string // the socket of the daemon
	flags []string
	weir  *exec.Cmd
}

// startShop starts the daemon by the command line of a block, with a rules file, and Envoy with a configuration. The shop answers with
// the tokens that a request wants.
func startShop(t *testing.T, of gatewaytest.Block, rules, config string, flags ...string) *shop {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := r.Header.Get("X-Want"); want != "" {
			w.Header().Set("X-Tokens", want)
		}
		_, _ = io.WriteString(w, "page")
	}))
	t.Cleanup(pages.Close)
	grpc, entry := loopback(t), loopback(t)
	s := &shop{url: "http://" + entry, admin: filepath.Join(t.TempDir(), "admin.sock")}
	command := replaceWord(of.Command, "weir.yaml", file)
	command[slices.Index(command, "--grpc")+1] = grpc
	s.flags = append(append(command[1:], "--http", "127.0.0.1:0", "--admin", "unix:"+s.admin), flags...)
	s.start(t)
	t.Cleanup(func() { s.stop(t) })
	s.envoy = gatewaytest.Envoy(t, entry, replaceAll(t, config, map[string]string{
		"address: 0.0.0.0, port_value: 10000": socketAddress(entry), "address: 127.0.0.1, port_value: 9000": socketAddress(pages.Listener.Addr().String()),
		"address: 127.0.0.1, port_value: 8081": socketAddress(grpc), "timeout: 0.1s": "timeout: 30s", "timeout: 1s": "timeout: 30s",
	}))
	return s
}

// start starts the daemon, and stop ends it.
func (s *shop) start(t *testing.T) {
	t.Helper()
	s.weir = daemonCommand(t, s.flags...)
	s.weir.Stderr = t.Output()
	startAndFindURL(t, s.weir)
}

func (s *shop) stop(t *testing.T) {
	t.Helper()
	if err := stopDaemon(s.weir); err != nil {
		t.Errorf("weir serve ended with %v", err)
	}
}

// inPlace returns a configuration with a block in place of the one that begins with the same line. The indentation is that of the
// configuration.
func inPlace(t *testing.T, config, block string) string {
	t.Helper()
	first, _, _ := strings.Cut(block, "\n")
	lines := strings.SplitAfter(config, "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimSpace(line) == first })
	if at < 0 {
		t.Fatalf("the configuration has no line %q", first)
	}
	end, indent := at+1, indentOf(lines[at])
	for end < len(lines) && (len(indentOf(lines[end])) > len(indent) || strings.HasPrefix(lines[end], indent+"- ")) {
		end++
	}
	return strings.Join(lines[:at], "") + indented(block, indent) + strings.Join(lines[end:], "")
}

// before returns a configuration with a block before a line, and as far to the right.
func before(t *testing.T, config, line, block string) string {
	t.Helper()
	head, tail, found := strings.Cut(config, line+"\n")
	if !found {
		t.Fatalf("the configuration has no line %q", line)
	}
	start := strings.LastIndex(head, "\n") + 1
	return head[:start] + indented(block, head[start:]) + head[start:] + line + "\n" + tail
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " "))] }

func indented(block, by string) string {
	return by + strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n"+by) + "\n"
}

// askUntilRefused asks from an address until a request is refused, and returns how many were admitted, and the refusal.
func (s *shop) askUntilRefused(t *testing.T, from, path string, fields ...string) (admitted int, refusal *http.Response, body string) {
	t.Helper()
	for ; admitted < 1000; admitted++ {
		response, body := askFrom(t, from, s.url+path, append([]string{"X-Forwarded-For", fmt.Sprintf("192.0.2.%d", admitted%256)}, fields...)...)
		if response.StatusCode != http.StatusOK {
			return admitted, response, body
		}
		if body != "page" {
			t.Fatalf("request %d: %q, want the page", admitted+1, body)
		}
	}
	t.Fatalf("%d requests of %s were admitted", admitted, from)
	return 0, nil, ""
}

// checkRefused compares the refusals that Envoy and the daemon count.
func (s *shop) checkRefused(t *testing.T, want map[string]int) {
	t.Helper()
	sum := 0
	for _, n := range want {
		sum += n
	}
	if got := s.envoy.Counter(t, "cluster.shop.ratelimit.over_limit"); got != sum {
		t.Errorf("Envoy counts %d refusals, want %d", got, sum)
	}
	got := refusals(t, s.admin)
	for rule, n := range want {
		if got[rule] != n {
			t.Errorf("Weir counts the refusals %v, want %v", got, want)
		}
	}
	if failed := s.envoy.Counter(t, "cluster.shop.ratelimit.error"); failed != 0 {
		t.Errorf("%d calls of Envoy failed", failed)
	}
}

// Two clients who claim other addresses each meet the limit of an address, and then both that of the search. A refusal has the
// header fields that the page prints, and no others about limits.
func TestEnvoyRefusesAsItsPageSays(t *testing.T) {
	t.Parallel()
	rules, config := gatewaytest.Documented(t, "weir/shop"), gatewaytest.Documented(t, "envoy/shop")
	s := startShop(t, config, rules.Text, config.Text)
	began := time.Now()
	for i, client := range []string{"127.0.0.1", "127.0.0.2"} {
		admitted, refusal, body := s.askUntilRefused(t, client, "/")
		if most := 60 + int(time.Since(began).Seconds()) + 1; admitted < 60 || admitted > most {
			t.Errorf("client %d was admitted %d times, want 60 to %d", i, admitted, most)
		}
		checkPrinted(t, config.After, refusal, body)
	}
	searches := 0
	for _, client := range []string{"127.0.0.3", "127.0.0.4", "127.0.0.5"} {
		for range 50 {
			response, _ := askFrom(t, client, s.url+"/search?q=weir")
			if response.StatusCode == http.StatusOK {
				searches++
			} else if got := response.Header.Get("Ratelimit-Policy"); got != `"search";q=100;w=60` {
				t.Fatalf("after %d searches: %d, RateLimit-Policy %q, want that of the search", searches, response.StatusCode, got)
			}
		}
	}
	if most := 100 + int(100*time.Since(began).Minutes()) + 1; searches < 100 || searches > most {
		t.Errorf("%d of 150 searches were admitted, want 100 to %d", searches, most)
	}
	s.checkRefused(t, map[string]int{"address": 2, "search": 150 - searches})
}

// checkPrinted compares an answer with the first one that curl -i shows on a page.
func checkPrinted(t *testing.T, page string, got *http.Response, body string) {
	t.Helper()
	_, printed, found := strings.Cut(page, "\n$ curl -i ")
	_, printed, _ = strings.Cut(printed, "\n")
	printed, _, _ = strings.Cut(printed, "\n```")
	head, text, complete := strings.Cut(printed, "\n\n")
	if !found || !complete {
		t.Fatal("the page shows no answer to curl -i")
	}
	lines := strings.Split(head, "\n")
	if want := "HTTP/1.1 " + got.Status; lines[0] != want {
		t.Errorf("the page prints %q, and the answer is %q", lines[0], want)
	}
	want := http.Header{}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		want.Set(name, value)
	}
	for name := range got.Header {
		if name != "Date" && name != "Server" && !strings.HasPrefix(name, "Content-") && want.Get(name) != got.Header.Get(name) {
			t.Errorf("the answer has %s: %s, and the page prints %q", name, got.Header.Get(name), want.Get(name))
		}
		want.Del(name)
	}
	if len(want) > 0 || text != body {
		t.Errorf("the page prints %v and %q, and the answer has %q", want, text, body)
	}
}

// A token or a certificate lets Envoy in, and its health checks. Without either, no request is limited.
func TestEnvoyShowsWhoItIs(t *testing.T) {
	t.Parallel()
	rules, config := gatewaytest.Documented(t, "weir/shop"), gatewaytest.Documented(t, "envoy/shop")
	shown, certificate := gatewaytest.Documented(t, "envoy/token"), gatewaytest.Documented(t, "envoy/certificate")
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	root := (&authority{t: t}).sign(folder, "ca")
	root.sign(folder, "weir")
	root.sign(folder, "shop")
	token, form := auth.NewToken()
	if err := os.WriteFile(in("tokens"), []byte("web "+form+" take\nshop cn:shop take\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shown.Text = replaceAll(t, shown.Text, map[string]string{"weir_KQ5QZ3WJH2VYQ4ZC7M6E3AANTX": token})
	files := map[string]string{"ca.pem": in("ca.pem"), "shop.pem": in("shop.pem"), "shop.key": in("shop.key")}
	encrypted := replaceAll(t, certificate.Text, files)
	own := "      tls_certificates:\n        - {certificate_chain: {filename: " + in("shop.pem") + "}, private_key: {filename: " + in("shop.key") + "}}\n"
	anonymous := replaceAll(t, encrypted, map[string]string{own: ""})
	for _, c := range []struct {
		name, config string
		refused      bool
	}{
		{"a token", before(t, inPlace(t, config.Text, shown.Text), "connect_timeout: 0.1s", anonymous), true},
		{"a certificate", before(t, config.Text, "connect_timeout: 0.1s", encrypted), true},
		{"nothing", before(t, config.Text, "connect_timeout: 0.1s", anonymous), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := certificate
			of.Command = slices.Clone(certificate.Command)
			for i, word := range of.Command {
				if _, err := os.Stat(in(word)); err == nil && word != "" {
					of.Command[i] = in(word)
				}
			}
			s := startShop(t, of, rules.Text, strings.Replace(c.config, "interval: 5s", "interval: 0.1s", 1))
			if !c.refused {
				for range 70 {
					if response, _ := askFrom(t, "127.0.0.1", s.url+"/"); response.StatusCode != http.StatusOK {
						t.Fatalf("an unknown Envoy: %d", response.StatusCode)
					}
				}
				if got := s.envoy.Counter(t, "cluster.shop.ratelimit.error"); got != 70 {
					t.Errorf("%d calls of an unknown Envoy failed, want all 70", got)
				}
			} else {
				_, refusal, body := s.askUntilRefused(t, "127.0.0.1", "/")
				checkPrinted(t, config.After, refusal, body)
				s.checkRefused(t, map[string]int{"address": 1})
			}
			s.await(t, "a health check", func() bool { return s.envoy.Counter(t, "cluster.weir.health_check.success") > 0 })
			if failed := s.envoy.Counter(t, "cluster.weir.health_check.failure"); failed != 0 {
				t.Errorf("%d health checks failed", failed)
			}
		})
	}
}

// await waits until something has happened. It has time on a busy machine.
func (s *shop) await(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for began := time.Now(); !happened(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("%s does not happen", what)
		}
	}
}

// withCosts returns the configuration of the shop with the routes and the filter that report costs.
func withCosts(t *testing.T) (of gatewaytest.Block, rules, config string) {
	t.Helper()
	of = gatewaytest.Documented(t, "envoy/shop")
	filter := gatewaytest.Documented(t, "envoy/metadata").Text
	config = inPlace(t, of.Text, gatewaytest.Documented(t, "envoy/costs").Text)
	return of, gatewaytest.Documented(t, "weir/tokens").Text, before(t, config, "- name: envoy.filters.http.ratelimit", filter)
}

// spend asks for work that costs tokens.
func (s *shop) spend(t *testing.T, user, tokens string) *http.Response {
	t.Helper()
	response, _ := askFrom(t, "127.0.0.1", s.url+"/", "X-User", user, "X-Want", tokens)
	if got := response.Header.Get("X-Tokens"); got != "" {
		t.Errorf("the client sees X-Tokens: %s", got)
	}
	return response
}

// told returns the units of costs that the daemon has counted.
func (s *shop) told(t *testing.T) int {
	t.Helper()
	text := getText(t, socketClient(t, s.admin), "http://localhost/metrics")
	_, value, _ := strings.Cut(text, `weir_told_units_total{outcome="counted",rule="tokens"} `)
	value, _, _ = strings.Cut(value, "\n")
	n, _ := strconv.ParseFloat(value, 64) // 0 without the metric
	return int(n)
}

// A budget of a million tokens loses what each answer cost, and admits until it is spent.
func TestEnvoyReportsCostsAsItsPageSays(t *testing.T) {
	t.Parallel()
	of, rules, config := withCosts(t)
	s := startShop(t, of, rules, config)
	for i := range 2 {
		if got := s.spend(t, "ann", "600000"); got.StatusCode != http.StatusOK {
			t.Fatalf("request %d: %d, want it admitted", i+1, got.StatusCode)
		}
		s.await(t, "the report of a cost", func() bool { return s.told(t) == 600000*(i+1) })
	}
	refusal := s.spend(t, "ann", "1")
	if got := refusal.Header.Get("Ratelimit"); refusal.StatusCode != http.StatusTooManyRequests || !strings.HasPrefix(got, `"tokens";r=0;t=`) {
		t.Errorf("a budget that is spent: %d, RateLimit %q", refusal.StatusCode, got)
	}
	if got := s.spend(t, "ben", ""); got.StatusCode != http.StatusOK {
		t.Errorf("another user: %d, want it admitted", got.StatusCode)
	}
	s.checkRefused(t, map[string]int{"tokens": 1})
}

// Envoy drops a cost that is missing or too large, and what it reports while the daemon is away.
func TestEnvoyDropsCostsAsItsPageSays(t *testing.T) {
	t.Parallel()
	of, rules, config := withCosts(t)
	s := startShop(t, of, rules, config)
	s.spend(t, "ann", "")
	s.spend(t, "ann", "1000000001")
	s.spend(t, "ann", "20")
	s.await(t, "the report of a cost", func() bool { return s.told(t) >= 20 })
	if got := s.told(t); got != 20 {
		t.Errorf("%d units were counted, want 20", got)
	}
	s.stop(t)
	if got := s.spend(t, "ann", "30"); got.StatusCode != http.StatusOK {
		t.Errorf("without the daemon: %d, want it admitted", got.StatusCode)
	}
	s.start(t)
	s.await(t, "a report after the daemon is back", func() bool {
		s.spend(t, "ann", "40")
		return s.told(t) >= 40
	})
	if got := s.told(t); got%40 != 0 {
		t.Errorf("%d units were counted, want those of 40 alone", got)
	}
}

// Under route Envoy ignores hits_addend: each call has one hit, both before the work and after it.
func TestEnvoyIgnoresCostsUnderRoute(t *testing.T) {
	t.Parallel()
	of, rules, config := withCosts(t)
	_, limits, _ := strings.Cut(gatewaytest.Documented(t, "envoy/costs").Text, "        rate_limits:\n")
	config = inPlace(t, config, "routes:\n  - match: {prefix: /}\n    route:\n      cluster: shop\n      rate_limits:\n"+limits)
	s := startShop(t, of, rules, config)
	for range 2 {
		s.spend(t, "ann", "600000")
	}
	const admitted = `weir_decisions_total{reason="",result="admitted",rule="tokens"} 4`
	s.await(t, "a second call for each request", func() bool {
		return strings.Contains(getText(t, socketClient(t, s.admin), "http://localhost/metrics"), admitted)
	})
	if got := s.told(t); got != 0 {
		t.Errorf("%d units were told, want none", got)
	}
	response := s.spend(t, "ann", "600000")
	if got := response.Header.Get("Ratelimit"); !strings.HasPrefix(got, `"tokens";r=999995;`) {
		t.Errorf("after five hits: RateLimit %q, want 999995 left", got)
	}
}

package serve

import (
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/testprocess"
)

const seenRules = `
rules:
  - {name: login, match: {path: /login}, key: client, limit: 2/h, candidate: 1/h}
  - {name: watched, match: {path: /login}, key: client, limit: 1/h, shadow: true}
  - {name: banned, match: {client: 192.0.2.0/24}, deny: true}
  - {name: slots, limit: concurrency 1 lease 1m}
  - {name: told, match: {domain: models}, limit: 10/h, charge: after}
`

// seenDaemon is a daemon with a port for metrics.
type seenDaemon struct {
	url, metrics, admin, rules string
	cmd                        *exec.Cmd
	log                        *bytes.Buffer
}

func startSeen(t *testing.T, args ...string) *seenDaemon {
	t.Helper()
	folder := t.TempDir()
	d := &seenDaemon{metrics: "http://" + loopback(t) + "/metrics", admin: filepath.Join(folder, "admin"), rules: filepath.Join(folder, "rules.yaml"), log: &bytes.Buffer{}}
	d.write(t, seenRules)
	d.cmd = daemonCommand(t, append([]string{"--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--metrics", strings.TrimSuffix(strings.TrimPrefix(d.metrics, "http://"), "/metrics"),
		"--admin", "unix:" + d.admin, "--config", d.rules}, args...)...)
	d.cmd.Stderr = d.log
	t.Cleanup(func() { _ = d.cmd.Process.Kill() })
	d.url = startAndFindURL(t, d.cmd)
	return d
}

func (d *seenDaemon) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(d.rules, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// use makes the daemon decide in each way.
func (d *seenDaemon) use(t *testing.T) {
	t.Helper()
	for range 4 {
		postTake(t, d.url, `{"attributes":{"path":"/login","client":"203.0.113.7"}}`)
	}
	postTake(t, d.url, `{"attributes":{"path":"/login","client":"192.0.2.7"}}`)
	for _, patience := range []string{"30", "0.01"} {
		response, err := http.Post(d.url+"/v1/reserve", "application/json", strings.NewReader(`{"rule":"slots","key":"k","patience":`+patience+`}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	response, err := http.Post(d.url+"/json", "application/json", strings.NewReader(`{"domain":"models","hitsAddend":5,"descriptors":[{"entries":[{"key":"model","value":"m"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

func (d *seenDaemon) scrape(t *testing.T) string {
	t.Helper()
	return fetchText(t, http.DefaultClient, d.metrics)
}

func fetchText(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %s, %v: %s", url, response.Status, err, body)
	}
	return string(body)
}

// await scrapes until the metrics have all lines.
func (d *seenDaemon) await(t *testing.T, lines ...string) string {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // between two scrapes
		text, missing := d.scrape(t), ""
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line) {
				missing = line
			}
		}
		if missing == "" {
			return text
		}
		if time.Since(began) > 20*time.Second {
			_ = d.cmd.Process.Kill()
			_ = d.cmd.Wait() // so that nobody writes the log any more
			t.Fatalf("no line %s in\n%s\nthe log: %s", missing, text, d.log)
		}
	}
}

// What rules decide for Envoy without the engine counts like the rest.
func TestDecisionsForEnvoyAreInTheMetrics(t *testing.T) {
	d := startSeen(t, "--grpc", "127.0.0.1:0")
	response, err := http.Post(d.url+"/json", "application/json", strings.NewReader(`{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	d.await(t, `weir_decisions_total{reason="default",result="admitted",rule=""} 1`)
}

func TestMetricsAreTheSameOnEveryEngine(t *testing.T) {
	server := redistest.Start(t)
	for engine, args := range map[string][]string{
		"memory": nil, "redis": {"--engine", "redis://" + server.Addr, "--prefetch", "--deadline", "2s"}, "sql": {"--engine", "sqlite:" + filepath.Join(t.TempDir(), "weir.db"), "--deadline", "2s"},
	} {
		d := startSeen(t, args...)
		d.use(t)
		text := d.await(t,
			`weir_decisions_total{reason="",result="admitted",rule="login"} 2`,
			`weir_decisions_total{reason="count",result="refused",rule="login"} 2`,
			`weir_decisions_total{reason="rule",result="refused",rule="banned"} 1`,
			`weir_beside_decisions_total{as="candidate",difference="stricter",rule="login"} 1`,
			`weir_beside_decisions_total{as="candidate",difference="same",rule="login"} 3`,
			`weir_beside_decisions_total{as="shadow",difference="stricter",rule="watched"} 1`,
			`weir_engine_up 1`, `weir_ready 1`, `weir_rules 5`,
			`weir_waiting_callers{rule="slots"} 0`, `weir_waits_total{end="granted",rule="slots"} 1`,
			`weir_http_requests_total{code="200",path="/v1/take"} 5`)
		if !strings.Contains(text, `weir_build_info{engine="`+engine+`"`) || strings.Contains(text, "203.0.113.7") || strings.Contains(text, "~probe") {
			t.Errorf("%s: got a key, a probe or no information on the build:\n%s", engine, text)
		}
		if calls := regexp.MustCompile(`\nweir_engine_calls_total{outcome="ok"} [1-9]`).MatchString(text); calls != (engine != "memory") {
			t.Errorf("%s: calls of a shared engine are counted: %v:\n%s", engine, calls, text)
		}
		checkMetrics(t, text)
		socket := socketClient(t, d.admin)
		if got := fetchText(t, socket, "http://localhost/v1/top?rule=login&by=refused"); got != `{"keys":[{"rule":"login","key":"203.0.113.7","count":2,"overcount":0}]}`+"\n" {
			t.Errorf("%s: the most refused keys are %s", engine, got)
		}
		if engine == "memory" {
			d.checkStats(t)
		}
		d.write(t, strings.ReplaceAll(seenRules, "name: login", "name: signin"))
		d.await(t, `weir_rules_reloads_total{result="ok"} 1`) // in a scrape that may have begun before the reload
		if text := d.scrape(t); strings.Contains(text, `"login"`) {
			t.Errorf("%s: a rule that is gone has the metrics\n%s", engine, text)
		}
		d.write(t, "rules: 7")
		d.await(t, `weir_rules_reload_failing 1`, `weir_rules_reloads_total{result="failed"} 1`, `weir_rules 5`)
	}
}

// checkStats checks that the lists of /v1/stats have the keys of rules in force and, with a mark, of shadows: none of a candidate, and
// none at all on the traffic port, where any program of this machine may ask.
func (d *seenDaemon) checkStats(t *testing.T) {
	t.Helper()
	if open := fetchText(t, http.DefaultClient, d.url+"/v1/stats"); !strings.Contains(open, `"rule":"login"`) || strings.Contains(open, "203.0.113.7") {
		t.Errorf("anyone may read %s, want rules and no key", open)
	}
	_, lists, _ := strings.Cut(fetchText(t, socketClient(t, d.admin), "http://localhost/v1/stats"), `"busiest":`)
	busiest := `[{"rule":"login","key":"203.0.113.7","count":4,"overcount":0},`
	refused := `"refused":[{"rule":"watched","key":"203.0.113.7","count":3,"overcount":0,"shadow":true},{"rule":"login","key":"203.0.113.7","count":2,"overcount":0}]`
	if !strings.HasPrefix(lists, busiest) || !strings.Contains(lists, refused) || strings.Contains(lists, "~") {
		t.Errorf("the busiest keys are %s, want %s…%s… and no candidate", lists, busiest, refused)
	}
}

// docs/reference/metrics.md says which daemons have which metric, and they have no others.
func TestDaemonsHaveTheMetricsThatThePageSays(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind, args := range map[string][]string{
		"memory": nil, "redis": {"--engine", "redis://" + redistest.Start(t).Addr, "--deadline", "2s"}, "redis prefetched": {"--engine", "redis://" + redistest.Start(t).Addr, "--prefetch", "--deadline", "2s"},
		"sql": {"--engine", "sqlite:" + filepath.Join(t.TempDir(), "weir.db"), "--deadline", "2s"},
	} {
		has := map[string]bool{"all": true, "with rules in files": true, "memory engine": kind == "memory", "with `--engine`": kind != "memory", "with `--prefetch`": kind == "redis prefetched",
			"with Redis": strings.HasPrefix(kind, "redis")}
		wanted := map[string]bool{}
		for row := range strings.Lines(string(page)) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
			if daemons := strings.TrimSpace(cells[len(cells)-1]); has[daemons] {
				for _, name := range regexp.MustCompile("`(weir_[a-z_]+)`").FindAllStringSubmatch(cells[0], -1) {
					wanted[name[1]] = true
				}
			}
		}
		d := startSeen(t, args...)
		d.use(t)
		text := d.await(t, `weir_beside_decisions_total{as="shadow",difference="stricter",rule="watched"} 1`, `weir_waits_total{end="granted",rule="slots"} 1`)
		for _, found := range regexp.MustCompile(`# TYPE (weir_[a-z_]+) `).FindAllStringSubmatch(text, -1) {
			if !wanted[found[1]] {
				t.Errorf("a daemon on %s has %s, and the page does not say so", kind, found[1])
			}
			delete(wanted, found[1])
		}
		if len(wanted) > 0 {
			t.Errorf("a daemon on %s has not %v, which the page says", kind, slices.Sorted(maps.Keys(wanted)))
		}
	}
}

// Decisions for Redis clients have the metrics of those over HTTP.
func TestDecisionsForRedisClientsAreInTheMetrics(t *testing.T) {
	address := loopback(t)
	d := startSeen(t, "--resp", address)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "WEIR.TAKE slots k\r\nWEIR.TAKE slots k\r\n"); err != nil {
		t.Fatal(err)
	}
	d.await(t, `weir_decisions_total{reason="",result="admitted",rule="slots"} 1`,
		`weir_decisions_total{reason="count",result="refused",rule="slots"} 1`, `weir_decision_duration_seconds_count{rule="slots"} 2`)
}

// checkMetrics has promtool read metrics.
func checkMetrics(t *testing.T, text string) {
	t.Helper()
	testprocess.Require(t, "promtool", "prometheus")
	cmd := exec.Command("promtool", "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v: %s", err, out)
	}
}

func TestAnOutageIsOneLineAndItsEndAnother(t *testing.T) {
	server := redistest.Start(t)
	d := startSeen(t, "--engine", "redis://"+server.Addr, "--log-format", "json", "--deadline", "1s") // a busy machine must not look like an outage
	d.use(t)
	d.await(t, `weir_beside_decisions_total{as="shadow",difference="same",rule="watched"} 3`)
	server.Stop()
	for range 20 {
		postTake(t, d.url, `{"attributes":{"path":"/login","client":"203.0.113.8"}}`)
	}
	d.await(t, "weir_engine_up 0", "weir_guard_away 1", `weir_decisions_total{reason="",result="away",rule="login"} 20`)
	server.Cont()
	d.await(t, "weir_engine_up 1", "weir_guard_away 0")
	if err := stopDaemon(d.cmd); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"and the policy answers": 1, "the engine is back": 1, "the engine could not decide": 0, `"msg":"refused"`: 2, "203.0.113": 0} {
		if got := strings.Count(d.log.String(), text); got != want {
			t.Errorf("%d lines with %q, want %d:\n%s", got, text, want, d.log)
		}
	}
}

// idleMemory bounds the memory of an idle daemon, in KiB.
var idleMemory = 64 << 10

func TestAnIdleDaemonIsSmall(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	d := startSeen(t)
	d.use(t)
	d.scrape(t)
	status, err := os.ReadFile("/proc/" + strconv.Itoa(d.cmd.Process.Pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("no VmRSS in %s", status)
	}
	kilobytes, _ := strconv.Atoi(string(found[1]))
	t.Logf("%d MiB", kilobytes>>10)
	if kilobytes >= idleMemory {
		t.Errorf("an idle daemon takes %d KiB, want less than %d", kilobytes, idleMemory)
	}
}

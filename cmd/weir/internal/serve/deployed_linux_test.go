package serve

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
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

	pb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/goccy/go-yaml"

	"github.com/weirflow/weir/cmd/weir/internal/xdstest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/testprocess"
)

const (
	alertsFile    = "../../../../deploy/prometheus/weir.rules.yml"
	alertCases    = "../../../../deploy/prometheus/weir.rules.test.yml"
	dashboardFile = "../../../../deploy/grafana/weir.json"
)

// prometheusServer is a Prometheus with the alerts of deploy, which scrapes daemons. The program of Debian has the parser and the
// engine that users have, so no module of ours needs those packages.
type prometheusServer struct{ url string }

// startPrometheus scrapes the ports for metrics of daemons. One of them has a certificate.
func startPrometheus(t *testing.T, encrypted string, plain ...string) *prometheusServer {
	t.Helper()
	testprocess.Require(t, "prometheus", "prometheus")
	alerts, err := filepath.Abs(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	folder, address := t.TempDir(), loopback(t)
	writeFile(t, filepath.Join(folder, "prometheus.yml"), fmt.Sprintf(`
global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
  - {job_name: weir, static_configs: [{targets: [%s]}]}
  - {job_name: encrypted, scheme: https, tls_config: {insecure_skip_verify: true}, static_configs: [{targets: [%s]}]}
`, alerts, strings.Join(plain, ", "), encrypted))
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(folder, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+address, "--log.level=warn")
	cmd.Stderr = os.Stderr
	process, err := testprocess.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.End)
	p := &prometheusServer{"http://" + address}
	awaitAnswer(t, p.url+"/-/ready")
	return p
}

// ask reads the data of an answer of the HTTP API.
func (p *prometheusServer) ask(path string, query url.Values, data any) error {
	response, err := http.Get(p.url + "/api/v1/" + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s", answer.Error)
	}
	return nil
}

// series returns the labels of the series that a query has now, without those that are not numbers.
func (p *prometheusServer) series(query string) (all []map[string]string, err error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := p.ask("query", url.Values{"query": {query}}, &data); err != nil {
		return nil, err
	}
	for _, one := range data.Result {
		if one.Value[1] != "NaN" {
			all = append(all, one.Metric)
		}
	}
	return all, nil
}

// shownQuery is a query of the dashboard or an alert, with the text that shows its labels.
type shownQuery struct{ where, query, text string }

var (
	selectors   = regexp.MustCompile(`\b((?:weir|process|go)_[a-z_]+)(?:\{([^}]*)\})?`)
	matchers    = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"`)
	groupings   = regexp.MustCompile(`\b(?:by|without|on|ignoring) *\(([^)]*)\)`)
	shownLabels = regexp.MustCompile(`\{\{ *(?:\$labels\.)?(\w+) *\}\}`)
	comparisons = regexp.MustCompile(` (==|!=|>=|<=|>|<) `)
)

// problem returns what is wrong with a query: it names a metric or a label that no daemon has, or has no series.
func (p *prometheusServer) problem(q shownQuery) string {
	known := map[string]bool{}
	for _, selector := range selectors.FindAllStringSubmatch(q.query, -1) {
		labels, err := p.labels(selector[1])
		if err != nil || len(labels) == 0 {
			return fmt.Sprintf("no daemon has the metric %s (%v)", selector[1], err)
		}
		for _, matcher := range matchers.FindAllStringSubmatch(selector[2], -1) {
			if !labels[matcher[1]] {
				return fmt.Sprintf("the metric %s has no label %s, but %v", selector[1], matcher[1], slices.Sorted(maps.Keys(labels)))
			}
		}
		maps.Copy(known, labels)
	}
	for _, grouping := range groupings.FindAllStringSubmatch(q.query, -1) {
		for name := range strings.SplitSeq(grouping[1], ",") {
			if !known[strings.TrimSpace(name)] {
				return fmt.Sprintf("it groups by %s, which is no label of its metrics", name)
			}
		}
	}
	all, err := p.series(comparisons.ReplaceAllString(q.query, " $1 bool ")) // an alert has no series while all is well
	if err != nil || len(all) == 0 {
		return fmt.Sprintf("it has no series (%v)", err)
	}
	for _, shown := range shownLabels.FindAllStringSubmatch(q.text, -1) {
		if !slices.ContainsFunc(all, func(labels map[string]string) bool { return labels[shown[1]] != "" }) {
			return fmt.Sprintf("%q shows %s, which is in no series", q.text, shown[1])
		}
	}
	return ""
}

// labels returns the labels of all series of a metric, also of those that have ended.
func (p *prometheusServer) labels(metric string) (map[string]bool, error) {
	var all []map[string]string
	err := p.ask("series", url.Values{"match[]": {metric}, "start": {strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10)}}, &all)
	labels := map[string]bool{}
	for _, one := range all {
		for name := range one {
			labels[name] = true
		}
	}
	return labels, err
}

// await returns what is still wrong with a query when the patience of the test ends.
func (p *prometheusServer) await(q shownQuery) string {
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) { // between two scrapes
		problem := p.problem(q)
		if problem == "" || time.Since(began) > patience {
			return problem
		}
	}
}

// dashboardQueries returns the queries of the panels, and of the lists to choose from, for all daemons and rules.
func dashboardQueries(t *testing.T) (all []shownQuery) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct {
				Name, Type string
				Query      json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(readText(t, dashboardFile)), &dashboard); err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer("$instance", ".*", "$rule", ".*", "$__rate_interval", "1m")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all = append(all, shownQuery{"panel " + panel.Title, filled.Replace(target.Expr), target.LegendFormat})
		}
	}
	chosen := regexp.MustCompile(`label_values\((\w+), (\w+)\)`)
	for _, variable := range dashboard.Templating.List {
		if m := chosen.FindSubmatch(variable.Query); m != nil {
			all = append(all, shownQuery{"variable " + variable.Name, string(m[1]), "{{" + string(m[2]) + "}}"})
		}
	}
	if len(all) < 20 {
		t.Fatalf("the dashboard has %d queries, want more", len(all))
	}
	return all
}

// alertQueries returns the alerts that Prometheus has loaded and evaluated.
func (p *prometheusServer) alertQueries(t *testing.T) (all []shownQuery) {
	t.Helper()
	var loaded struct {
		Groups []struct {
			Rules []struct {
				Name, Query, Health, LastError string
				Annotations                    map[string]string
			}
		}
	}
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) { // between two evaluations
		if err := p.ask("rules", nil, &loaded); err != nil {
			t.Fatal(err)
		}
		pending := false
		all = nil
		for _, group := range loaded.Groups {
			for _, rule := range group.Rules {
				pending = pending || rule.Health == "unknown"
				if rule.Health == "err" {
					t.Errorf("the alert %s fails: %s", rule.Name, rule.LastError)
				}
				all = append(all, shownQuery{"alert " + rule.Name, rule.Query, rule.Annotations["summary"] + rule.Annotations["description"]})
			}
		}
		if !pending && len(all) > 0 || time.Since(began) > patience {
			break
		}
	}
	if want := strings.Count(readText(t, alertsFile), "- alert: "); len(all) != want || want < 10 {
		t.Errorf("Prometheus evaluates %d alerts of the %d in %s", len(all), want, alertsFile)
	}
	return all
}

// Prometheus scrapes daemons on memory, on Redis and with a certificate, under load and through an outage. Each query of the
// dashboard and each alert names metrics and labels that daemons have, and has series.
func TestTheDashboardAndTheAlertsAgreeWithDaemons(t *testing.T) {
	t.Parallel()
	server, folder := redistest.Start(t), t.TempDir()
	(&authority{t: t}).sign(folder, "ca").sign(folder, "weir")
	encrypted := loopback(t)
	startDaemon(t, "--http", "unix:"+filepath.Join(folder, "http"), "--metrics", encrypted, "--admin", "unix:"+filepath.Join(folder, "admin"),
		"--tls-cert", filepath.Join(folder, "weir.pem"), "--tls-key", filepath.Join(folder, "weir.key"))
	onRedis := []string{"--engine", "redis://" + server.Addr, "--deadline", "200ms"}
	local, deny := startSeen(t, append(onRedis, "--prefetch", "--on-failure", "local", "--peers", "2")...), startSeen(t, onRedis...)
	daemons, scraped := []*seenDaemon{startSeen(t, "--state", filepath.Join(folder, "weir.state")), local, deny}, []string{}
	for _, d := range daemons {
		scraped = append(scraped, strings.TrimPrefix(strings.TrimSuffix(d.metrics, "/metrics"), "http://"))
	}
	plane, pushed := xdstest.Start(t, "envoy-ratelimit"), loopback(t)
	plane.Push("1", xdstest.Resource("shop", xdstest.Route("web", xdstest.Limit("user", "", 5, pb.RateLimitUnit_HOUR))))
	startPushed(t, plane.Addr, nil, "--metrics", pushed)
	plane.Accepted("1")
	p := startPrometheus(t, encrypted, append(scraped, pushed)...)
	for _, d := range daemons {
		if d != deny { // whose only slot is that of the other daemon
			d.use(t)
		}
		defer loadGently(t, d.url)()
	}
	server.Stop()
	local.await(t, "weir_engine_up 0", `weir_guard_answers_total{policy="local"}`)
	deny.await(t, "weir_engine_up 0", `weir_decisions_total{reason="",result="away",rule="login"}`)
	server.Cont()
	local.await(t, "weir_engine_up 1")
	for _, q := range slices.Concat(dashboardQueries(t), p.alertQueries(t)) {
		if problem := p.await(q); problem != "" {
			t.Errorf("%s: %s\n%s", q.where, problem, q.query)
		}
	}
	for want, q := range map[string]shownQuery{
		"no daemon has the metric weir_nothing":      {query: `rate(weir_nothing[1m])`},
		"has no label path":                          {query: `weir_rules{path=~".*"}`},
		"it groups by key":                           {query: `sum by (key) (rate(weir_decisions_total{rule=~".*"}[1m]))`},
		"it has no series":                           {query: `weir_decisions_total{result="denied"}`},
		`"{{reason}}" shows reason`:                  {query: `sum by (rule) (weir_decisions_total)`, text: "{{reason}}"},
		"no daemon has the metric weir_engine_downs": {query: `weir_rules > 0 and weir_engine_downs == 0`},
	} {
		if got := p.problem(q); !strings.Contains(got, want) {
			t.Errorf("%s: got the problem %q, want %q", q.query, got, want)
		}
	}
}

// Every alert names its heading of the page that says what to do, and the page has no others.
func TestThePageOfAlertsSaysOfEachWhatToDo(t *testing.T) {
	page, want := readText(t, "../../../../docs/howto/alerts.md"), []string{}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal([]byte(readText(t, alertsFile)), &file); err != nil {
		t.Fatal(err)
	}
	for _, rule := range file.Groups[0].Rules {
		want = append(want, rule.Alert)
		if url := "https://github.com/weirflow/weir/blob/main/docs/howto/alerts.md#" + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != url {
			t.Errorf("%s names %q, want %s", rule.Alert, rule.Annotations["runbook_url"], url)
		}
	}
	var got []string
	for _, section := range strings.Split(page, "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		got = append(got, name)
		if !strings.Contains(text, "\n1. ") {
			t.Errorf("the page does not say what to do about %s", name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the page describes %q, and the alerts are %q", got, want)
	}
}

// loadGently asks until the returned function is called.
func loadGently(t *testing.T, url string) (end func()) {
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			body := fmt.Sprintf(`{"attributes":{"path":"/login","client":"203.0.113.%d"}}`, i%100)
			if response, err := http.Post(url+"/v1/take", "application/json", strings.NewReader(body)); err != nil {
				t.Errorf("a request under load: %v", err)
			} else {
				_ = response.Body.Close()
			}
		}
	})
	return func() { close(stop); done.Wait() }
}

// promtool knows the cases in which an alert fires, without the wait for them.
func TestAlertsFireInTheirCases(t *testing.T) {
	testprocess.Require(t, "promtool", "prometheus")
	for _, args := range [][]string{{"check", "rules", alertsFile}, {"test", "rules", alertCases}} {
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v: %s", args, err, out)
		}
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package metrics_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/metrics"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/cmd/weir/internal/top"
	"github.com/weirflow/weir/layer"
)

func scrape(m *metrics.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func wantLines(t *testing.T, m *metrics.Metrics, lines ...string) {
	t.Helper()
	text := scrape(m)
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}

func TestRefusalsInTheLogAreASample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		m := metrics.New("memory", slog.New(slog.NewTextHandler(&log, nil)))
		e, err := m.Observe(weir.NewMemory(weir.MemoryOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		rule, err := weir.ParseRule("login=fixed window 1/366d")
		if err != nil {
			t.Fatal(err)
		}
		for range 3001 {
			_, _ = e.Take(t.Context(), rule.For("alice", 1))
			time.Sleep(time.Millisecond)
		}
		if lines, quiet := strings.Count(log.String(), "\n"), strings.Count(log.String(), "not_logged_before=999"); lines != 3 || quiet != 2 || strings.Contains(log.String(), "alice") {
			t.Errorf("3000 refusals in 3 s made %d lines, %d of them with the number of others, want 3 and 2, without keys:\n%s", lines, quiet, &log)
		}
		log.Reset()
		for i := range 2000 { // rules at once
			m.Judged(t.Context(), fmt.Sprint("rule", i), false, rules.ByRule)
		}
		if lines := strings.Count(log.String(), "\n"); lines > 10 {
			t.Errorf("2000 rules that refuse at once made %d lines, want at most 10", lines)
		}
	})
}

func TestKeysOfRefusalsAreInTheLogAtLevelDebugAlone(t *testing.T) {
	var log strings.Builder
	m := metrics.New("memory", slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	e, err := m.Observe(weir.NewMemory(weir.MemoryOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	rule, err := weir.ParseRule("login=deny all")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = e.Take(t.Context(), rule.For("\x1b[31m"+strings.Repeat("k", 500), 1))
	if got := log.String(); strings.Contains(got, "\x1b") || !strings.Contains(got, `key="\x1b[31m`) || len(got) > 300 {
		t.Errorf("got %q, want the printable beginning of the key", got)
	}
}

func TestDifferencesOfShadowsAndCandidates(t *testing.T) {
	m := metrics.New("memory", slog.New(slog.DiscardHandler))
	admits, refuses, other := weir.Decision{Allowed: true, Rule: "r"}, weir.Decision{Rule: "r"}, weir.Decision{Rule: "another"}
	for _, c := range []struct {
		name            string
		inForce, beside weir.Decision
		err             error
	}{
		{"r~candidate", admits, refuses, nil},
		{"r~candidate", refuses, admits, nil},
		{"r~candidate", other, admits, nil}, // another rule would still refuse
		{"r~candidate", admits, admits, nil},
		{"r~candidate", admits, weir.Decision{}, errors.New("gone")},
		{"s", admits, weir.Decision{Rule: "s", Cause: weir.ByBan, BanBegun: true}, nil},
		{"s", refuses, admits, nil}, // a shadow would join the rules that refuse
	} {
		m.Compared(c.name, c.inForce, c.beside, c.err)
	}
	wantLines(t, m, `weir_beside_decisions_total{as="candidate",difference="stricter",rule="r"} 1`, `weir_beside_decisions_total{as="candidate",difference="looser",rule="r"} 1`,
		`weir_beside_decisions_total{as="candidate",difference="same",rule="r"} 2`, `weir_beside_decisions_total{as="candidate",difference="error",rule="r"} 1`,
		`weir_beside_decisions_total{as="shadow",difference="stricter",rule="s"} 1`, `weir_beside_decisions_total{as="shadow",difference="same",rule="s"} 1`,
		`weir_beside_bans_begun_total{as="shadow",rule="s"} 1`)
}

func TestPathsInMetricsAreThoseThatAreServed(t *testing.T) {
	m := metrics.New("memory", slog.New(slog.DiscardHandler))
	handler := m.HTTP(http.NotFoundHandler(), func(path string) bool { return path == "/v1/take" })
	for i := range 10 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, fmt.Sprint("/", i), nil))
	}
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/take", nil))
	wantLines(t, m, `weir_http_requests_total{code="404",path="other"} 10`, `weir_http_requests_total{code="404",path="/v1/take"} 1`, `weir_http_request_duration_seconds_count{path="other"} 10`)
}

func TestShadowsAndCandidatesAreNotAmongTheDecisions(t *testing.T) {
	var log strings.Builder
	m := metrics.New("memory", slog.New(slog.NewTextHandler(&log, nil)))
	e, err := m.Observe(weir.NewMemory(weir.MemoryOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	beside, err := m.ObserveBeside(weir.NewMemory(weir.MemoryOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"trial", "api~candidate", "api"} {
		e := e
		if name != "api" {
			e = beside
		}
		rule, err := weir.NewRule(name, weir.FixedWindow{Rate: weir.PerHour(1)})
		if err != nil {
			t.Fatal(err)
		}
		for range 200 { // some are samples of the heavy keys
			_, _ = e.Take(t.Context(), rule.For("alice", 1))
		}
	}
	text := scrape(m)
	wantLines(t, m, `weir_rule_fullest_key_ratio{rule="trial"} 1`) // its one figure beside the decisions
	if text = strings.ReplaceAll(text, `weir_rule_fullest_key_ratio{rule="trial"}`, ""); strings.Contains(text, "~") || strings.Contains(text, "trial") || !strings.Contains(text, `weir_decisions_total{reason="count",result="refused",rule="api"} 199`) {
		t.Errorf("got shadows among the decisions, or not all of the rule in force:\n%s", text)
	}
	if strings.Contains(log.String(), "~") || strings.Contains(log.String(), "trial") {
		t.Errorf("the log has refusals that refuse nobody:\n%s", &log)
	}
	for name, list := range map[string][]top.Count{
		"most refused": m.Top.Top("", top.Refused, 10), "most admitted": m.Top.Top("", top.Taken, 10), "busiest": m.Top.Busiest(10), "trial": m.Top.Top("trial", top.Refused, 10),
	} {
		want := map[string]bool{"trial": true, "api": false} // candidates are no rules
		if name == "trial" {
			delete(want, "api")
		}
		for _, c := range list {
			if mark, ok := want[c.Rule]; !ok || c.Shadow != mark {
				t.Errorf("%s: got %+v, want shadows marked, and no candidate", name, c)
			}
			delete(want, c.Rule)
		}
		if len(want) > 0 {
			t.Errorf("%s: got %+v, want %v, too", name, list, want)
		}
	}
}

func TestTheEndsOfCertificatesAreTold(t *testing.T) {
	m, failing := metrics.New("memory", slog.New(slog.DiscardHandler)), false
	engine := weir.NewMemory(weir.MemoryOptions{})
	m.Watch(metrics.Sources{Engine: engine, Desk: decide.New(decide.Options{Engine: engine}), Unready: func() string { return "" }, CredentialsFail: func() bool { return failing },
		Certificates: func() map[string]time.Time { return map[string]time.Time{"tls-cert": time.Unix(1700000000, 0)} }})
	wantLines(t, m, `weir_certificate_expiry_timestamp_seconds{flag="tls-cert"} 1.7e+09`, "weir_credentials_reload_failing 0")
	failing = true
	wantLines(t, m, "weir_credentials_reload_failing 1")
}

func TestACountedDecisionNeedsNoMemoryUnlessSomebodyFollows(t *testing.T) {
	m := metrics.New("memory", slog.New(slog.DiscardHandler))
	engine, err := m.Observe(weir.NewMemory(weir.MemoryOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	rule, err := weir.ParseRule("default=1000000000/s")
	if err != nil {
		t.Fatal(err)
	}
	requests := []weir.Request{rule.For("k", 1)}
	followed := 0
	m.Follow(func(*layer.Observation) { followed++ })
	m.Follow(nil)
	if made := testing.AllocsPerRun(1000, func() {
		if d, err := engine.Take(t.Context(), requests...); err != nil || !d.Allowed {
			t.Fatalf("got %v, %v, want an admission", d, err)
		}
	}); made != 0 || followed != 0 {
		t.Errorf("a decision made %v objects and %d were followed, want none", made, followed)
	}
}

// A rule that matches and does not bind has metrics of its own before it refuses anything.
func TestARuleThatDoesNotBindHasItsTakesAndItsFullestKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New("memory", slog.New(slog.DiscardHandler))
		engine, err := m.Observe(weir.NewMemory(weir.MemoryOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		go m.Peek(t.Context(), func() bool { return false })
		binds, other := mustRule(t, "binds=fixed window 1000/d"), mustRule(t, "other=fixed window 2000/d")
		for range 500 {
			if d, err := engine.Take(t.Context(), binds.For("all", 1), other.For("alice", 1)); err != nil || !d.Allowed {
				t.Fatalf("got %+v, %v, want an admission", d, err)
			}
		}
		time.Sleep(time.Minute)
		wantLines(t, m, `weir_rule_takes_total{rule="binds"} 500`, `weir_rule_takes_total{rule="other"} 500`, `weir_rule_fullest_key_ratio{rule="binds"} 0.5`, `weir_rule_fullest_key_ratio{rule="other"} 0.25`)
		if text := scrape(m); strings.Contains(text, "alice") || strings.Contains(text, `weir_decisions_total{reason="",result="admitted",rule="other"}`) {
			t.Errorf("got a key, or decisions of a rule that did not bind:\n%s", text)
		}
		m.Top.Changed("other")
		if text := scrape(m); strings.Contains(text, `weir_rule_fullest_key_ratio{rule="other"}`) {
			t.Errorf("a limit that has changed has the figure of before:\n%s", text)
		}
	})
}

func mustRule(t testing.TB, text string) *weir.Rule {
	t.Helper()
	rule, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

package backtest_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/randtest"
)

func pick[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// randomFile returns rules of all kinds.
func randomFile(random *rand.Rand) string {
	var b strings.Builder
	fmt.Fprintf(&b, "attributes: [plan, units]\ndefault: %s\nrules:\n", pick(random, "allow", "allow", "deny"))
	match := func() string {
		return pick(random, "any", "any", "{path: /login}", "{path: /api/*}", "{method: POST}", "{host: '*.example.com'}", "{client: 192.0.2.0/31}",
			"{header.x-api-key: '*'}", "{plan: [gold, staff], path: /*}", "{header.user-agent: '~*bot'}", "{uri: '~^/[a-z]+$'}")
	}
	for i := range 1 + random.IntN(8) {
		fmt.Fprintf(&b, "  - name: r%d\n    match: %s\n", i, match())
		if random.IntN(4) == 0 {
			fmt.Fprintf(&b, "    except: %s\n", pick(random, "{path: /static/*}", "{client: 192.0.2.1}", "{header.x-api-key: k1}"))
		}
		switch random.IntN(9) {
		case 0:
			fmt.Fprintf(&b, "    deny: true\n    shadow: %v\n", random.IntN(2) == 0)
			continue
		case 1:
			b.WriteString("    unlimited: true\n")
			continue
		case 2:
			b.WriteString("    shadow: true\n")
		case 3:
			b.WriteString("    candidate: 1/s\n")
		case 4, 5, 6:
			fmt.Fprintf(&b, "    otherwise: p%d\n", random.IntN(3))
		}
		fmt.Fprintf(&b, "    limit: %s\n", pick(random, "3/s", "token bucket 5/m burst 9", "fixed window 9/10s", "sliding window 7/10s", "sliding log 6/5s", "[4/s, fixed window 30/1m]", "quota 40/day", "rate gate 3/s"))
		key := pick(random, "", "client", "[client, path]", "header.x-api-key", "host", "plan")
		if key != "" {
			fmt.Fprintf(&b, "    key: %s\n    missing: %s\n    hashed: %v\n", key, pick(random, "share", "refuse", "skip"), random.IntN(4) == 0)
		}
		if key == "client" && random.IntN(2) == 0 {
			b.WriteString("    keys: {192.0.2.3: 9/s}\n    plans: {by: plan, limits: {gold: 20/s}}\n")
		}
		if random.IntN(4) == 0 {
			b.WriteString("    cost: {from: units, default: 2}\n")
		}
	}
	writePools(random, &b)
	return b.String()
}

// writePools writes three pools, some of which name another.
func writePools(random *rand.Rand, b *strings.Builder) {
	for i := range 3 {
		fmt.Fprintf(b, "  - name: p%d\n    match: otherwise\n    limit: %s\n", i, pick(random, "fixed window 9/1m", "token bucket 1/s burst 5", "sliding window 20/1m", "sliding log 6/30s"))
		if key := pick(random, "", "", "client", "header.x-api-key", "plan"); key != "" {
			fmt.Fprintf(b, "    key: %s\n    missing: %s\n", key, pick(random, "share", "refuse", "skip"))
		}
		if i < 2 && random.IntN(2) == 0 {
			fmt.Fprintf(b, "    otherwise: p%d\n", i+1)
		}
		if random.IntN(4) == 0 {
			b.WriteString("    cost: 2\n")
		}
	}
}

// asked is a request, as a daemon is asked and as a log has it.
type asked struct {
	At         int64
	Attributes map[string]string
}

func randomAsked(random *rand.Rand, now int64) asked {
	a := map[string]string{"client": fmt.Sprintf("192.0.2.%d", random.IntN(5)), "method": pick(random, "GET", "POST", "post"),
		"path": pick(random, "/login", "/%6cogin/", "/api/x?y", "/static/a", "/", "//x"), "host": pick(random, "a.example.com", "B.Example.com:80", "x.org"),
		"header.user-agent": pick(random, "curl", "Googlebot")}
	for name, values := range map[string][]string{"header.x-api-key": {"", "k1", "k2"}, "plan": {"", "gold", "free"}, "units": {"", "1", "3", "many"}} {
		if value := values[random.IntN(len(values))]; value != "" {
			a[name] = value
		}
	}
	return asked{now, a}
}

// logged returns the line of a log of JSON lines. It has an empty text for what a request did not have.
func (a asked) logged() string {
	line := map[string]string{"time": time.Unix(0, a.At).UTC().Format(time.RFC3339Nano)}
	for field, attribute := range map[string]string{"ip": "client", "method": "method", "uri": "path", "host": "host", "http_user_agent": "header.user-agent",
		"http_x_api_key": "header.x-api-key", "plan": "plan", "units": "units"} {
		line[field] = a.Attributes[attribute]
	}
	text, _ := json.Marshal(line)
	return string(text) + "\n"
}

// daemon is a daemon's API with a clock of the test, and its recording.
type daemon struct {
	*api.API
	now      int64
	recorded strings.Builder
	calls    []bool              // that were recorded
	paid     map[[2]string]int64 // requests by the rule that was asked and the one that paid
}

func newDaemon(config *rules.Config) *daemon {
	d := &daemon{paid: map[[2]string]int64{}}
	log := slog.New(slog.DiscardHandler)
	d.API = api.New(api.Options{Log: log, Desk: decide.New(decide.Options{
		Engine: weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return d.now }}), Rules: config.Named(), Config: config, Log: log,
		Recorded: func(requests []weir.Request, allowed bool) {
			for _, q := range requests {
				text, _ := json.Marshal(map[string]any{"time": time.Unix(0, d.now).UTC(), "rule": q.Rule.Name(), "key": q.Key, "cost": q.Cost, "allowed": allowed})
				d.recorded.Write(append(text, '\n'))
			}
			d.calls = append(d.calls, allowed)
		},
		PaidBy: func(asked, paid string) { d.paid[[2]string{asked, paid}]++ },
	})})
	return d
}

func (d *daemon) ask(t *testing.T, a asked) (allowed bool) {
	t.Helper()
	d.now = a.At
	body, _ := json.Marshal(map[string]any{"attributes": a.Attributes})
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequest("POST", "/v1/take", strings.NewReader(string(body))))
	var answer struct{ Allowed *bool }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Allowed == nil {
		t.Fatalf("%s: %d %s", body, w.Code, w.Body)
	}
	return *answer.Allowed
}

func decided(t *testing.T, config *rules.Config, log string) []backtest.Decision {
	t.Helper()
	return decisionsOf(t, config, log, "", 0)
}

func decisionsOf(t *testing.T, config *rules.Config, log, format string, longest time.Duration) []backtest.Decision {
	t.Helper()
	all, err := trafficOf(t, config, log, format, longest).Decisions(0)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func trafficOf(t *testing.T, config *rules.Config, log, format string, longest time.Duration) *backtest.Traffic {
	t.Helper()
	reader, err := accesslog.NewReader(accesslog.Options{Format: format})
	if err != nil {
		t.Fatal(err)
	}
	traffic := backtest.New(backtest.File{Name: "weir.yaml", Config: config})
	logs := backtest.NewLogs(traffic, reader, longest)
	if err := reader.Read("log", strings.NewReader(log), logs.Entry); err != nil {
		t.Fatal(err)
	}
	if reader.Rejected() > 0 {
		t.Fatalf("%d lines are rejected: %v\n%s", reader.Rejected(), reader.Samples(), log[:min(len(log), 500)])
	}
	return traffic
}

// A log with all attributes gives every decision of a daemon, by rules of all kinds, and so does the recording, except by rules with
// plans, which it does not name.
func TestALogGivesTheDecisionsOfADaemon(t *testing.T) {
	refused, open, paid := 0, 0, int64(0)
	for seed := range randtest.Seeds(t, 150, 30) {
		random := randtest.New(seed)
		text := randomFile(random)
		config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(text)})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		d := newDaemon(config)
		var log strings.Builder
		var want []bool
		now := time.Date(2026, 11, 27, 23, 59, 30, 0, time.UTC).UnixNano()
		for range 150 {
			now += 1 + random.Int64N(int64(pick(random, time.Millisecond, 200*time.Millisecond, 5*time.Second)))
			a := randomAsked(random, now)
			want = append(want, d.ask(t, a))
			log.WriteString(a.logged())
		}
		for i, got := range decided(t, config, log.String()) {
			if got.Open || got.Allowed != want[i] {
				t.Fatalf("request %d: got %+v, want %v\n%s", i, got, want[i], text)
			}
			if !want[i] {
				refused++
			}
		}
		paid += checkPaid(t, config, log.String(), d.paid)
		if d.recorded.Len() == 0 {
			continue
		}
		sure := int64(0)
		for i, got := range decided(t, config, d.recorded.String()) {
			switch {
			case got.Open:
				open++
			case got.Allowed != d.calls[i]:
				t.Fatalf("recorded call %d: got %+v, want %v\n%s", i, got, d.calls[i], text)
			default:
				sure++
			}
		}
		checkOtherwise(t, config, d.recorded.String(), 0)
		turned := strings.NewReplacer(`"allowed":true`, `"allowed":false`, `"allowed":false`, `"allowed":true`)
		checkOtherwise(t, config, turned.Replace(d.recorded.String()), sure)
	}
	if refused == 0 || open == 0 || paid == 0 {
		t.Errorf("%d requests are refused, %d recorded calls undecided, and %d requests paid by pools; want some", refused, open, paid)
	}
}

// checkPaid checks who paid for whom, and returns how many requests pools paid for.
func checkPaid(t *testing.T, config *rules.Config, log string, want map[[2]string]int64) (all int64) {
	t.Helper()
	report, err := trafficOf(t, config, log, "", 0).Report(backtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	asked, paid := map[string]int64{}, map[string]int64{}
	for pair, n := range want {
		asked[pair[0]], paid[pair[1]], all = asked[pair[0]]+n, paid[pair[1]]+n, all+n
	}
	for _, l := range report.Limits {
		switch {
		case l.RuleReport == nil || l.Rule == "":
		case l.Paid != asked[l.Rule]:
			t.Fatalf("others paid %d requests of %s, want %d", l.Paid, l.Rule, asked[l.Rule])
		case config.Rule(l.Rule) != nil && config.Rule(l.Rule).Pool && l.Admitted != paid[l.Rule] && l.Unit == "":
			t.Fatalf("%s paid %d requests, want %d", l.Rule, l.Admitted, paid[l.Rule])
		}
	}
	return all
}

// checkOtherwise checks how many decisions on a recording differ from it.
func checkOtherwise(t *testing.T, config *rules.Config, recording string, want int64) {
	t.Helper()
	report, err := trafficOf(t, config, recording, "", 0).Report(backtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Limits) > 0 && report.Limits[0].Otherwise != want {
		t.Fatalf("%d decisions are not as recorded, want %d", report.Limits[0].Otherwise, want)
	}
}

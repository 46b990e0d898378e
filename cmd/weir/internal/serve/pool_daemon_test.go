package serve

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/redistest"
)

const poolFile = `attributes: [tenant]
rules:
  - {name: floor, match: {path: /v1*}, key: tenant, limit: fixed window 2/d, otherwise: pool}
  - {name: pool, match: otherwise, limit: fixed window 10/d}
  - {name: jobs, match: {path: /jobs}, key: tenant, limit: concurrency 1 lease 1m, otherwise: spare}
  - {name: spare, match: otherwise, limit: concurrency 1 lease 1m}
`

// pooledDaemons are daemons with one file, and what they share.
func poolArgs(t *testing.T, where ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	writeFile(t, file, poolFile)
	return append(where, "--http", "127.0.0.1:0", "--config", file)
}

// A token names who paid, so what was reserved comes back there: at another daemon of the engine, and after a restart.
func TestATokenOfAPoolHoldsAtEveryDaemonAndAfterARestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, where := range map[string][]string{
		"Redis":  {"--engine", "redis://" + server.Addr, "--deadline", "2s", "--on-failure", "local", "--peers", "2", "--prefetch"},
		"memory": {"--state", filepath.Join(t.TempDir(), "state")},
	} {
		t.Run(name, func(t *testing.T) {
			args := poolArgs(t, where...)
			one := daemonCommand(t, args...)
			at := startAndFindURL(t, one)
			ask(t, at+"/v1/take", `{"rule":"floor","key":"a","cost":2}`)
			units := ask(t, at+"/v1/reserve", `{"rule":"floor","key":"a","cost":4}`)
			slot := ask(t, at+"/v1/reserve", `{"rule":"jobs","key":"a"}`)
			more := ask(t, at+"/v1/reserve", `{"rule":"jobs","key":"a"}`)
			for answer, want := range map[string]string{units: `"rule":"pool","key":"","limit":10,"remaining":6,`, slot: `"rule":"jobs"`, more: `"rule":"spare"`} {
				if !strings.Contains(answer, want) || strings.Contains(want, "jobs") == strings.Contains(answer, `"paid_by":`) {
					t.Fatalf("reserve: got %s, want %s", answer, want)
				}
			}
			if name == "Redis" {
				at = startDaemon(t, args...)
				if got := ask(t, at+"/v1/renew", `{"token":"`+tokenIn(t, more)+`"}`); !strings.Contains(got, `"lease":60`) {
					t.Errorf("renew: got %s", got)
				}
			}
			if err := stopDaemon(one); err != nil {
				t.Fatal(err)
			}
			if name == "memory" {
				at = startDaemon(t, args...)
			}
			for _, want := range []string{"{}\n", `"status":404`} {
				if got := ask(t, at+"/v1/settle", `{"token":"`+tokenIn(t, units)+`","cost":1}`); !strings.Contains(got, want) {
					t.Errorf("settle: got %s, want %s", got, want)
				}
			}
			if got := ask(t, at+"/v1/settle", `{"token":"`+tokenIn(t, more)+`"}`); got != "{}\n" {
				t.Errorf("settle: got %s", got)
			}
			for body, want := range map[string]string{
				`{"attributes":{"path":"/v1/x","tenant":"a"}}`: `"rule":"pool","key":"","limit":10,"remaining":9,`,
				`{"attributes":{"path":"/jobs","tenant":"a"}}`: `"rule":"spare","key":"","limit":1,"remaining":1,`, // and jobs is held
			} {
				if got := ask(t, at+"/v1/peek", body); !strings.Contains(got, want) {
					t.Errorf("peek %s: got %s, want %s", body, got, want)
				}
			}
		})
	}
}

// Overrides stand in for the limits of each try, a block is final, and the metrics see one decision, of who paid.
func TestOverridesAndMetricsOfAPool(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin, metrics := "unix:"+filepath.Join(t.TempDir(), "admin"), loopback(t)
	args := poolArgs(t, "--engine", "redis://"+server.Addr, "--deadline", "2s", "--admin", admin, "--metrics", metrics)
	at := startDaemon(t, args...)
	take := func(tenant, want string) {
		t.Helper()
		if got := ask(t, at+"/v1/take", `{"attributes":{"path":"/v1/x","tenant":"`+tenant+`"}}`); !strings.Contains(got, want) {
			t.Errorf("take of %s: got %s, want %s", tenant, got, want)
		}
	}
	ctl := func(words ...string) string { return ctlAt(t, admin, words...) }
	const byFloor, byPool = `{"allowed":true,"rule":"floor"`, `{"allowed":true,"rule":"pool"`
	for _, want := range []string{byFloor, byFloor, byPool, byPool} {
		take("a", want)
	}
	ctl("block", "b", "--rule", "floor", "--for", "1h")
	take("b", `{"allowed":false,"rule":"floor","key":"b","limit":0,`)
	ctl("limit", "c", "fixed window 1/d", "--rule", "floor", "--for", "1h")
	take("c", byFloor)
	take("c", byPool)
	if got := ctl("limit", "", "fixed window 3/d", "--rule", "pool", "--for", "1h"); !strings.Contains(got, "fixed window 3/d") {
		t.Errorf("a limit of the pool: got %s", got)
	}
	take("a", `{"allowed":false,"rule":"floor","key":"a","limit":2,`)
	if got := ctl("peek", "pool", ""); !strings.Contains(got, "0 of 3") {
		t.Errorf("a peek at the pool: got %s", got)
	}
	if got := ctl("shadow", "pool"); !strings.Contains(got, "a shadow asks none") {
		t.Errorf("a shadow of the pool: got %s, want a reason", got)
	}
	ctl("shadow", "floor")
	take("d", `{"allowed":true,"rule":"",`)
	take("d", `{"allowed":true,"rule":"",`)
	take("d", `{"allowed":true,"rule":"",`) // and no pool pays
	text := fetchText(t, http.DefaultClient, "http://"+metrics+"/metrics")
	for _, want := range []string{
		`weir_decisions_total{reason="",result="admitted",rule="floor"} 3`, `weir_decisions_total{reason="",result="admitted",rule="pool"} 3`,
		`weir_decisions_total{reason="count",result="refused",rule="floor"} 2`, `weir_paid_for_total{asked="floor",rule="pool"} 3`, `weir_rule_takes_total{rule="pool"} 3`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics have no line %s:\n%s", want, linesWith(text, "pool\"", "floor\""))
		}
	}
	if strings.Contains(text, `result="refused",rule="pool"`) {
		t.Errorf("a refusal of the pool is counted:\n%s", linesWith(text, "pool\""))
	}
}

// With --shadow no rule is enforced, so no floor asks its pool; weir ctl enforce has one ask.
func TestAShadowOfAllAsksNoPool(t *testing.T) {
	t.Parallel()
	admin := "unix:" + filepath.Join(t.TempDir(), "admin")
	at := startDaemon(t, poolArgs(t, "--shadow", "--admin", admin)...)
	for range 3 {
		if got := ask(t, at+"/v1/take", `{"rule":"floor","key":"a"}`); !strings.Contains(got, `{"allowed":true,"rule":"floor","key":"a"`) || strings.Contains(got, "paid_by") {
			t.Errorf("with --shadow: got %s", got)
		}
	}
	ctlAt(t, admin, "enforce", "floor")
	for _, want := range []string{`"rule":"pool"`, `"rule":"pool"`} { // the shadow has counted
		if got := ask(t, at+"/v1/take", `{"rule":"floor","key":"a"}`); !strings.Contains(got, want) {
			t.Errorf("enforced: got %s, want %s", got, want)
		}
	}
}

// ctlAt runs weir ctl, and returns what it says.
func ctlAt(t *testing.T, admin string, words ...string) string {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Args = append([]string{"weir", "ctl"}, append(words, "--admin", admin)...)
	out, _ := cmd.CombinedOutput() // some commands are refused
	return string(out)
}

// linesWith returns the lines that have one of some texts.
func linesWith(text string, parts ...string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for _, one := range parts {
			if strings.Contains(line, one) && !strings.Contains(line, "_bucket") {
				b.WriteString(line)
				break
			}
		}
	}
	return b.String()
}

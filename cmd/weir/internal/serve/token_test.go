package serve

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

// Every daemon on a server honours the tokens of the others, and a daemon those that it gave before a restart. Each is settled
// once.
func TestTokensHoldAtEveryDaemonAndAfterARestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, where := range map[string][]string{
		"Redis":  {"--engine", "redis://" + server.Addr, "--deadline", "2s"}, // a busy machine must not look like an outage
		"memory": {"--state", filepath.Join(t.TempDir(), "state")},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(where, "--http", "127.0.0.1:0", "--rule", "jobs=concurrency 3 lease 1m", "--rule", "day=fixed window 100/1d")
			one := daemonCommand(t, args...)
			at := startAndFindURL(t, one)
			const asks = `{"requests":[{"rule":"jobs","key":"a"},{"rule":"day","key":"a","cost":10}]}`
			settled, open := tokenIn(t, ask(t, at+"/v1/reserve", asks)), tokenIn(t, ask(t, at+"/v1/reserve", asks))
			ask(t, at+"/v1/settle", `{"token":"`+settled+`","costs":[1,4]}`)
			if name == "Redis" {
				other := startDaemon(t, args...)
				open = tokenIn(t, ask(t, other+"/v1/renew", `{"token":"`+open+`"}`))
			}
			if err := stopDaemon(one); err != nil {
				t.Fatal(err)
			}
			at = startDaemon(t, args...)
			for _, c := range []struct{ token, want string }{{settled, `"status":404`}, {open, `{}`}, {open, `"status":404`}} {
				if got := ask(t, at+"/v1/settle", `{"token":"`+c.token+`","costs":[1,1]}`); !strings.Contains(got, c.want) {
					t.Errorf("settle: got %s, want %s", got, c.want)
				}
			}
			for rule, want := range map[string]string{"jobs": `"remaining":3`, "day": `"remaining":95`} {
				if got := ask(t, at+"/v1/peek", `{"key":"a","rule":"`+rule+`"}`); !strings.Contains(got, want) {
					t.Errorf("%s: got %s, want %s", rule, got, want)
				}
			}
		})
	}
}

func tokenIn(t *testing.T, answer string) string {
	t.Helper()
	var a struct{ Token string }
	if err := json.Unmarshal([]byte(answer), &a); err != nil || a.Token == "" {
		t.Fatalf("got %s (%v), want a token", answer, err)
	}
	return a.Token
}

// While Redis is away no daemon settles a token, because another might, too.
func TestATokenIsSettledOnceThroughAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	// A busy machine must not look like an outage: units whose return had no answer stay spent.
	args := []string{"--engine", "redis://" + server.Addr, "--deadline", "2s", "--http", "127.0.0.1:0", "--rule", "default=fixed window 100/366d", "--on-failure", "local", "--peers", "2"}
	one, two := startDaemon(t, args...), startDaemon(t, args...)
	ask(t, one+"/v1/take", `{"key":"a","cost":50}`)
	settle := `{"token":"` + tokenIn(t, ask(t, one+"/v1/reserve", `{"key":"a","cost":20}`)) + `","cost":0}`
	server.Stop()
	for _, at := range []string{one, two} {
		if got := ask(t, at+"/v1/settle", settle); !strings.Contains(got, `"status":503,"counted":"no"`) {
			t.Errorf("settle: got %s, want a 503 that can be tried again", got)
		}
	}
	server.Cont()
	settled, last := 0, ""
	for began := time.Now(); settled == 0 && time.Since(began) < patience; time.Sleep(20 * time.Millisecond) {
		for _, at := range []string{one, two} {
			if last = ask(t, at+"/v1/settle", settle); last == "{}\n" {
				settled++
			}
		}
	}
	if settled != 1 {
		t.Fatalf("%d settlements, want one; the last answer is %s", settled, last)
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		got := ask(t, two+"/v1/peek", `{"key":"a"}`)
		if strings.Contains(got, `"limit":100,"remaining":50,`) {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("got %s after %d settlements, want the 20 units once", got, settled)
		}
	}
}

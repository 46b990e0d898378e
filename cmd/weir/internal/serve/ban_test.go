package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirflow/weir/internal/redistest"
)

// banRules have a ban that is longer than the wait for the next unit, so that it binds.
const banRules = `rules:
  - {name: login, match: {domain: m, descriptor.user: "*"}, key: descriptor.user, limit: fixed window 1/10d and ban 48d after 2/h}
`

// banWays ask for a unit of a key of the rule login, and return all of the answer.
var banWays = map[string]func(d *waysDaemon, key string) string{
	"/v1/take":    banPost("/v1/take"),
	"/v1/peek":    banPost("/v1/peek"),
	"/v1/reserve": banPost("/v1/reserve"),
	"/v1/check": func(d *waysDaemon, key string) string {
		return d.whole("/v1/check?rule=login&key="+key, "")
	},
	"/json": func(d *waysDaemon, key string) string { return d.whole("/json", descriptorJSON(key, 1)) },
	"WEIR.TAKE": func(d *waysDaemon, key string) string {
		lines, err := d.lines("WEIR.TAKE login " + key)
		return fmt.Sprint(lines, err)
	},
	"WEIR.PEEK": func(d *waysDaemon, key string) string {
		lines, err := d.lines("WEIR.PEEK login " + key)
		return fmt.Sprint(lines, err)
	},
	"ShouldRateLimit": func(d *waysDaemon, key string) string {
		a, err := d.envoy.ShouldRateLimit(context.Background(), &ratelimit.RateLimitRequest{Domain: "m", Descriptors: descriptorsOf(key)})
		return fmt.Sprint(a.GetOverallCode(), a.GetDynamicMetadata().AsMap(), a.GetResponseHeadersToAdd(), a.GetStatuses()[0].GetCurrentLimit(), err)
	},
}

func banPost(path string) func(d *waysDaemon, key string) string {
	return func(d *waysDaemon, key string) string {
		return d.whole(path, fmt.Sprintf(`{"rule":"login","key":%q}`, key))
	}
}

// whole returns an answer with its header.
func (d *waysDaemon) whole(path, body string) string {
	a, err := http.Post(d.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	return fmt.Sprint(a.StatusCode, a.Header, string(text), err)
}

// namesTheBan are what answers to a banned key have.
var namesTheBan = map[string][]string{
	"/v1/take":        {`"refused_by":1,"cause":"ban"`, `"limit":1,"remaining":0`},
	"/v1/peek":        {`"refused_by":1,"cause":"ban"`, `"limit":1,"remaining":0`},
	"/v1/reserve":     {`"refused_by":1,"cause":"ban"`, `"limit":1,"remaining":0`},
	"/v1/check":       {"429", "Retry-After:[41472", "banned", `\"login\"`, `Ratelimit-Policy:["login";q=1;w=864000]`},
	"/json":           {"429"},
	"WEIR.TAKE":       {"[*7 :0 :1 :0 :414", " :0 $3 ban"},
	"WEIR.PEEK":       {"[*7 :0 :1 :0 :414", " :0 $3 ban"},
	"ShouldRateLimit": {"OVER_LIMIT", "cause:ban", "retry_after:4.147", `key:"retry-after"`, "requests_per_unit:1"},
}

// asked asks the admin port about the key, as weir ctl does.
func asked(t *testing.T, socket, what string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequest(http.MethodPost, "http://localhost/v1/admin/"+what, strings.NewReader(`{"rule":"login","key":"k"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Weir-Request", "test")
	r.Header.Set("Content-Type", "application/json")
	a, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", what, a.StatusCode, text, err)
	}
	return string(text)
}

func TestABanIsNamedOnEveryWay(t *testing.T) {
	for name, args := range map[string][]string{"memory": nil, "redis": {"--engine", "redis://" + redistest.Start(t).Addr, "--deadline", "5s"}} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			file := filepath.Join(folder, "ban.yaml")
			if err := os.WriteFile(file, []byte(banRules), 0o600); err != nil {
				t.Fatal(err)
			}
			socket := filepath.Join(folder, "admin")
			d := startWays(t, append([]string{"--config", file, "--admin", "unix:" + socket}, args...)...)
			key := "k"
			for range 3 {
				banWays["/v1/take"](d, key)
			}
			for way, ask := range banWays {
				got := ask(d, key)
				for _, want := range namesTheBan[way] {
					if !strings.Contains(strings.ReplaceAll(got, ": ", ":"), want) {
						t.Errorf("%s: got %s\nwithout %s", way, got, want)
					}
				}
			}
			if begun, now := d.value(`weir_bans_begun_total\{rule="login"\}`), d.value(`weir_banned_keys\{rule="login"\}`); begun != 1 || now != 1 {
				t.Errorf("got %v bans begun and %v keys banned now, want 1 each", begun, now)
			}
			if got := asked(t, socket, "peek"); !strings.Contains(got, `"allowed":false`) || !strings.Contains(got, `"cause":"ban"`) {
				t.Errorf("ctl peek: got %s", got)
			}
			asked(t, socket, "reset")
			if got := banWays["/v1/take"](d, key); !strings.Contains(got, `"allowed":true`) {
				t.Errorf("after a reset: got %s", got)
			}
			if now := d.value(`weir_banned_keys\{rule="login"\}`); now != 0 {
				t.Errorf("after a reset %v keys are banned", now)
			}
		})
	}
}

// A shadow bans nobody. Its bans count as those of a shadow, and as no others.
func TestBansOfShadowsCountBesideThoseInForce(t *testing.T) {
	for name, args := range map[string][]string{"memory": nil, "redis": {"--engine", "redis://" + redistest.Start(t).Addr, "--deadline", "5s"}} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ban.yaml")
			if err := os.WriteFile(file, []byte(banRules), 0o600); err != nil {
				t.Fatal(err)
			}
			d := startWays(t, append([]string{"--config", file, "--shadow"}, args...)...)
			for range 4 {
				if got := banWays["/v1/take"](d, "k"); !strings.Contains(got, `"allowed":true`) {
					t.Errorf("a shadow answers %s", got)
				}
			}
			await(t, "a ban of a shadow is counted", func() bool { return d.value(`weir_beside_bans_begun_total\{as="shadow",rule="login"\}`) == 1 })
			if begun, now := d.value(`weir_bans_begun_total\{rule="login"\}`), d.value(`weir_banned_keys\{rule="login"\}`); begun > 0 || now > 0 {
				t.Errorf("got %v bans begun in force and %v banned keys, want none", begun, now)
			}
		})
	}
}

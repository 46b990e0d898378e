package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/internal/sqltest"
)

// urlOf returns the URL of a PostgreSQL server.
func urlOf(server *sqltest.Server) string {
	return "postgres://postgres@/postgres?sslmode=disable&host=" + url.QueryEscape(server.Dir)
}

// Two daemons share one limit in one PostgreSQL. Each gets ten times the load that both together may admit. The server is
// killed under the load and starts again. The total stays within the limit, every request has an answer, and the daemons
// go on. WEIR_SQL_SHOW sets a longer load, like 1m, in which the server is killed every five seconds. make more sets it.
func TestTwoDaemonsOnOnePostgreSQLShareALimitThroughACrash(t *testing.T) {
	const rate, burst = 100, 50
	length := 3 * time.Second
	if text := os.Getenv("WEIR_SQL_SHOW"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("WEIR_SQL_SHOW: %v", err)
		}
	}
	server := sqltest.PostgreSQL(t)
	var urls []string
	for range 2 {
		args := []string{"--http", "127.0.0.1:0", "--engine", urlOf(server), "--deadline", "500ms", "--rule", "default=token bucket 100/s burst 50"}
		if len(urls) > 0 {
			args = append(args, "--prefetch")
		}
		urls = append(urls, startDaemon(t, args...))
	}
	crashed := make(chan bool)
	go func() {
		defer close(crashed)
		for began := time.Now(); time.Since(began) < length-time.Second; time.Sleep(4 * time.Second) {
			time.Sleep(time.Second)
			server.Kill()
			server.Start()
		}
	}()
	began := time.Now()
	got := load(t, urls, 10*rate, length)
	<-crashed // the bucket fills meanwhile
	after := load(t, urls, 10*rate, time.Second)
	most := burst + rate*time.Since(began).Seconds()
	admitted := got.admitted + after.admitted
	t.Logf("%d and %d requests to 2 daemons: %d and %d admitted, %d and %d undecided; the limit is %.1f", got.sent, after.sent, got.admitted, after.admitted, got.undecided, after.undecided, most)
	if float64(admitted) > most {
		t.Errorf("%d admitted, want at most %.1f", admitted, most)
	}
	if got.failed > 0 || after.failed > 0 {
		t.Errorf("%d and %d requests were not told what happened, want none", got.failed, after.failed)
	}
	if got.admitted < burst || after.admitted < rate/10 { // a busy machine decides few within the deadline
		t.Errorf("%d admitted, and %d after the restart", got.admitted, after.admitted)
	}
}

// Two daemons on one PostgreSQL do with it what they do with Redis. Each step goes to one of them.
func TestDaemonsOnADatabaseDoWhatAnEngineDoes(t *testing.T) {
	t.Parallel()
	server := sqltest.PostgreSQL(t, "fsync=off")
	folder := t.TempDir()
	var daemons, admins []string
	for i := range 2 {
		admins = append(admins, filepath.Join(folder, fmt.Sprint("admin", i)))
		daemons = append(daemons, startDaemon(t, "--http", "127.0.0.1:0", "--engine", urlOf(server), "--deadline", "2s", "--admin", "unix:"+admins[i], "--peers", "2",
			"--rule", "day=fixed window 5/365d", "--rule", "pair=fixed window 3/365d and fixed window 10/366d", "--rule", "jobs=concurrency 1 lease 1m",
			"--rule", "soon=token bucket 5/s burst 1", "--rule", "log=sliding log 2/1d", "--rule", "gate=rate gate 1/1d", "--rule", "local=fixed window 4/365d", "--on-failure", "local=local"))
	}
	tokens := map[string]string{}
	for i, step := range []struct{ path, body, want string }{
		{"take", `{"key":"a","rule":"day","cost":3}`, `{"allowed":true,"rule":"day","key":"a","limit":5,"remaining":2`},
		{"take", `{"key":"a","rule":"day","cost":3}`, `{"allowed":false,"rule":"day","key":"a","limit":5,"remaining":2`},
		{"take", `{"requests":[{"rule":"day","key":"a","cost":2},{"rule":"pair","key":"a","cost":4}]}`, `{"allowed":false,"rule":"pair"`},
		{"take", `{"requests":[{"rule":"day","key":"a","cost":2},{"rule":"pair","key":"a","cost":1}]}`, `{"allowed":true,"rule":"day","key":"a","limit":5,"remaining":0`},
		{"peek", `{"key":"a","rule":"pair"}`, `{"allowed":true,"rule":"pair","key":"a","limit":3,"remaining":2`},
		{"return", `{"key":"a","rule":"day","cost":1}`, `{"allowed":true,"rule":"day","key":"a","limit":5,"remaining":1`},
		{"record", `{"key":"a","rule":"day","cost":1}`, `{"allowed":true,"rule":"day","key":"a","limit":5,"remaining":0`},
		{"return", `{"key":"a","rule":"day","cost":5}`, `{"allowed":true,"rule":"day","key":"a","limit":5,"remaining":5`},
		{"peek", `{"key":"a","rule":"day"}`, `{"allowed":true,"rule":"day","key":"a","limit":5,"remaining":5`},
		{"take", `{"requests":[{"rule":"log","key":"a"},{"rule":"gate","key":"a"}]}`, `{"allowed":true,"rule":"gate"`},
		{"take", `{"requests":[{"rule":"log","key":"a"},{"rule":"gate","key":"a"}]}`, `{"allowed":false,"rule":"gate"`},
		{"wait", `{"rule":"soon","key":"a","patience":5}`, `{"allowed":true`},
		{"wait", `{"rule":"soon","key":"a","patience":5}`, `{"allowed":true`},
		{"reserve", `{"rule":"jobs","key":"a"}`, `{"allowed":true`},
		{"reserve", `{"rule":"jobs","key":"a"}`, `{"allowed":false,"rule":"jobs","key":"a","limit":1,"remaining":0`},
		{"renew", `{"token":"jobs"}`, `{"lease":60`},
		{"settle", `{"token":"jobs"}`, `{}`},
		{"reserve", `{"rule":"day","key":"a","cost":4}`, `{"allowed":true`},
		{"settle", `{"token":"day","cost":1}`, `{}`},
		{"peek", `{"key":"a","rule":"day"}`, `{"allowed":true,"rule":"day","key":"a","limit":5,"remaining":4`},
	} {
		for rule, token := range tokens { // each daemon honours those of the other
			step.body = strings.Replace(step.body, `"token":"`+rule+`"`, `"token":"`+token+`"`, 1)
		}
		got := ask(t, daemons[i%2]+"/v1/"+step.path, step.body)
		if !strings.HasPrefix(got, step.want) {
			t.Errorf("step %d, %s %s: got %s, want %s…", i, step.path, step.body, got, step.want)
		}
		var answer struct{ Rule, Token string }
		if json.Unmarshal([]byte(got), &answer) == nil && answer.Token != "" {
			tokens[answer.Rule] = answer.Token
		}
	}
	block(t, admins[0], "blocked")
	for began := time.Now(); !strings.HasPrefix(postTake(t, daemons[1], `{"key":"blocked","rule":"day"}`), `{"allowed":false`); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("after %v another daemon does not know of the override", patience)
		}
	}
	server.Kill()
	for i := range 4 { // two for each of two peers
		if got, want := postTake(t, daemons[i%2], `{"key":"b","rule":"local"}`), `{"allowed":true`; !strings.HasPrefix(got, want) {
			t.Errorf("take %d without the server: got %s, want %s…", i, got, want)
		}
	}
	for rule, want := range map[string]string{"local": `{"allowed":false`, "day": `"status":503,"counted":`} {
		if got := postTake(t, daemons[0], `{"key":"b","rule":"`+rule+`"}`); !strings.Contains(got, want) {
			t.Errorf("%s without the server: got %s, want …%s…", rule, got, want)
		}
	}
	server.Start()
}

// block blocks a key by the admin port at a socket.
func block(t *testing.T, admin, key string) {
	t.Helper()
	client := socketClient(t, admin)
	body := fmt.Sprintf(`{"key":%q,"limit":"deny all","until":%q}`, key, time.Now().Add(time.Hour).Format(time.RFC3339))
	r, err := http.NewRequest(http.MethodPost, "http://localhost/v1/admin/override", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(auth.RequestHeader, "test")
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", response.Status, text, err)
	}
}

func TestADaemonKeepsItsLimitsInADatabase(t *testing.T) {
	t.Parallel()
	for name, engine := range map[string]func(t *testing.T) string{
		"sqlite": func(t *testing.T) string { return "sqlite:" + t.TempDir() + "/weir.db" },
		"mariadb": func(t *testing.T) string {
			return "mysql://root@/test?socket=" + sqltest.MariaDB(t).Socket() + "&table=limits"
		},
	} {
		t.Run(name, func(t *testing.T) {
			where := engine(t)
			for i := range 4 {
				daemon := startDaemon(t, "--http", "127.0.0.1:0", "--engine", where, "--deadline", "2s", "--rule", "default=fixed window 3/365d")
				want := fmt.Sprintf(`{"allowed":%v`, i < 3)
				if got := postTake(t, daemon, `{"key":"alice"}`); !strings.HasPrefix(got, want) {
					t.Errorf("daemon %d: got %s, want %s…", i+1, got, want)
				}
			}
		})
	}
}

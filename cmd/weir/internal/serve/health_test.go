package serve

import (
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthy "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weirflow/weir/cmd/weir/internal/sqlengine"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/sqltest"
)

// An idle daemon has no decisions by which it could notice an outage. Whatever the policies are, they answer, so that load
// balancers must go on to send requests.
func TestAnIdleDaemonIsReadyWhileItsEngineIsAway(t *testing.T) {
	for _, policies := range [][]string{{"deny"}, {"local"}, {"allow"}, {"local", "login=deny"}, {"deny", "login=allow"}} {
		t.Run(strings.Join(policies, " "), func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			args := []string{"--http", "127.0.0.1:0", "--engine", "redis://" + redis.Addr, "--deadline", "5s", "--peers", "2", "--rule", "default=100/m", "--rule", "login=100/m"}
			for _, policy := range policies {
				args = append(args, "--on-failure", policy)
			}
			url, log := startLoggedDaemon(t, args...)
			awaitReadyz(t, http.DefaultClient, url+"/readyz?engine=1", http.StatusOK, "")
			redis.Kill()
			awaitReadyz(t, http.DefaultClient, url+"/readyz?engine=1", http.StatusServiceUnavailable, "")
			if got := getText(t, http.DefaultClient, url+"/readyz"); got != `{"status":"ready"}`+"\n" {
				t.Errorf("/readyz is %s while the engine is away, want it ready", got)
			}
			redis.Restart()
			awaitReadyz(t, http.DefaultClient, url+"/readyz?engine=1", http.StatusOK, "")
			text := log()
			for line, want := range map[string]int{"the engine is away, and the policy answers": 1, "the engine is back": 1, "could not decide\"": 0} {
				if got := strings.Count(text, line); got != want {
					t.Errorf("%d lines with %q, want %d:\n%s", got, line, want, text)
				}
			}
		})
	}
}

// absent is an engine that is away, and back when a function was called.
type absent struct {
	engine string
	back   func()
}

var absents = map[string]func(t *testing.T) absent{
	"redis refuses": func(t *testing.T) absent {
		redis := redistest.Start(t)
		redis.Kill()
		return absent{"redis://" + redis.Addr, redis.Restart}
	},
	"redis is frozen": func(t *testing.T) absent {
		redis := redistest.Start(t)
		redis.Stop()
		return absent{"redis://" + redis.Addr + "?timeout=500ms", redis.Cont}
	},
	"postgresql refuses": func(t *testing.T) absent {
		server := sqltest.PostgreSQL(t, "fsync=off")
		server.Kill()
		return absent{urlOf(server), server.Start}
	},
	"postgresql is frozen": func(t *testing.T) absent {
		server := sqltest.PostgreSQL(t, "fsync=off")
		server.Stop()
		return absent{urlOf(server), server.Cont}
	},
	"mariadb refuses": func(t *testing.T) absent {
		server := sqltest.MariaDB(t)
		server.Kill()
		return absent{"mysql://root@/test?socket=" + server.Socket(), server.Start}
	},
}

func TestADaemonWithAPolicyStartsWhileItsEngineIsUnreachable(t *testing.T) {
	t.Parallel()
	for name, begin := range absents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			away := begin(t)
			url, log := startLoggedDaemon(t, "--http", "127.0.0.1:0", "--engine", away.engine, "--engine-wait", "0", "--deadline", "200ms", "--peers", "2", "--on-failure", "local", "--rule", "default=fixed window 4/1d")
			for i, want := range []string{`{"allowed":true`, `{"allowed":true`, `{"allowed":false`} {
				if got := postTake(t, url, `{"key":"alice"}`); !strings.HasPrefix(got, want) {
					t.Errorf("take %d without an engine: got %s, want …%s…", i+1, got, want)
				}
			}
			away.back()
			awaitReadyz(t, http.DefaultClient, url+"/readyz?engine=1", http.StatusOK, "")
			for began := time.Now(); !strings.Contains(postTake(t, url, `{"key":"alice","cost":0}`), `"remaining":2`); time.Sleep(10 * time.Millisecond) { // between two requests
				if time.Since(began) > patience {
					t.Fatalf("what was granted without the engine is not recorded there: %s", postTake(t, url, `{"key":"alice","cost":0}`))
				}
			}
			if text := log(); strings.Count(text, "the engine is unreachable; serving by --on-failure until it answers") != 1 {
				t.Errorf("the log does not say once that the engine is unreachable:\n%s", text)
			}
		})
	}
}

// What no wait can mend ends the start, whatever the policies are. So does an absent engine if nobody has chosen a policy.
func TestAPolicyHidesNoMistake(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Do("CONFIG", "SET", "requirepass", "hunter2")
	gone := redistest.Start(t)
	gone.Kill()
	postgres := mistakenPostgreSQL(t)
	absent := sqltest.PostgreSQL(t, "fsync=off")
	absent.Kill()
	for name, tt := range map[string]struct{ engine, want string }{
		"wrong password":            {"redis://:wrong@" + redis.Addr, "WRONGPASS"},
		"no password":               {"redis://" + redis.Addr, "NOAUTH"},
		"unknown host":              {"redis://no-such-host.invalid:6379", "no such host"},
		"no policy":                 {"redis://" + gone.Addr, "connection refused"},
		"wrong password of MariaDB": {"mysql://root:wrong@/test?socket=" + sqltest.MariaDB(t).Socket(), "Access denied"},
		"unknown host of MariaDB":   {"mysql://root@no-such-host.invalid/test", "no such host"},
		"unknown host of a server":  {"postgres://postgres@no-such-host.invalid/postgres", "no such host"},
		"unknown user":              {strings.Replace(urlOf(postgres), "postgres@", "nobody@", 1), "does not exist"},
		"no database of that name":  {strings.Replace(urlOf(postgres), "@/postgres", "@/nothing", 1), "does not exist"},
		"no right":                  {strings.Replace(urlOf(postgres), "postgres@", "poor@", 1), "permission denied"},
		"no table":                  {urlOf(postgres) + "&table=missing&create=0", "does not exist"},
		"a later version":           {urlOf(postgres) + "&table=later", "has version 2, not 1"},
		"no policy for a database":  {urlOf(absent), "connect: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--engine", tt.engine, "--http", "127.0.0.1:0", "--engine-wait", "0"}
			if !strings.HasPrefix(name, "no policy") {
				args = append(args, "--on-failure", "allow")
			}
			cmd := daemonCommand(t, args...)
			var log strings.Builder
			cmd.Stderr = &log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if err := waitForEnd(cmd); err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(log.String(), tt.want) {
				t.Errorf("got %v, want exit code 1 and …%s…:\n%s", err, tt.want, &log)
			}
		})
	}
}

// A mistake that nobody could see at the start, because the server was away, is named when the server is back.
func TestAMistakeBehindAnOutageIsNamed(t *testing.T) {
	t.Parallel()
	server := mistakenPostgreSQL(t)
	server.Kill()
	socket := filepath.Join(t.TempDir(), "admin")
	url, log := startLoggedDaemon(t, "--http", "127.0.0.1:0", "--engine", strings.Replace(urlOf(server), "postgres@", "poor@", 1), "--engine-wait", "0", "--deadline", "200ms", "--on-failure", "allow", "--admin", "unix:"+socket)
	server.Start()
	awaitReadyz(t, socketClient(t, socket), "http://localhost/readyz?engine=1", http.StatusServiceUnavailable, "the database refuses this daemon")
	if got := postTake(t, url, `{"key":"alice"}`); !strings.HasPrefix(got, `{"allowed":true`) {
		t.Errorf("got %s, want that the policy answers", got)
	}
	if text := log(); strings.Count(text, "the engine answers and refuses this daemon") != 1 || !strings.Contains(text, "permission denied") {
		t.Errorf("the log does not say once that the database refuses the daemon, and why:\n%s", text)
	}
}

// mistakenPostgreSQL starts a server that has a user without rights, and the table later, of a later version.
func mistakenPostgreSQL(t *testing.T) *sqltest.Server {
	t.Helper()
	server := sqltest.PostgreSQL(t, "fsync=off")
	engine, err := sqlengine.Open(t.Context(), urlOf(server)+"&table=later", false)
	if err != nil {
		t.Fatal(err)
	}
	engine.Close()
	db, err := sql.Open("pgx", server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec("UPDATE later SET version = 2; CREATE ROLE poor LOGIN"); err != nil {
		t.Fatal(err)
	}
	return server
}

func TestHealthChecksOfEnvoyFollowRedisOnlyIfTold(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "shop.yaml"), []byte("domain: shop\ndescriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 5}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for active, want := range map[string]int{"": http.StatusOK, "false": http.StatusOK, "true": http.StatusInternalServerError} {
		redis := redistest.Start(t)
		t.Setenv("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", active)
		socket := filepath.Join(t.TempDir(), "grpc")
		url := startDaemon(t, "--compat", "envoyproxy", "--config", folder, "--http", "127.0.0.1:0", "--grpc", "unix:"+socket, "--engine", "redis://"+redis.Addr)
		awaitReadyz(t, http.DefaultClient, url+"/healthcheck", http.StatusOK, "OK")
		redis.Kill()
		awaitReadyz(t, http.DefaultClient, url+"/readyz?engine=1", http.StatusServiceUnavailable, "")
		awaitReadyz(t, http.DefaultClient, url+"/healthcheck", want, "")
		conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		wanted := map[int]healthy.HealthCheckResponse_ServingStatus{http.StatusOK: healthy.HealthCheckResponse_SERVING, http.StatusInternalServerError: healthy.HealthCheckResponse_NOT_SERVING}[want]
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // between two calls
			answer, err := healthy.NewHealthClient(conn).Check(t.Context(), &healthy.HealthCheckRequest{})
			if err == nil && answer.Status == wanted {
				break
			}
			if time.Since(began) > patience {
				t.Fatalf("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=%s: got %v and %v, want %v", active, answer, err, wanted)
			}
		}
	}
}

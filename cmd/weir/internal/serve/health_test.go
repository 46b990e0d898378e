package serve

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthy "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weirflow/weir/internal/redistest"
)

// An idle daemon has no decisions by which it could notice an outage. Whatever the policies are, they answer, so that load
// balancers must go on to send requests.
func TestAnIdleDaemonIsReadyWhileItsEngineIsAway(t *testing.T) {
	for _, policies := range [][]string{{"deny"}, {"local"}, {"allow"}, {"local", "login=deny"}, {"deny", "login=allow"}} {
		t.Run(strings.Join(policies, " "), func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			args := []string{"--http", "127.0.0.1:0", "--engine", "redis://" + redis.Addr, "--deadline", "200ms", "--peers", "2", "--rule", "default=100/m", "--rule", "login=100/m"}
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

func TestADaemonWithAPolicyStartsWhileItsEngineIsUnreachable(t *testing.T) {
	for name, away := range map[string]func(*redistest.Server){"refused": (*redistest.Server).Kill, "frozen": (*redistest.Server).Stop} {
		t.Run(name, func(t *testing.T) {
			redis := redistest.Start(t)
			away(redis)
			url, log := startLoggedDaemon(t, "--http", "127.0.0.1:0", "--engine", "redis://"+redis.Addr+"?timeout=500ms", "--engine-wait", "0", "--peers", "2", "--on-failure", "local", "--rule", "default=fixed window 4/1d")
			for i, want := range []string{`{"allowed":true`, `{"allowed":true`, `{"allowed":false`} {
				if got := postTake(t, url, `{"key":"alice"}`); !strings.HasPrefix(got, want) {
					t.Errorf("take %d without an engine: got %s, want …%s…", i+1, got, want)
				}
			}
			if name == "refused" {
				redis.Restart()
			} else {
				redis.Cont()
			}
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
	redis := redistest.Start(t)
	redis.Do("CONFIG", "SET", "requirepass", "hunter2")
	gone := redistest.Start(t)
	gone.Kill()
	for name, args := range map[string][]string{
		"wrong password": {"--engine", "redis://:wrong@" + redis.Addr, "--on-failure", "allow"},
		"no password":    {"--engine", "redis://" + redis.Addr, "--on-failure", "allow"},
		"unknown host":   {"--engine", "redis://no-such-host.invalid:6379", "--on-failure", "allow"},
		"no policy":      {"--engine", "redis://" + gone.Addr},
	} {
		cmd := daemonCommand(t, append(args, "--http", "127.0.0.1:0", "--engine-wait", "0")...)
		var log strings.Builder
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := waitForEnd(cmd); err == nil || cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%s: got %v, want exit code 1:\n%s", name, err, &log)
		}
	}
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

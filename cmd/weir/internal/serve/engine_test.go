package serve

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// Two daemons share one limit in one Redis. Each gets ten times the load that both together may admit.
// WEIR_REDIS_SHOW sets a longer time, like 1m; the test then also checks that the daemons use nearly all of the
// limit. make more sets it.
func TestTwoDaemonsOnOneRedisShareALimit(t *testing.T) {
	const rate, burst = 100, 50
	length, long := 3*time.Second, false
	if text := os.Getenv("WEIR_REDIS_SHOW"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("WEIR_REDIS_SHOW: %v", err)
		}
		long = true
	}
	server := redistest.Start(t)
	var urls []string
	for range 2 {
		urls = append(urls, startDaemon(t, "--http", "127.0.0.1:0", "--engine", "redis://"+server.Addr, "--deadline", "2s", "--rule", "default=token bucket 100/s burst 50"))
	}
	got := load(t, urls, 10*rate, length)
	most := burst + rate*got.seconds
	t.Logf("%d requests to 2 daemons in %.1f s: %d admitted, %d undecided, %d failed; the limit is %.1f, so %.1f %% of it", got.sent, got.seconds, got.admitted, got.undecided, got.failed, most, 100*float64(got.admitted)/most)
	if float64(got.admitted) > most {
		t.Errorf("%d admitted in %.3f s, want at most %.1f", got.admitted, got.seconds, most)
	}
	// A machine that stalls for two seconds makes a decision fail.
	if got.failed > 0 || long && got.undecided > 0 {
		t.Errorf("%d requests failed and %d were undecided, want none", got.failed, got.undecided)
	}
	if got.admitted < burst {
		t.Errorf("%d admitted, want at least the burst of %d", got.admitted, burst)
	}
	if long && float64(got.admitted) < 0.99*most {
		t.Errorf("%d admitted in %.3f s, want at least 99 %% of %.1f", got.admitted, got.seconds, most)
	}
}

// A server that hangs keeps its connections open and does not answer.
func TestAHungRedisIsAnErrorAndNoEndlessWait(t *testing.T) {
	server := redistest.Start(t)
	// The deadline leaves a slow machine the time to ask. Either the daemon times out, or the Redis client does so first.
	url := startDaemon(t, "--http", "127.0.0.1:0", "--engine", "redis://"+server.Addr, "--deadline", "1s")
	server.Stop()
	// A call of the daemon itself, such as its probe, may hang already. Then the take waits for it, and never leaves.
	const lost, unsent = `"status":503,"counted":"unknown"`, `"status":503,"counted":"no"`
	got := postTake(t, url, `{"key":"alice"}`)
	if warns := strings.Contains(got, "though it may have counted this request"); !strings.Contains(got, " and admitted nothing; ask again") || warns != strings.Contains(got, lost) || warns == strings.Contains(got, unsent) {
		t.Errorf("while Redis hangs: got %s, want a 503 that says whether the take may have been counted", got)
	}
	server.Cont()
	for began := time.Now(); !strings.HasPrefix(postTake(t, url, `{"key":"alice"}`), `{"allowed":`); {
		if time.Since(began) > patience {
			t.Fatalf("Redis answers again, and the daemon did not recover within %v", patience)
		}
		time.Sleep(10 * time.Millisecond) // between two requests
	}
}

// A daemon with a policy answers in its way while Redis hangs, and within its deadline.
func TestADaemonAnswersByItsPolicyWhileRedisHangs(t *testing.T) {
	server := redistest.Start(t)
	url := startDaemon(t, "--http", "127.0.0.1:0", "--engine", "redis://"+server.Addr, "--prefetch",
		"--rule", "login=fixed window 4/1d", "--rule", "mail=5/1d", "--rule", "pay=5/1d",
		"--on-failure", "allow", "--on-failure", "login=local", "--on-failure", "pay=deny", "--peers", "2")
	server.Stop()
	for i := range 6 {
		for rule, want := range map[string]string{"login": fmt.Sprintf(`{"allowed":%v`, i < 2), "mail": `{"allowed":true`, "pay": `"status":503`} {
			if got := postTake(t, url, `{"key":"alice","rule":"`+rule+`"}`); !strings.Contains(got, want) {
				t.Errorf("take %d of %s: got %s, want …%s…", i+1, rule, got, want)
			}
		}
	}
	server.Cont()
}

// postTake posts a request and returns the body of the answer.
func postTake(t *testing.T, url, request string) string {
	t.Helper()
	return ask(t, url+"/v1/take", request)
}

// ask posts a request and returns the body of the answer.
func ask(t *testing.T, url, request string) string {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// loaded counts the results of a load. Its seconds begin before the first request and end after the last answer.
type loaded struct {
	sent, admitted, undecided, failed int64
	seconds                           float64
}

// inFlight bounds the requests of a load that wait for answers. A slow machine gets fewer requests, not a growing
// queue.
const inFlight = 128

// load sends requests to each URL at the rate for the given time.
func load(t *testing.T, urls []string, rate int, length time.Duration) loaded {
	t.Helper()
	var sent, admitted, undecided, failed atomic.Int64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var requests sync.WaitGroup
	places := make(chan struct{}, inFlight)
	start := time.Now()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for passed := time.Duration(0); passed < length; passed = time.Since(start) {
		due := int64(passed.Seconds()*float64(rate)) * int64(len(urls))
		for sent.Load() < due && len(places) < inFlight {
			places <- struct{}{}
			url := urls[sent.Add(1)%int64(len(urls))]
			requests.Go(func() {
				defer func() { <-places }()
				allowed, err := take(client, url)
				switch {
				case err == errUndecided:
					undecided.Add(1)
				case err != nil:
					failed.Add(1)
				case allowed:
					admitted.Add(1)
				}
			})
		}
		<-ticker.C
	}
	requests.Wait()
	return loaded{sent.Load(), admitted.Load(), undecided.Load(), failed.Load(), time.Since(start).Seconds()}
}

func take(client *http.Client, url string) (allowed bool, err error) {
	response, err := client.Post(url+"/v1/take", "application/json", strings.NewReader(`{"key":"alice"}`))
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Allowed *bool
		Counted string
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return false, err
	}
	switch {
	case response.StatusCode == http.StatusServiceUnavailable && answer.Counted != "":
		return false, errUndecided
	case answer.Allowed == nil:
		return false, errors.New(response.Status)
	}
	return *answer.Allowed, nil
}

var errUndecided = errors.New("undecided")

// startDaemon runs weir serve until the test ends and returns its URL.
func startDaemon(t *testing.T, args ...string) (url string) {
	t.Helper()
	cmd := daemonCommand(t, args...)
	var log strings.Builder
	cmd.Stderr = &log
	t.Cleanup(func() {
		if err := stopDaemon(cmd); err != nil {
			t.Errorf("weir serve ended with %v: %s", err, log.String())
		}
	})
	return startAndFindURL(t, cmd)
}

// startAndFindURL starts weir serve and returns the URL that it announces.
func startAndFindURL(t *testing.T, cmd *exec.Cmd) (url string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		url, found := strings.CutPrefix(lines.Text(), "weir listens on ")
		var line struct{ Address string } // of --log-format json
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Address != "" {
			url, found = line.Address, true
		}
		if found {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return url
		}
	}
	t.Fatal("weir serve did not say where it listens")
	return ""
}

// The daemon warns once of a password in its arguments, which every user can see. It does not warn of one in a file
// or the environment.
func TestAPasswordInTheArgumentsIsWarnedOfOnce(t *testing.T) {
	server := redistest.Start(t)
	server.Do("CONFIG", "SET", "requirepass", "hunter2")
	t.Setenv("WEIR_TEST_PASSWORD", "hunter2")
	for url, want := range map[string]int{
		"redis://:hunter2@" + server.Addr:                             1,
		"redis://" + server.Addr + "?password_env=WEIR_TEST_PASSWORD": 0,
	} {
		var log strings.Builder
		o := engineOptions{where: url}
		engine, err := o.open(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), []*weir.Rule{slowRule(t)}, &stateFile{})
		if err != nil {
			t.Fatal(err)
		}
		engine.close()
		if got := strings.Count(log.String(), "can read the password in --engine"); got != want || strings.Contains(log.String(), "hunter2") {
			t.Errorf("%s: %d warnings, want %d, and no password:\n%s", url, got, want, log.String())
		}
	}
}

package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/internal/redistest"
)

// The limit of each rule of the show. Even a busy machine asks more often.
const showRate, showBurst = 20, 10

// Two daemons on one Redis are under load while it is frozen, and go on when it is thawed. WEIR_OUTAGE_SHOW sets a longer
// freeze, like 10s, and the deadline is then the default. make more sets it.
func TestTwoDaemonsAnswerByPolicyAndInTimeWhileRedisIsFrozen(t *testing.T) {
	freeze, deadline := 2500*time.Millisecond, 500*time.Millisecond // a busy machine must not look like an outage
	if text := os.Getenv("WEIR_OUTAGE_SHOW"); text != "" {
		var err error
		if freeze, err = time.ParseDuration(text); err != nil {
			t.Fatalf("WEIR_OUTAGE_SHOW: %v", err)
		}
		deadline = cli.DefaultDeadline
	}
	server := redistest.Start(t)
	show := &outageShow{deadline: deadline}
	stop := make(chan struct{})
	var all sync.WaitGroup
	began := time.Now()
	var logs []func() string
	for range 2 {
		url, log := startLoggedDaemon(t, showArguments(server.Addr, deadline)...)
		logs = append(logs, log)
		for rule := range showPolicies {
			for range 2 {
				all.Go(func() { show.ask(stop, rule, url+"/v1/take", `{"key":"alice","rule":"`+rule+`"}`) })
			}
		}
		all.Go(func() { show.ask(stop, idle, url+"/healthz", "") })
	}
	time.Sleep(700 * time.Millisecond)
	frozen := time.Now()
	server.Stop()
	time.Sleep(freeze)
	thawed := time.Now()
	server.Cont()
	time.Sleep(1500 * time.Millisecond)
	close(stop)
	all.Wait()
	show.check(t, frozen, thawed, time.Since(began).Seconds())
	for _, log := range logs {
		text := log()
		if away, back := strings.Count(text, "guard: the engine is away"), strings.Count(text, "guard: the engine is back"); away != 1 || back != 1 {
			t.Errorf("a daemon said %d times that the engine is away and %d times that it is back, want each once:\n%s", away, back, text)
		}
	}
}

// showPolicies are the rules and their policies.
var showPolicies = map[string]string{"pay": "deny", "mail": "allow", "login": "local"}

// idle is the name of the calls that need no engine.
const idle = "idle"

func showArguments(addr string, deadline time.Duration) []string {
	args := []string{"--http", "127.0.0.1:0", "--engine", "redis://" + addr, "--peers", "2", "--deadline", deadline.String()}
	for rule, policy := range showPolicies {
		args = append(args, "--rule", fmt.Sprintf("%s=token bucket %d/s burst %d", rule, showRate, showBurst), "--on-failure", rule+"="+policy)
	}
	return args
}

// startLoggedDaemon starts a daemon. log stops it and returns what it wrote.
func startLoggedDaemon(t *testing.T, args ...string) (url string, log func() string) {
	t.Helper()
	cmd := daemonCommand(t, args...)
	var text strings.Builder
	cmd.Stderr = &text
	log = sync.OnceValue(func() string {
		if err := stopDaemon(cmd); err != nil {
			t.Errorf("weir serve ended with %v", err)
		}
		return text.String()
	})
	t.Cleanup(func() { log() })
	return startAndFindURL(t, cmd), log
}

// shown is an answer of a daemon.
type shown struct {
	rule, answer string
	asked, got   time.Time
}

const (
	admitted = "admitted"
	refused  = "refused"
	outage   = "503"
)

// outageShow collects the answers of the daemons.
type outageShow struct {
	deadline time.Duration
	mu       sync.Mutex
	answers  []shown
}

// ask asks a daemon a hundred times a second until stop is closed.
func (s *outageShow) ask(stop <-chan struct{}, rule, url, body string) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for {
		asked := time.Now()
		answer := answerOf(client, url, body)
		s.mu.Lock()
		s.answers = append(s.answers, shown{rule, answer, asked, time.Now()})
		s.mu.Unlock()
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func answerOf(client *http.Client, url, body string) string {
	response, err := client.Post(url, "application/json", strings.NewReader(body)) // /healthz refuses it, which takes as long
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct{ Allowed bool }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err.Error()
	}
	switch {
	case response.StatusCode == http.StatusServiceUnavailable:
		return outage
	case response.StatusCode != http.StatusOK:
		return response.Status
	case answer.Allowed:
		return admitted
	}
	return refused
}

func (s *outageShow) check(t *testing.T, frozen, thawed time.Time, seconds float64) {
	t.Helper()
	late := s.latest(idle)
	for rule, policy := range showPolicies {
		count := func(from, to time.Time, answer string) (n int) {
			for _, a := range s.answers {
				if a.rule == rule && a.answer == answer && a.asked.After(from) && a.got.Before(to) {
					n++
				}
			}
			return n
		}
		whole := func(answer string) int { return count(time.Time{}, time.Now(), answer) }
		// The breaker opens within two deadlines, beside answers that were under way.
		from := frozen.Add(2*s.deadline + 100*time.Millisecond)
		during := map[string]int{}
		for _, answer := range []string{admitted, refused, outage} {
			during[answer] = count(from, thawed, answer)
		}
		p99, worst := s.latest(rule).of()
		idle99, idleWorst := late.of()
		t.Logf("%s: %d admitted, %d refused and %d answered 503 in %.1f s; in the outage %v; p99 %v, worst %v, of idle calls %v and %v",
			policy, whole(admitted), whole(refused), whole(outage), seconds, during, p99, worst, idle99, idleWorst)
		if total := len(s.latest(rule)); total != whole(admitted)+whole(refused)+whole(outage) {
			t.Errorf("%s: some of %d answers are no decision", policy, total)
		}
		want := map[string][]string{"deny": {outage}, "allow": {admitted}, "local": {admitted, refused}}[policy]
		for answer, n := range during {
			if (n > 0) != slices.Contains(want, answer) {
				t.Errorf("%s: %d answers in the outage were %s, want only %v", policy, n, answer, want)
			}
		}
		if bound := showBound(policy, seconds); float64(whole(admitted)) > bound && policy != "allow" {
			t.Errorf("%s: %d admitted in %.2f s, want at most %.1f", policy, whole(admitted), seconds, bound)
		}
		if most := s.deadline + 5*time.Millisecond; p99 > most+max(idle99, idleWorst/2) || worst > most+4*idleWorst {
			t.Errorf("%s: answers took %v (p99) and %v (worst), want at most %v beside idle calls of %v and %v", policy, p99, worst, most, idle99, idleWorst)
		}
		if n := count(thawed.Add(time.Second), time.Now(), outage); n > 0 {
			t.Errorf("%s: %d answers were 503 a second after the thaw, want none", policy, n)
		}
	}
}

// showBound returns the most that a rule admits: the bound of the engine, and under local the shares of two daemons.
func showBound(policy string, seconds float64) float64 {
	bound := showBurst + showRate*seconds
	if policy == "local" {
		bound *= 2
	}
	return bound
}

// times are how long calls took, the shortest first.
type times []time.Duration

func (s *outageShow) latest(rule string) (all times) {
	for _, a := range s.answers {
		if a.rule == rule {
			all = append(all, a.got.Sub(a.asked))
		}
	}
	slices.SortFunc(all, cmp.Compare)
	return all
}

// of returns the 99th percentile and the worst.
func (l times) of() (p99, worst time.Duration) { return l[len(l)*99/100], l[len(l)-1] }

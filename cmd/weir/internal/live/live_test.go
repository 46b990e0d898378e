package live

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/metrics"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/layer"
)

// watched is a daemon without its ports, in virtual time.
type watched struct {
	*Live
	t      *testing.T
	seen   *metrics.Metrics
	engine weir.Engine
	rules  map[string]*weir.Rule
	may    auth.Scope
}

func newWatched(t *testing.T, viewers, requests int, texts ...string) *watched {
	d := &watched{t: t, seen: metrics.New("memory", slog.New(slog.DiscardHandler)), rules: map[string]*weir.Rule{}, may: auth.All}
	var err error
	if d.engine, err = d.seen.Observe(weir.NewMemory(weir.MemoryOptions{})); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		rule, err := weir.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		d.rules[rule.Name()] = rule
	}
	d.Live = New(Options{Metrics: d.seen, Overrides: func() []override.Entry { return []override.Entry{} }, Rules: func(name string) *weir.Rule { return d.rules[name] },
		Engine: d.engine, Now: func() Now { return Now{Rules: len(d.rules)} }, Viewers: viewers, Requests: requests})
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	go d.Run(ctx)
	synctest.Wait()
	return d
}

func (d *watched) take(rule, key string, times int) {
	for range times {
		if _, err := d.engine.Take(d.t.Context(), d.rules[rule].For(key, 1)); err != nil {
			d.t.Fatal(err)
		}
	}
}

// stream is what a viewer reads.
type stream struct {
	status chan int
	events chan Message
	texts  chan string
	end    context.CancelFunc
}

// pipe is an answer that a viewer reads, or not.
type pipe struct {
	header http.Header
	status chan int
	to     io.Writer
}

func (p *pipe) Header() http.Header         { return p.header }
func (p *pipe) Flush()                      {}
func (p *pipe) Write(b []byte) (int, error) { return p.to.Write(b) }
func (p *pipe) WriteHeader(status int)      { p.status <- status }

func (d *watched) watch() *stream {
	ctx, end := context.WithCancel(d.t.Context())
	s := &stream{make(chan int, 1), make(chan Message, 100), make(chan string, 100), end}
	out, in := io.Pipe()
	r := httptest.NewRequest(http.MethodGet, "/v1/admin/live", nil)
	port := &auth.Port{Open: auth.Anyone("ops", d.may)}
	go func() {
		d.Stream(&pipe{http.Header{}, s.status, in}, r.WithContext(port.Mark(ctx)))
		_ = in.Close()
	}()
	go func() {
		defer close(s.events)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if text, ok := strings.CutPrefix(line, "data: "); ok {
				var m Message
				if err := json.Unmarshal([]byte(text), &m); err != nil {
					panic(err)
				}
				s.texts <- text
				s.events <- m
			}
		}
	}()
	return s
}

func TestAStreamShowsEverythingOnceAndThenWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWatched(t, 4, 100, "login=5/m", "api=100/s")
		d.take("api", "a", 3)
		s := d.watch()
		defer s.end()
		first := <-s.events
		if text := <-s.texts; !first.All || first.History == nil || len(first.Rules) != 1 || first.Rules[0].Admitted != 3 || !strings.HasPrefix(text, `{"may":["metrics","admin"],"who":"ops",`) ||
			!strings.Contains(text, `"overrides":[],"audit":[]`) {
			t.Fatalf("the first event is %s", text)
		}
		d.take("login", "alice", 7)
		began := time.Now()
		next := <-s.events
		if text := <-s.texts; len(next.Rules) < 1 || next.All || next.History != nil || time.Since(began) > 2*time.Second {
			t.Fatalf("after %v: %s", time.Since(began), text)
		}
		login := next.Rules[len(next.Rules)-1]
		if login.Rule != "login" || login.Admitted != 5 || login.Refused != 2 || login.Headroom == nil || *login.Headroom != 0 || login.Fullest != "alice" {
			t.Errorf("login is %+v", login)
		}
		if len(next.Refused) != 1 || next.Refused[0].Key != "alice" {
			t.Errorf("refused are %+v", next.Refused)
		}
		d.Audited(Change{Who: "ops", What: "reset", Rule: "login", Key: "alice"})
		last, gap := time.Now(), time.Duration(0)
		for i := range 12 {
			m := <-s.events
			<-s.texts
			if gap = time.Since(last); i > 0 && gap < tick {
				t.Errorf("an event came %v after the one before", gap)
			}
			last = time.Now()
			if (i == 0) != (len(m.Audit) == 1) {
				t.Errorf("event %d has the changes %+v", i, m.Audit)
			}
			if i == 11 && len(m.Rules) != 0 {
				t.Errorf("after quiet seconds %+v is sent", m.Rules)
			}
		}
	})
}

func TestViewersWithoutAdminSeeNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWatched(t, 4, 100, "login=5/m")
		d.may = auth.Metrics
		s := d.watch()
		defer s.end()
		<-s.events
		d.take("login", "secret-key", 7)
		d.Audited(Change{Who: "ops", What: "reset", Rule: "login", Key: "secret-key"})
		d.Reloaded([]string{"weir.yaml:3:12: the limit of secret-key: unexpected word", "weir.yaml:4:1: another"})
		var last Message
		for range 3 {
			last = <-s.events
		}
		if r := last.Now.Reload; r == nil || r.OK || r.Number != 2 {
			t.Errorf("a viewer without the scope admin got the reload %+v, want one that failed with 2 problems", r)
		}
		for range 4 {
			if text := <-s.texts; strings.Contains(text, "secret-key") || strings.Contains(text, `"audit"`) || strings.Contains(text, `"busiest"`) {
				t.Errorf("a viewer without the scope admin got %s", text)
			}
		}
	})
}

func TestNobodyLookingSeesNoDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWatched(t, 4, 100, "api=100/s")
		d.take("api", "a", 3)
		if requests, _, _ := d.sample.of("api", time.Now()); len(requests) != 0 {
			t.Errorf("without a viewer %d requests are kept", len(requests))
		}
		s := d.watch()
		<-s.events
		d.take("api", "a", 3)
		if requests, _, _ := d.sample.of("api", time.Now()); len(requests) != 3 {
			t.Errorf("with a viewer %d requests are kept, want 3", len(requests))
		}
		s.end()
		time.Sleep(afterLook + 5*time.Second)
		d.take("api", "a", 3)
		if requests, _, _ := d.sample.of("api", time.Now()); len(requests) != 0 {
			t.Errorf("long after the viewer has left %d requests are kept", len(requests))
		}
	})
}

// Streams that never read take no more than their places, and end; newer viewers get in.
func TestStreamsThatNeverReadDoNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWatched(t, 8, 100, "api=100/s")
		port := &auth.Port{Open: auth.Anyone("ops", auth.All)}
		refused := 0
		ended := make(chan bool, 200)
		for range 200 {
			ctx, cancel := context.WithCancel(port.Mark(t.Context()))
			out, in := io.Pipe() // nobody reads
			context.AfterFunc(ctx, func() { _ = out.Close() })
			defer cancel()
			status := make(chan int, 1)
			go func() {
				d.Stream(&pipe{http.Header{}, status, in}, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
				ended <- true
			}()
			synctest.Wait()
			select {
			case got := <-status:
				if refused++; got != http.StatusServiceUnavailable {
					t.Fatalf("got %d", got)
				}
			default:
			}
		}
		if d.viewers.number() != 8 || refused == 0 {
			t.Errorf("%d viewers, %d were refused", d.viewers.number(), refused)
		}
		time.Sleep(2 * firmTime)
		s := d.watch()
		defer s.end()
		d.take("api", "a", 3)
		for m := range s.events {
			if len(m.Rules) == 1 && m.Rules[0].Admitted == 3 {
				break
			}
		}
		if n := d.viewers.number(); n != 8 {
			t.Errorf("%d viewers, want 8", n)
		}
	})
}

func TestATokenThatIsWithdrawnEndsItsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWatched(t, 4, 100)
		token, form := auth.NewToken()
		file := filepath.Join(t.TempDir(), "tokens")
		allow := func(scope string) {
			if err := os.WriteFile(file, []byte("ops "+form+" "+scope+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		allow("metrics")
		keys, err := auth.Open(auth.Files{Tokens: file})
		if err != nil {
			t.Fatal(err)
		}
		port := &auth.Port{Keys: keys}
		out, in := io.Pipe()
		ended := make(chan bool)
		go func() { _, _ = io.Copy(io.Discard, out) }()
		go func() {
			r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(port.Mark(t.Context()))
			r.Header.Set("Authorization", "Bearer "+token)
			d.Stream(&pipe{http.Header{}, make(chan int, 1), in}, r)
			_ = in.Close()
			close(ended)
		}()
		time.Sleep(3 * time.Second)
		select {
		case <-ended:
			t.Error("the stream ended before")
		default:
		}
		allow("take")
		if _, err := keys.Reload(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		select {
		case <-ended:
		default:
			t.Error("the stream goes on")
		}
	})
}

// The history and the rates are those of the counters, in whatever order requests come.
func TestTheHistoryAddsUpToTheCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWatched(t, 4, 100, "api=1000000/s", "login=3/h")
		r := rand.New(rand.NewPCG(44, 2))
		taken := 0
		for range 120 {
			n := r.IntN(20)
			taken += n
			d.take([]string{"api", "login"}[r.IntN(2)], fmt.Sprint(r.IntN(3)), n)
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		}
		time.Sleep(2 * step)
		s := d.watch()
		defer s.end()
		first := <-s.events
		sum, counted := 0.0, uint64(0)
		for i := range first.History.Admitted {
			sum += float64(first.History.Admitted[i]+first.History.Refused[i]) * step.Seconds()
		}
		for _, line := range first.Rules {
			counted += line.Admitted + line.Refused
		}
		if counted != uint64(taken) || sum < float64(taken)*0.999 || sum > float64(taken)*1.001 {
			t.Errorf("%d decisions: the lines have %d, the history %v", taken, counted, sum)
		}
	})
}

// A sample has no more requests than its bound, and of each key in it all since it began.
func TestASampleIsBoundedAndKeepsWholeKeys(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(44, seed))
		var s sample
		now := time.Now()
		most := 50 + r.IntN(500)
		s.init(most)
		s.begin(now)
		rule, _ := weir.ParseRule("api=5/s")
		type mark struct {
			key string
			at  time.Time
		}
		var all []mark
		for range 5000 {
			now = now.Add(time.Duration(r.IntN(200)) * time.Millisecond)
			key := fmt.Sprint("k", int(r.ExpFloat64()*30))
			all = append(all, mark{key, now})
			s.seen(&layer.Observation{Began: now, Requests: []weir.Request{rule.For(key, 1)}}, func(string) *weir.Rule { return rule })
			if r.IntN(50) == 0 {
				s.expire(now)
			}
			if s.kept > most {
				t.Fatalf("seed %d: %d requests are kept, more than %d", seed, s.kept, most)
			}
		}
		s.expire(now)
		requests, from, _ := s.of("api", now)
		got, want := map[string]int{}, map[string]int{}
		for _, q := range requests {
			got[q.key]++
		}
		for _, m := range all {
			if !m.at.Before(from) && now.Sub(m.at) <= sampleTime {
				want[m.key]++
			}
		}
		for key, n := range got {
			if n != want[key] && n != want[key]+1 { // at the very begin
				t.Errorf("seed %d: key %s has %d requests, want %d", seed, key, n, want[key])
			}
		}
		if len(requests) < most/32 || len(requests) != s.kept { // thinning leaves an eighth, of which some grow old
			t.Errorf("seed %d: %d of at most %d requests are left, counted %d", seed, len(requests), most, s.kept)
		}
	}
}

func TestWhatIfComparesALimitWithTheOneInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWatched(t, 4, 1000, "login=5/h", "slots=concurrency 5 lease 1m")
		s := d.watch()
		defer s.end()
		<-s.events
		for range 12 {
			d.take("login", "alice", 1)
			d.take("login", "bob", 1)
			time.Sleep(time.Second)
		}
		w, err := d.WhatIf("login", "10/h")
		if err != nil || w.Requests != 24 || w.Before != (Tally{10, 14}) || w.After != (Tally{20, 4}) || len(w.Keys) != 2 || w.Keys[0] != (KeyDiff{"alice", 12, 7, 2}) {
			t.Errorf("got %+v, %v", w, err)
		}
		if got := d.Refusals("login"); len(got) != 14 || got[0].Key != "bob" || got[0].At < got[13].At {
			t.Errorf("refused are %+v", got)
		}
		gold, err := weir.ParseRule("login=100/h") // a plan
		if err != nil {
			t.Fatal(err)
		}
		for range 12 {
			if _, err := d.engine.Take(t.Context(), gold.For("carol", 1)); err != nil {
				t.Fatal(err)
			}
		}
		if w, err := d.WhatIf("login", "2/h"); err != nil || w.Before != (Tally{22, 14}) || w.After != (Tally{16, 20}) {
			t.Errorf("with a limit of its own: got %+v, %v", w, err)
		}
		if got := d.Refusals("login"); len(got) != 14 {
			t.Errorf("refused are %+v", got)
		}
		for limit, want := range map[string]string{"5/x": "limit", "concurrency 5 lease 1m": "slots"} {
			if _, err := d.WhatIf("login", limit); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v", limit, err)
			}
		}
		if _, err := d.WhatIf("slots", "5/m"); err == nil {
			t.Error("slots were tried")
		}
	})
}

// Rules beyond the names of /metrics share a line, and an event has what has changed.
func TestTenThousandRulesMakeSmallEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var texts []string
		for i := range 10_000 {
			texts = append(texts, fmt.Sprintf("rule-%d=5/m", i))
		}
		d := newWatched(t, 4, 100, texts...)
		for i := range 10_000 {
			d.take(fmt.Sprintf("rule-%d", i), "a", 1)
		}
		s := d.watch()
		defer s.end()
		first := <-s.events
		<-s.texts
		sum := uint64(0)
		for _, line := range first.Rules {
			sum += line.Admitted
		}
		if sum != 10_000 || len(first.Rules) != 1001 {
			t.Errorf("%d lines have %d decisions", len(first.Rules), sum)
		}
		time.Sleep(rateTime + 10*time.Second) // the limits are whole again
		for len(s.events) > 0 {
			<-s.events
			<-s.texts
		}
		d.take("rule-7", "a", 1)
		next := <-s.events
		if text := <-s.texts; len(next.Rules) != 1 || next.Rules[0].Rule != "rule-7" || len(text) > 8<<10 {
			t.Errorf("after one decision an event has %d lines and %d bytes", len(next.Rules), len(text))
		}
	})
}

// A rule that matches and does not bind is on the page before the day that it refuses: with its takes and its fullest keys.
func TestARuleThatDoesNotBindIsInTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWatched(t, 4, 100, "binds=fixed window 10000/d", "other=fixed window 100000/d")
		go d.seen.Peek(t.Context(), func() bool { return false })
		for range 500 {
			if _, err := d.engine.Take(t.Context(), d.rules["binds"].For("all", 1), d.rules["other"].For("alice", 1)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		s := d.watch()
		defer s.end()
		first := <-s.events
		lines := map[string]RuleLine{}
		for _, line := range first.Rules {
			lines[line.Rule] = line
		}
		if line := lines["other"]; line.Takes != 500 || line.Admitted != 0 || line.Headroom == nil || *line.Headroom != 0.995 || line.Fullest != "alice" {
			t.Errorf("the rule that does not bind is %+v, want 500 takes and 500 of 100000 used by alice", line)
		}
		if line := lines["binds"]; line.Takes != 500 || line.Admitted != 500 || *line.Headroom != 0.95 {
			t.Errorf("the rule that binds is %+v, want 500 takes and decisions, and a twentieth used", line)
		}
		if all := first.Fullest; len(all) != 2 || all[0].Rule != "binds" || all[0].Used != 500 || all[1].Key != "alice" || all[1].Limit != 100000 {
			t.Errorf("the fullest keys are %+v, want those of both rules", all)
		}
		if first.History.Admitted[len(first.History.Admitted)-1] > 500 {
			t.Errorf("a call of two rules counts twice in the history: %v", first.History.Admitted)
		}
	})
}

package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/resp"
	"github.com/weirflow/weir/cmd/weir/internal/rls"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/internal/randtest"
)

// modelRule is a rule of the slow model: a fixed window.
type modelRule struct {
	name      string
	pool      bool
	keyed     bool // by tenant
	most      int64
	per       time.Duration
	otherwise string
}

// modelKey is a key of a rule.
type modelKey struct{ rule, key string }

// poolModel decides by rules with chains, one window of one key after the other.
type poolModel struct {
	rules []*modelRule
	used  map[modelKey]int64
	at    map[modelKey]int64 // the window of used
}

// modelAnswer is what all ways in have in common.
type modelAnswer struct {
	allowed   bool
	rule      string // that is described
	remaining int64
	retry     time.Duration
}

func (m *poolModel) rule(name string) *modelRule {
	return m.rules[slices.IndexFunc(m.rules, func(r *modelRule) bool { return r.name == name })]
}

func (r *modelRule) keyOf(tenant string) modelKey {
	if r.keyed {
		return modelKey{r.name, tenant}
	}
	return modelKey{r.name, ""}
}

// left returns the units that a key has left, and the time to the end of its window.
func (m *poolModel) left(k modelKey, now int64) (left int64, ends time.Duration) {
	r := m.rule(k.rule)
	window := now / int64(r.per)
	if m.at[k] == window {
		left = m.used[k]
	}
	return r.most - left, r.per - time.Duration(now%int64(r.per))
}

// decide decides a request of a tenant at an instant.
func (m *poolModel) decide(tenant string, cost, now int64, takes bool) (a modelAnswer) {
	var asked []*modelRule
	for _, r := range m.rules {
		if !r.pool {
			asked = append(asked, r)
		}
	}
	for try := 0; ; try++ {
		sums := map[modelKey]int64{}
		for _, r := range asked {
			sums[r.keyOf(tenant)] += cost
		}
		var binding *modelRule
		longest := time.Duration(-1)
		for _, r := range asked {
			k := r.keyOf(tenant)
			left, wait := m.left(k, now)
			if sums[k] > r.most {
				wait = weir.Never
			}
			if sums[k] > left && wait > longest {
				binding, longest = r, wait
			}
		}
		if binding == nil {
			return m.admit(asked, sums, tenant, now, takes)
		}
		if try == 0 {
			a.rule, a.retry = binding.name, longest
			a.remaining = weir.MaxCount
			for _, r := range asked {
				a.remaining = min(a.remaining, m.least(r, tenant, now))
			}
		}
		a.retry = min(a.retry, longest)
		replaced := slices.Clone(asked)
		for i, r := range asked {
			if r == binding {
				if r.otherwise == "" || try == 7 {
					return a
				}
				replaced[i] = m.rule(r.otherwise)
			}
		}
		asked = replaced
	}
}

func (m *poolModel) least(of *modelRule, tenant string, now int64) int64 {
	left, _ := m.left(of.keyOf(tenant), now)
	return left
}

// admit takes what was asked, and describes the key with the least left.
func (m *poolModel) admit(asked []*modelRule, sums map[modelKey]int64, tenant string, now int64, takes bool) modelAnswer {
	a := modelAnswer{allowed: true, remaining: weir.MaxCount}
	for k, sum := range sums {
		if left, _ := m.left(k, now); takes {
			r := m.rule(k.rule)
			m.used[k], m.at[k] = r.most-left+sum, now/int64(r.per)
		}
	}
	for _, r := range asked {
		if left := m.least(r, tenant, now); left < a.remaining {
			a.rule, a.remaining = r.name, left
		}
	}
	return a
}

// randomPools returns rules with chains, for a tenant in a descriptor.
func randomPools(random *rand.Rand) (m *poolModel, text string) {
	m = &poolModel{used: map[modelKey]int64{}, at: map[modelKey]int64{}}
	pools := 1 + random.IntN(4)
	for i := range 1 + random.IntN(3) {
		r := &modelRule{name: fmt.Sprintf("floor%d", i), keyed: true}
		if random.IntN(4) > 0 {
			r.otherwise = fmt.Sprintf("pool%d", random.IntN(pools))
		}
		m.rules = append(m.rules, r)
	}
	for i := range pools {
		r := &modelRule{name: fmt.Sprintf("pool%d", i), pool: true, keyed: random.IntN(3) == 0}
		if i+1 < pools && random.IntN(2) == 0 {
			r.otherwise = fmt.Sprintf("pool%d", i+1)
		}
		m.rules = append(m.rules, r)
	}
	var b strings.Builder
	b.WriteString("rules:\n")
	for _, r := range m.rules {
		r.most, r.per = 1+random.Int64N(6), []time.Duration{time.Minute, time.Hour, 24 * time.Hour}[random.IntN(3)]
		match, key, otherwise := `{descriptor.tenant: "*"}`, "", ""
		if r.pool {
			match = "otherwise"
		}
		if r.keyed {
			key = ", key: descriptor.tenant"
		}
		if r.otherwise != "" {
			otherwise = ", otherwise: " + r.otherwise
		}
		fmt.Fprintf(&b, "  - {name: %s, match: %s%s, limit: fixed window %d/%s%s}\n", r.name, match, key, r.most, r.per, otherwise)
	}
	return m, b.String()
}

// poolDaemon is a desk with all fronts, on the clock of the test.
type poolDaemon struct {
	now   *int64
	api   *api.API
	envoy *rls.Server
	redis net.Conn
	in    *bufio.Reader
}

func newPoolDaemon(t *testing.T, text string, now *int64) *poolDaemon {
	t.Helper()
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(text)})
	must(t, err)
	log, port := slog.New(slog.DiscardHandler), &auth.Port{Open: auth.Anyone("test", auth.All)}
	desk := decide.New(decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return *now }}), Rules: config.Named(), Config: config, Log: log})
	d := &poolDaemon{now: now, api: api.New(api.Options{Desk: desk, Log: log}),
		envoy: rls.New(rls.Options{Desk: desk, Headers: httplimit.NoHeaders, Log: log, Auth: port})}
	server, on := resp.New(resp.Options{Desk: desk, Clients: 2, Log: log, Auth: port}), newMemoryListener()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(on) }()
	d.redis, err = on.dial(t.Context(), "", "")
	must(t, err)
	d.in = bufio.NewReader(d.redis)
	t.Cleanup(func() {
		_ = d.redis.Close()
		_ = server.Shutdown(context.Background())
		<-ended
	})
	return d
}

// post asks over HTTP, for one request or the only one of a batch.
func (d *poolDaemon) post(t *testing.T, path, body string) modelAnswer {
	t.Helper()
	w := httptest.NewRecorder()
	d.api.ServeHTTP(w, httptest.NewRequest("POST", "/v1/"+path, strings.NewReader(body)))
	type answer struct {
		Allowed   *bool
		Rule      string
		Remaining int64
		Retry     *float64 `json:"retry_after"`
	}
	var one struct {
		answer
		Decisions []answer
	}
	if err := json.Unmarshal(w.Body.Bytes(), &one); err != nil {
		t.Fatalf("%s: %s", body, w.Body)
	}
	a := one.answer
	if len(one.Decisions) > 0 {
		a = one.Decisions[0]
	}
	if a.Allowed == nil {
		t.Fatalf("%s: %s", body, w.Body)
	}
	made := modelAnswer{*a.Allowed, a.Rule, a.Remaining, weir.Never}
	if a.Retry != nil {
		made.retry = time.Duration(*a.Retry * float64(time.Second)).Round(time.Millisecond)
	}
	return made
}

// command sends a command, and reads its answer of integers.
func (d *poolDaemon) command(t *testing.T, words ...string) (numbers []int64) {
	t.Helper()
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	go func() { _, _ = io.WriteString(d.redis, text) }()
	head, err := d.in.ReadString('\n')
	must(t, err)
	if head[0] != '*' {
		t.Fatalf("%s: %s", words, head)
	}
	for n, _ := strconv.Atoi(strings.TrimSpace(head[1:])); len(numbers) < n; {
		line, err := d.in.ReadString('\n')
		must(t, err)
		number, err := strconv.ParseInt(strings.TrimSpace(line[1:]), 10, 64)
		must(t, err)
		numbers = append(numbers, number)
	}
	return numbers
}

// ways ask for a request of a tenant in each way. names are the rules that callers name.
var poolWays = map[string]func(t *testing.T, d *poolDaemon, names []string, tenant string, cost int64, takes bool) modelAnswer{
	"attributes": func(t *testing.T, d *poolDaemon, _ []string, tenant string, cost int64, takes bool) modelAnswer {
		return d.post(t, verbOf(takes), fmt.Sprintf(`{"attributes":{"descriptor.tenant":%q},"cost":%d}`, tenant, cost))
	},
	"names": func(t *testing.T, d *poolDaemon, names []string, tenant string, cost int64, takes bool) modelAnswer {
		var all []string
		for _, name := range names {
			all = append(all, fmt.Sprintf(`{"rule":%q,"key":%q,"cost":%d}`, name, tenant, cost))
		}
		field := "requests"
		if len(all) == 1 {
			field = "decisions"
		}
		return d.post(t, verbOf(takes), `{"`+field+`":[`+strings.Join(all, ",")+`]}`)
	},
	"envoy": func(t *testing.T, d *poolDaemon, _ []string, tenant string, cost int64, takes bool) modelAnswer {
		if !takes {
			cost = 0 // which asks for one
		}
		descriptor := &envoy.RateLimitDescriptor{Entries: []*envoy.RateLimitDescriptor_Entry{{Key: "tenant", Value: tenant}}, HitsAddend: wrapperspb.UInt64(uint64(cost))}
		a, err := d.envoy.ShouldRateLimit(t.Context(), &ratelimit.RateLimitRequest{Domain: "m", Descriptors: []*envoy.RateLimitDescriptor{descriptor}})
		must(t, err)
		s := a.Statuses[0]
		if s.Code != a.OverallCode {
			t.Fatalf("the status is %v, and the answer %v", s.Code, a.OverallCode)
		}
		made := modelAnswer{allowed: a.OverallCode == ratelimit.RateLimitResponse_OK, rule: s.CurrentLimit.GetName(), remaining: int64(s.LimitRemaining)}
		if made.retry = weir.Never; made.allowed {
			made.retry = 0
		} else if s.DurationUntilReset != nil {
			made.retry = s.DurationUntilReset.AsDuration()
		}
		return made
	},
	"resp": func(t *testing.T, d *poolDaemon, names []string, tenant string, cost int64, takes bool) modelAnswer {
		words := []string{"WEIR." + strings.ToUpper(verbOf(takes))}
		for _, name := range names {
			words = append(words, name, tenant, fmt.Sprint(cost))
		}
		got := d.command(t, words...)
		made := modelAnswer{allowed: got[0] == 1, remaining: got[2], retry: time.Duration(got[3]) * time.Millisecond}
		if got[3] < 0 {
			made.retry = weir.Never
		}
		return made
	},
}

func verbOf(takes bool) string {
	if takes {
		return "take"
	}
	return "peek"
}

// The same requests of the same rules are decided alike by attributes and by names, in a batch, over Envoy's protocol and that of Redis,
// and as a slow model says.
func TestChainsDecideAlikeByAllWaysIn(t *testing.T) {
	paid, refused := 0, 0
	for seed := range randtest.Seeds(t, 200, 40) {
		random := randtest.New(seed)
		model, text := randomPools(random)
		now := 20_000 * int64(24*time.Hour)
		daemons := map[string]*poolDaemon{}
		for way := range poolWays {
			daemons[way] = newPoolDaemon(t, text, &now)
		}
		var names []string
		for _, r := range model.rules {
			if !r.pool {
				names = append(names, r.name)
			}
		}
		for step := range 60 {
			now += random.Int64N(3) * int64(20*time.Second)
			tenant, cost, takes := string("abc"[random.IntN(3)]), 1+random.Int64N(3), random.IntN(4) > 0
			if !takes {
				cost = 1
			}
			want := model.decide(tenant, cost, now, takes)
			for way, ask := range poolWays {
				got := ask(t, daemons[way], names, tenant, cost, takes)
				if way == "resp" { // which names no rule
					got.rule = want.rule
				}
				if got != want {
					t.Fatalf("step %d: %s of %d for %s: %s got %+v, want %+v\n%s", step, verbOf(takes), cost, tenant, way, got, want, text)
				}
			}
			if want.allowed && strings.HasPrefix(want.rule, "pool") {
				paid++
			}
			if !want.allowed {
				refused++
			}
		}
	}
	if paid == 0 || refused == 0 {
		t.Errorf("pools paid %d requests, and %d were refused; want some", paid, refused)
	}
}

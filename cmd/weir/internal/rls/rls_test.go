package rls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/internal/gatewaytest"
)

// setup is what a service of tests is made of.
type setup struct {
	Options
	desk decide.Options
}

// newServer returns a service of rules, at midnight, and the clock.
func newServer(t testing.TB, file string, change func(*setup)) (*Server, *time.Time) {
	t.Helper()
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(file)})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	log := slog.New(slog.DiscardHandler)
	o := setup{
		Options{Headers: httplimit.NoHeaders, Log: log, Auth: &auth.Port{Open: auth.Anyone("test", auth.Local)}},
		decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now.UnixNano() }}), Config: config, Log: log},
	}
	if change != nil {
		change(&o)
	}
	o.Desk = decide.New(o.desk)
	return New(o.Options), &now
}

// asked returns a call from its text in JSON.
func asked(t testing.TB, text string) *service.RateLimitRequest {
	t.Helper()
	var r service.RateLimitRequest
	if err := protojson.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return &r
}

// sameAs fails unless an answer is that of the JSON.
func sameAs(t *testing.T, got *service.RateLimitResponse, want string) {
	t.Helper()
	var w service.RateLimitResponse
	if err := protojson.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	if !proto.Equal(got, &w) {
		t.Errorf("got  %s\nwant %s", protojson.Format(got), protojson.Format(&w))
	}
}

const shop = `
rules:
  - {name: address, match: {domain: shop, descriptor.remote_address: "*"}, key: descriptor.remote_address, limit: 5/m, message: Slow down.}
  - {name: path, match: {domain: shop, descriptor.path: "/api/*"}, key: descriptor.path, limit: fixed window 100/d}
  - {name: heavy, match: {domain: shop, descriptor.path: /api/heavy}, limit: token bucket 10/s burst 20, cost: 10}
  - {name: office, match: {descriptor.user: boss}, unlimited: true}
  - {name: banned, match: {descriptor.user: mallory}, deny: true, message: Go away.}
`

// entries is a descriptor in JSON: of pairs, and further fields.
func entries(pairs string, fields ...string) string {
	var list []string
	for pair := range strings.SplitSeq(pairs, ",") {
		key, value, _ := strings.Cut(pair, "=")
		list = append(list, `{"key":"`+key+`","value":"`+value+`"}`)
	}
	return `{"entries":[` + strings.Join(list, ",") + `]` + strings.Join(append([]string{""}, fields...), ",") + `}`
}

func callOf(descriptors ...string) string {
	return `{"domain":"shop","descriptors":[` + strings.Join(descriptors, ",") + `]}`
}

func TestADescriptorIsDecidedByTheRulesThatItMatches(t *testing.T) {
	for _, c := range []struct{ name, call, want string }{
		{"one limit", callOf(entries("remote_address=192.0.2.1")),
			`{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":5,"unit":"MINUTE","name":"address"},"limitRemaining":4,"durationUntilReset":"12s"}]}`},
		{"two limits, the one with less left", callOf(entries("path=/api/heavy")),
			`{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":20,"name":"heavy"},"limitRemaining":10,"durationUntilReset":"1s"}]}`},
		{"no rule", callOf(entries("color=red")), `{"overallCode":"OK","statuses":[{"code":"OK"}]}`},
		{"another domain", `{"domain":"other","descriptors":[` + entries("remote_address=192.0.2.1") + `]}`, `{"overallCode":"OK","statuses":[{"code":"OK"}]}`},
		{"exempt", callOf(entries("user=boss,remote_address=192.0.2.1")), `{"overallCode":"OK","statuses":[{"code":"OK","limitRemaining":4294967295}]}`},
		{"denied", callOf(entries("user=mallory"), entries("remote_address=192.0.2.1")),
			`{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT"},{"code":"OK"}],"rawBody":"R28gYXdheS4=","dynamicMetadata":{"rule":"banned"}}`},
		{"too much at once", callOf(entries("remote_address=192.0.2.1", `"hitsAddend":6`)),
			`{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{"requestsPerUnit":5,"unit":"MINUTE","name":"address"},"limitRemaining":5}],"rawBody":"U2xvdyBkb3duLg==","dynamicMetadata":{"rule":"address","key":"192.0.2.1"}}`},
		{"a limit in the call", callOf(entries("remote_address=192.0.2.1", `"limit":{"requestsPerUnit":3,"unit":"HOUR"}`)),
			`{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":3,"unit":"HOUR","name":"envoy:call:hour"},"limitRemaining":2,"durationUntilReset":"1200s"}]}`},
		{"a limit of nothing in the call", callOf(entries("a=b", `"limit":{"unit":"HOUR"}`)),
			`{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{"name":"envoy:call:hour"}}],"dynamicMetadata":{"rule":"envoy:call:hour","key":"shop|a=b"}}`},
		{"no hits ask for room", callOf(entries("remote_address=192.0.2.1", `"hitsAddend":0`)),
			`{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":5,"unit":"MINUTE","name":"address"},"limitRemaining":5,"durationUntilReset":"0s"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newServer(t, shop, nil)
			got, err := s.ShouldRateLimit(t.Context(), asked(t, c.call))
			if err != nil {
				t.Fatal(err)
			}
			sameAs(t, got, c.want)
		})
	}
}

// summary is the code of a call, and of each descriptor its code and what remains.
func summary(t *testing.T, s *Server, call string) string {
	t.Helper()
	a, err := s.ShouldRateLimit(t.Context(), asked(t, call))
	if err != nil {
		return err.Error()
	}
	text := a.OverallCode.String()
	for _, d := range a.Statuses {
		text += fmt.Sprintf(" %s:%d", d.Code, d.LimitRemaining)
	}
	return text
}

func TestTheDescriptorsOfACallAreTakenTogetherOrNotAtAll(t *testing.T) {
	s, now := newServer(t, shop, nil)
	address, path := "remote_address=192.0.2.1", "path=/api/x"
	for _, step := range []struct{ name, call, want string }{
		{"both fit", callOf(entries(address, `"hitsAddend":3`), entries(path)), "OK OK:2 OK:99"},
		{"one does not fit", callOf(entries(address, `"hitsAddend":3`), entries(path)), "OVER_LIMIT OVER_LIMIT:2 OK:99"},
		{"the same key twice", callOf(entries(address, `"hitsAddend":2`), entries(address)), "OVER_LIMIT OVER_LIMIT:2 OVER_LIMIT:2"},
		{"nothing was taken", callOf(entries(address, `"hitsAddend":2`), entries(path)), "OK OK:0 OK:98"},
		{"no room", callOf(entries(address, `"hitsAddend":0`)), "OVER_LIMIT OVER_LIMIT:0"},
		{"hits come back", callOf(entries(address, `"hitsAddend":4`, `"isNegativeHits":true`), entries(path)), "OK OK:4 OK:97"},
		{"never more than all", callOf(entries(address, `"hitsAddend":4`, `"isNegativeHits":true`)), "OK OK:5"},
		{"hits of the call", `{"domain":"shop","hitsAddend":5,"descriptors":[` + entries(address) + `]}`, "OK OK:0"},
	} {
		if got := summary(t, s, step.call); got != step.want {
			t.Errorf("%s: got %s, want %s", step.name, got, step.want)
		}
	}
	*now = now.Add(24 * time.Second)
	if got := summary(t, s, callOf(entries(address, `"hitsAddend":2`))); got != "OK OK:0" {
		t.Errorf("24 seconds later: got %s, want room for 2 hits", got)
	}
}

// counting counts the calls of an engine.
func counting(calls *int) func(*setup) {
	return func(o *setup) {
		o.desk.Engine = weir.Wrap(o.desk.Engine, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
			*calls++
			return next(ctx, call)
		})
	}
}

// Questions beside takes are a call of their own, because what is taken depends on them.
func TestTheDescriptorsOfACallAreOneCallOfTheEngine(t *testing.T) {
	calls := 0
	s, _ := newServer(t, shop, counting(&calls))
	compat, _ := newCompat(t, "{domain: shop, descriptors: [{key: path, rate_limit: {unit: day, requests_per_unit: 100}}]}", nil, counting(&calls))
	var takes, questions []string
	for i := range 50 {
		takes = append(takes, entries(fmt.Sprint("path=/api/", i)))
		questions = append(questions, entries(fmt.Sprint("path=/api/", i), `"hitsAddend":0`))
	}
	for _, c := range []struct {
		name        string
		server      *Server
		descriptors []string
		want        int
	}{
		{"takes", s, takes, 1},
		{"questions", s, questions, 1},
		{"takes and questions", s, slices.Concat(takes, questions), 2},
		{"counted", compat, slices.Concat(takes, questions), 1},
	} {
		calls = 0
		if got := summary(t, c.server, callOf(c.descriptors...)); !strings.HasPrefix(got, "OK OK:") || calls != c.want {
			t.Errorf("%s: %d calls of the engine and %.40s, want %d", c.name, calls, got, c.want)
		}
	}
}

func TestACallThatCannotBeDecidedSaysWhatIsWrong(t *testing.T) {
	s, _ := newServer(t, shop, nil)
	many := callOf(slices.Repeat([]string{entries("path=/api/heavy")}, 65)...)
	for call, want := range map[string]string{
		`{"descriptors":[` + entries("a=b") + `]}`:                "rls: domain is empty",
		`{"domain":"shop"}`:                                       "rls: descriptors are 0, want 1 to 1024",
		callOf(`{}`):                                              "rls: descriptors[0]: entries are empty",
		callOf(entries("a=b"), entries("a=b,=c")):                 "rls: descriptors[1]: entries[1]: key is empty",
		callOf(entries("a=b", `"limit":{"requestsPerUnit":1}`)):   "rls: descriptors[0]: limit: unit is UNKNOWN, want SECOND, MINUTE, HOUR, DAY, MONTH or YEAR",
		callOf(entries("a=b", `"hitsAddend":"9007199254740993"`)): "rls: descriptors[0]: hits_addend is 9007199254740993, want at most 9007199254740992",
		many: "rls: requests are 130, not 1 to 128",
	} {
		_, err := s.ShouldRateLimit(t.Context(), asked(t, call))
		if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != want {
			t.Errorf("%.80s: got %v, want InvalidArgument: %s", call, err, want)
		}
	}
}

func TestAnEngineThatCannotDecideIsUnavailable(t *testing.T) {
	broken := errors.New("dial tcp 10.0.0.7:6379: connection refused")
	var log strings.Builder
	s, _ := newServer(t, shop, func(o *setup) {
		o.desk.Engine = weir.Kit.EngineOf(func(context.Context, weir.Call) (weir.Answer, error) { return weir.Answer{}, broken }, o.desk.Engine.Check)
		o.desk.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	for i, call := range []string{callOf(entries("path=/api/x")), callOf(entries("path=/api/x"), entries("remote_address=192.0.2.1"))} {
		_, err := s.ShouldRateLimit(t.Context(), asked(t, call))
		if want := "rls: the engine could not decide, and admitted nothing"; status.Code(err) != codes.Unavailable || status.Convert(err).Message() != want {
			t.Errorf("got %v, want Unavailable: %s", err, want)
		}
		if !strings.Contains(log.String(), broken.Error()) || s.Stats.Undecided.Load() != uint64(i+1) {
			t.Errorf("got %q logged and %d counted, want %v", &log, s.Stats.Undecided.Load(), broken)
		}
	}
}

// A call must not make the daemon think that its engine has failed.
func TestALimitInACallThatTheEngineCannotHoldIsNoFailure(t *testing.T) {
	for _, file := range []string{shop, "{domain: shop, descriptors: [{key: path, rate_limit: {unit: day, requests_per_unit: 100}}]}"} {
		var log strings.Builder
		asks := func(o *setup) {
			o.desk.Engine = weir.Kit.EngineOf(func(context.Context, weir.Call) (weir.Answer, error) {
				t.Error("the engine was asked")
				return weir.Answer{}, nil
			}, func(rules ...*weir.Rule) error {
				if weir.Describe(rules[0].Limits()[0]).Capacity > 1_000_000_000 { // as Redis does
					return errors.New("the burst is above 1000000000")
				}
				return nil
			})
			o.desk.Log = slog.New(slog.NewTextHandler(&log, nil))
		}
		s, _ := newServer(t, shop, asks)
		if file != shop {
			s, _ = newCompat(t, file, nil, asks)
		}
		_, err := s.ShouldRateLimit(t.Context(), asked(t, callOf(entries("path=/api/x"), entries("path=/api/x", `"limit":{"requestsPerUnit":4000000000,"unit":"HOUR"}`))))
		if want := "rls: limit: the burst is above 1000000000"; status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != want {
			t.Errorf("got %v, want InvalidArgument: %s", err, want)
		}
		if log.Len() > 0 {
			t.Errorf("the engine is said to have failed: %s", &log)
		}
	}
}

func TestAPanicOfTheEngineEndsItsCallAlone(t *testing.T) {
	s, _ := newServer(t, shop, func(o *setup) {
		o.desk.Engine = weir.Wrap(o.desk.Engine, func(context.Context, weir.Call, weir.Next) (weir.Answer, error) { panic("broken") })
	})
	if _, err := s.ShouldRateLimit(t.Context(), asked(t, callOf(entries("path=/api/x")))); status.Code(err) != codes.Internal {
		t.Errorf("got %v, want Internal", err)
	}
}

func TestHeaderFieldsNameTheRuleThatBinds(t *testing.T) {
	s, _ := newServer(t, shop, func(o *setup) { o.Headers = httplimit.Draft11 })
	call := asked(t, callOf(entries("remote_address=192.0.2.1", `"hitsAddend":5`), entries("path=/api/x")))
	for _, want := range []string{
		`ratelimit: "address";r=0;t=60|ratelimit-policy: "address";q=5;w=60`,
		`ratelimit: "address";r=0;t=60|ratelimit-policy: "address";q=5;w=60|retry-after: 60`,
	} {
		a, err := s.ShouldRateLimit(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range a.ResponseHeadersToAdd {
			got = append(got, h.Key+": "+h.Value)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
		}
	}
}

func TestShadowsAreCountedAndNeverRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := weir.NewMemory(weir.MemoryOptions{})
		s, _ := newServer(t, `rules: [{name: trial, match: {descriptor.user: "*"}, key: descriptor.user, limit: 1/h, shadow: true},
  {name: user, match: {descriptor.user: "*"}, key: descriptor.user, limit: 10/h, candidate: 5/h}]`, func(o *setup) { o.desk.Engine = engine })
		for range 7 {
			if got := settledSummary(t, s, callOf(entries("user=ann"))); !strings.HasPrefix(got, "OK ") {
				t.Errorf("got %s, want it admitted", got)
			}
		}
		for _, trial := range s.Desk.InForce().Config.Limits() {
			if !strings.Contains(trial.Name(), "~") {
				continue
			}
			if d, err := engine.Peek(t.Context(), trial.For("ann", 1)); err != nil || d.Remaining != 0 {
				t.Errorf("%s: got %d remaining (%v), want all used", trial, d.Remaining, err)
			}
		}
	})
}

func TestShadowsOutsideTheScopeOfACallerAreNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		identities, err := auth.Parse("web sha256:" + strings.Repeat("ab", 32) + " take:user")
		if err != nil {
			t.Fatal(err)
		}
		engine, compared := weir.NewMemory(weir.MemoryOptions{}), []string{}
		s, _ := newServer(t, `rules: [{name: trial, match: {descriptor.user: "*"}, key: descriptor.user, limit: 1/h, shadow: true},
  {name: user, match: {descriptor.user: "*"}, key: descriptor.user, limit: 10/h, candidate: 5/h}]`, func(o *setup) {
			o.desk.Engine, o.Auth = engine, &auth.Port{Open: identities[0]}
			o.desk.Compared = func(name string, _, _ weir.Decision, _ error) { compared = append(compared, name) }
		})
		if got := settledSummary(t, s, callOf(entries("user=ann"))); !strings.HasPrefix(got, "OK ") {
			t.Errorf("got %s, want it admitted", got)
		}
		if len(compared) != 1 || compared[0] != "user~candidate" {
			t.Errorf("%q were tried, want the candidate of the caller's rule alone", compared)
		}
	})
}

func TestTheExampleOfTheDocumentDecidesAsItSays(t *testing.T) {
	content, err := os.ReadFile("../../../../docs/howto/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := newServer(t, gatewaytest.Documented(t, "weir/shop").Text, nil)
	call := regexp.MustCompile(`curl -d '(.*)' http://127\.0\.0\.1:8080/json\n(.*)\n`).FindStringSubmatch(string(content))
	got, err := s.ShouldRateLimit(t.Context(), asked(t, call[1]))
	if err != nil {
		t.Fatal(err)
	}
	sameAs(t, got, call[2])
}

package envoyproxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/cmd/weir/internal/xds"
	"github.com/weirflow/weir/cmd/weir/internal/xdstest"
)

// pushing are the Pushes of a test.
type pushing struct {
	*Pushes
	t       *testing.T
	version int
}

func newPushing(t *testing.T, s Settings) *pushing {
	return &pushing{NewPushes(rules.Options{}, s, &Stats{}), t, 0}
}

func packed(t *testing.T, c *pb.RateLimitConfig) *anypb.Any {
	t.Helper()
	content, err := proto.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return &anypb.Any{TypeUrl: ResourceType, Value: content}
}

// push pushes resources as the next version.
func (p *pushing) push(list ...any) Pushed {
	p.t.Helper()
	var all []*anypb.Any
	for _, one := range list {
		switch one := one.(type) {
		case *pb.RateLimitConfig:
			all = append(all, packed(p.t, one))
		case *anypb.Any:
			all = append(all, one)
		}
	}
	p.version++
	return p.Push(fmt.Sprint(p.version), time.Unix(int64(p.version), 0), all)
}

// limits are the limits in force, by the domain and the key: shop.user=5/m.
func (p *pushing) limits() string {
	var all []string
	for _, l := range p.Config().Foreign.(*Config).Limits {
		all = append(all, l.path+"="+strings.TrimPrefix(rules.LimitText(l.Rule), "fixed window "))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func minute(key string, count uint32) *pb.RateLimitDescriptor {
	return xdstest.Limit(key, "", count, pb.RateLimitUnit_MINUTE)
}

func domain(name string, list ...*pb.RateLimitDescriptor) *pb.RateLimitConfig {
	return xdstest.Resource(name, list...)
}

func TestPushedResourcesSayWhatFilesSay(t *testing.T) {
	p := newPushing(t, Settings{})
	done := p.push(domain("shop",
		&pb.RateLimitDescriptor{Key: "user", Value: "free", ShadowMode: true, QuotaMode: true, DetailedMetric: true, RateLimit: &pb.RateLimitPolicy{Name: "n", RequestsPerUnit: 7, Unit: pb.RateLimitUnit_YEAR, Replaces: []*pb.RateLimitReplace{{Name: "m"}}}},
		&pb.RateLimitDescriptor{Key: "path", RateLimit: &pb.RateLimitPolicy{Name: "m", RequestsPerUnit: 1, Unit: pb.RateLimitUnit_WEEK}, Descriptors: []*pb.RateLimitDescriptor{minute("user", 3)}},
		&pb.RateLimitDescriptor{Key: "host", Value: "a*b", RateLimit: &pb.RateLimitPolicy{Unlimited: true}}))
	if len(done.Bad) > 0 {
		t.Fatalf("bad: %+v", done.Bad)
	}
	c := p.Config().Foreign.(*Config)
	m := c.Match("shop", []*envoy.RateLimitDescriptor_Entry{{Key: "user", Value: "free"}})
	if l := m.Limit; l == nil || !l.Shadow || !l.Quota || !l.Detailed || l.Name != "n" || !slices.Equal(l.Replaces, []string{"m"}) || l.Shown.RequestsPerUnit != 7 || l.Shown.Unit.String() != "YEAR" {
		t.Errorf("got %+v, want the limit as it was pushed", l)
	}
	if m := c.Match("shop", []*envoy.RateLimitDescriptor_Entry{{Key: "path", Value: "/x"}, {Key: "user", Value: "u"}}); m.Limit == nil || m.Limit.Shown.RequestsPerUnit != 3 {
		t.Errorf("got %+v, want the limit below path", m.Limit)
	}
	if m := c.Match("shop", []*envoy.RateLimitDescriptor_Entry{{Key: "host", Value: "aXb"}}); m.Limit == nil || !m.Limit.Unlimited {
		t.Errorf("got %+v, want the unlimited pattern", m.Limit)
	}
}

// Envoy Gateway writes a star in the key and the value of a route without host names, and of one for *.example.com.
func TestARouteWithoutHostNamesIsLimited(t *testing.T) {
	for _, host := range []string{"*", "*_example_com"} {
		p := newPushing(t, Settings{})
		key := "httproute/default/backend/rule/0/match/0/" + host
		done := p.push(domain("default/eg/http", &pb.RateLimitDescriptor{Key: key, Value: key, Descriptors: []*pb.RateLimitDescriptor{minute("rule-0-match-0", 3)}}))
		if len(done.Bad) > 0 {
			t.Errorf("bad: %+v", done.Bad)
			continue
		}
		c := p.Config().Foreign.(*Config)
		for sent, want := range map[string]int{key: 3, strings.Replace(key, "*", "www", 1): 0} {
			m := c.Match("default/eg/http", []*envoy.RateLimitDescriptor_Entry{{Key: sent, Value: sent}, {Key: "rule-0-match-0", Value: "shop"}})
			if got := m.Limit.count(); got != want {
				t.Errorf("%s: got limit %d, want %d", sent, got, want)
			}
		}
		if name := c.Limits[0].Rule.Name(); name != "backend/rule/0.rule-0-match-0" {
			t.Errorf("got the name %q, want that of the route", name)
		}
		if done := p.push(domain("default/eg/http", minute("a*", 1))); len(done.Bad) != 1 {
			t.Errorf("bad are %+v, want a key that would be a pattern", done.Bad)
		}
	}
}

func TestOneBadResourceDoesNotBlockTheOthers(t *testing.T) {
	for name, bad := range map[string]struct {
		resource any
		why      string
	}{
		"a unit":           {domain("b", xdstest.Limit("k", "", 1, pb.RateLimitUnit_UNKNOWN)), `b: k: the unit "unknown" of rate_limit is none of second`},
		"no key":           {domain("b", minute("", 1)), "b: the descriptor has no key"},
		"twice":            {domain("b", minute("k", 1), minute("k", 2)), "b: k: the descriptor b.k is given twice"},
		"unlimited, unit":  {domain("b", &pb.RateLimitDescriptor{Key: "k", RateLimit: &pb.RateLimitPolicy{Unlimited: true, Unit: pb.RateLimitUnit_DAY}}), "b: k: rate_limit has a unit and is unlimited"},
		"replaces itself":  {domain("b", &pb.RateLimitDescriptor{Key: "k", RateLimit: &pb.RateLimitPolicy{Name: "n", Unit: pb.RateLimitUnit_DAY, Replaces: []*pb.RateLimitReplace{{Name: "n"}}}}), "b: k: replaces names the limit itself"},
		"replaces nothing": {domain("b", &pb.RateLimitDescriptor{Key: "k", RateLimit: &pb.RateLimitPolicy{Name: "n", Unit: pb.RateLimitUnit_DAY, Replaces: []*pb.RateLimitReplace{{}}}}), "b: k: replaces has no name"},
		"no domain":        {&pb.RateLimitConfig{Name: "b"}, "b: the domain is missing"},
		"nested":           {domain("b", nested(70)), "b: is nested too deeply"},
		"the first domain": {&pb.RateLimitConfig{Name: "b", Domain: "a"}, `b: the domain "a" is in a, too`},
		"no protobuf":      {&anypb.Any{TypeUrl: ResourceType, Value: append([]byte("\x0a\x01b"), 0xff)}, "b: does not decode"},
	} {
		p := newPushing(t, Settings{})
		p.push(domain("a", minute("k", 1)), domain("b", minute("k", 2)), domain("c", minute("k", 3)))
		done := p.push(domain("a", minute("k", 10)), bad.resource, domain("c", minute("k", 30)))
		if len(done.Bad) != 1 || done.Bad[0].Name != "b" || !strings.HasPrefix(done.Bad[0].Why, bad.why) || done.Bad[0].Keeps != "1" {
			t.Errorf("%s: bad are %+v, want b: %s, which keeps version 1", name, done.Bad, bad.why)
		}
		if got, want := p.limits(), "a.k=10/m b.k=2/m c.k=30/m"; got != want {
			t.Errorf("%s: in force are %s, want %s", name, got, want)
		}
		if done := p.push(domain("a", minute("k", 10)), domain("b", minute("k", 20)), domain("c", minute("k", 30))); len(done.Bad) > 0 || p.limits() != "a.k=10/m b.k=20/m c.k=30/m" {
			t.Errorf("%s, mended: %+v, and in force are %s", name, done.Bad, p.limits())
		}
	}
}

func nested(depth int) *pb.RateLimitDescriptor {
	d := minute("k", 1)
	for range depth {
		d = &pb.RateLimitDescriptor{Key: "k", Descriptors: []*pb.RateLimitDescriptor{d}}
	}
	return d
}

func TestABadResourceThatWasNeverGoodIsNotInForce(t *testing.T) {
	p := newPushing(t, Settings{})
	done := p.push(domain("a", minute("k", 1)), domain("b", minute("", 2)))
	if want := (xds.Bad{Name: "b", Why: "b: the descriptor has no key"}); len(done.Bad) != 1 || done.Bad[0] != want {
		t.Errorf("bad are %+v, want %+v", done.Bad, want)
	}
	if got := p.limits(); got != "a.k=1/m" {
		t.Errorf("in force are %s, want a.k=1/m", got)
	}
}

// A resource that is good goes before an old version that was kept for a bad one.
func TestAKeptVersionGivesWay(t *testing.T) {
	p := newPushing(t, Settings{})
	p.push(domain("a", minute("k", 1)))
	done := p.push(&pb.RateLimitConfig{Name: "a", Domain: "other", Descriptors: []*pb.RateLimitDescriptor{minute("", 1)}}, &pb.RateLimitConfig{Name: "b", Domain: "a", Descriptors: []*pb.RateLimitDescriptor{minute("k", 2)}})
	if len(done.Bad) != 1 || done.Bad[0].Name != "a" || done.Bad[0].Keeps != "" || p.limits() != "a.k=2/m" {
		t.Errorf("bad are %+v and in force %s, want a without its old version, and b", done.Bad, p.limits())
	}
}

func TestOfTwoResourcesOfADomainTheLaterByNameIsBad(t *testing.T) {
	first, second := &pb.RateLimitConfig{Name: "x", Domain: "d", Descriptors: []*pb.RateLimitDescriptor{minute("k", 1)}}, &pb.RateLimitConfig{Name: "y", Domain: "d", Descriptors: []*pb.RateLimitDescriptor{minute("l", 2)}}
	p := newPushing(t, Settings{})
	if done := p.push(second, first); len(done.Bad) != 1 || done.Bad[0].Name != "y" || p.limits() != "d.k=1/m" {
		t.Errorf("bad are %+v and in force %s, want y and d.k=1/m", done.Bad, p.limits())
	}
	p = newPushing(t, Settings{MergeDomains: true})
	if done := p.push(second, first); len(done.Bad) != 0 || p.limits() != "d.k=1/m d.l=2/m" {
		t.Errorf("merged: bad are %+v and in force %s, want both", done.Bad, p.limits())
	}
}

func TestWhatIsGoneGoes(t *testing.T) {
	p := newPushing(t, Settings{})
	p.push(domain("a", minute("k", 1)), domain("b", minute("k", 2)))
	if done := p.push(domain("a", minute("k", 1))); !slices.Equal(done.Gone, []string{"b"}) || p.limits() != "a.k=1/m" {
		t.Errorf("gone are %v and in force %s, want b and a.k=1/m", done.Gone, p.limits())
	}
	if done := p.push(); !slices.Equal(done.Gone, []string{"a"}) || p.limits() != "" || p.Config().Foreign.(*Config).Unloaded {
		t.Errorf("gone are %v and in force %q, want a, and no limit", done.Gone, p.limits())
	}
}

// A resource without a name may be any that is missing, so nothing goes.
func TestNothingGoesBesideAResourceWithoutAName(t *testing.T) {
	p := newPushing(t, Settings{})
	p.push(domain("a", minute("k", 1)), domain("b", minute("k", 2)))
	done := p.push(domain("a", minute("k", 10)), &anypb.Any{TypeUrl: ResourceType, Value: []byte{0xff}})
	if len(done.Bad) != 1 || done.Bad[0].Name != "resource 2" || p.limits() != "a.k=10/m b.k=2/m" {
		t.Errorf("bad are %+v and in force %s, want resource 2, and b as before", done.Bad, p.limits())
	}
}

func TestResourcesOfOneNameAreBothInForce(t *testing.T) {
	p := newPushing(t, Settings{})
	a, b := domain("a", minute("k", 1)), domain("b", minute("k", 2))
	b.Name = "a"
	if done := p.push(a, b); len(done.Bad) > 0 || p.limits() != "a.k=1/m b.k=2/m" {
		t.Errorf("bad are %+v and in force %s, want both", done.Bad, p.limits())
	}
}

func TestRestoredRulesAreThoseThatWereSaved(t *testing.T) {
	p := newPushing(t, Settings{})
	p.push(domain("a", minute("k", 1)))
	p.push(domain("a", minute("k", 1)), domain("b", &pb.RateLimitDescriptor{Key: "q", QuotaMode: true, RateLimit: &pb.RateLimitPolicy{RequestsPerUnit: 9, Unit: pb.RateLimitUnit_HOUR}}))
	content, err := p.Save()
	if err != nil {
		t.Fatal(err)
	}
	again := newPushing(t, Settings{})
	done, err := again.Restore(content)
	if err != nil || len(done.Bad) > 0 || again.limits() != p.limits() {
		t.Errorf("restored %s, %+v, %v, want %s", again.limits(), done.Bad, err, p.limits())
	}
	if version, at := again.Version(); version != "2" || !at.Equal(time.Unix(2, 0)) || again.inForce["a"].version != "1" {
		t.Errorf("restored version %s of %s, and a of %s, want 2 of %s, and 1", version, at, again.inForce["a"].version, time.Unix(2, 0))
	}
	for _, bad := range []string{"", "{", "{}", `{"pushed": 3}`, string(content[:len(content)/2])} {
		if _, err := newPushing(t, Settings{}).Restore([]byte(bad)); err == nil {
			t.Errorf("%q is restored", bad)
		}
	}
}

func TestShortNamesSayRouteAndRuleAndDiffer(t *testing.T) {
	p := newPushing(t, Settings{})
	p.push(
		domain("default/eg/http", xdstest.Route("backend", minute("rule-0-match-0", 1), xdstest.Limit("rule-1-match--1", "rule-1-match--1", 2, pb.RateLimitUnit_HOUR)), xdstest.Route("shop", minute("rule-0-match-0", 1))),
		domain("default/eg/https", xdstest.Route("shop", minute("rule-0-match-0", 1))),
		domain("ns/policy", &pb.RateLimitDescriptor{Key: "ns/policy/rule/0", Value: "ns/policy/rule/0", Descriptors: []*pb.RateLimitDescriptor{minute("rule-0-match-0", 1)}}),
		domain("plain", minute("user", 1), minute(strings.Repeat("long", 100), 1)))
	names := map[string]string{}
	for _, l := range p.Config().Foreign.(*Config).Limits {
		if len(l.Rule.Name()) > mostShort || names[l.Rule.Name()] != "" || l.Full == "" && l.path != l.Rule.Name() {
			t.Errorf("got the name %q of %q, want a short one that differs from others", l.Rule.Name(), l.Full)
		}
		names[l.Rule.Name()] = l.path
	}
	for _, want := range []string{"backend/rule/0.rule-0-match-0", "backend/rule/0.rule-1-match--1", "ns/policy/rule/0.rule-0-match-0", "plain.user"} {
		if names[want] == "" {
			t.Errorf("no limit is named %q: %q", want, names)
		}
	}
	colliding := 0
	for name := range names {
		if strings.HasPrefix(name, "shop/rule/0.rule-0-match-0#") {
			colliding++
		}
	}
	if colliding != 2 {
		t.Errorf("%d names of shop have a suffix, want those of both listeners: %q", colliding, names)
	}
}

// An engine knows a limit by its full name, so its state does not depend on the names of others.
func TestStatesSurviveAPushThatChangesShortNames(t *testing.T) {
	p := newPushing(t, Settings{})
	engine := weir.NewMemory(weir.MemoryOptions{})
	var names Names
	around := names.Around(engine)
	count := func(want string) int64 {
		t.Helper()
		c := p.Config().Foreign.(*Config)
		names.Use(c)
		m := c.Match("default/eg/http", []*envoy.RateLimitDescriptor_Entry{{Key: xdstest.RouteKey("shop"), Value: xdstest.RouteKey("shop")}, {Key: "rule-0-match-0", Value: "u"}})
		d, err := around.Record(t.Context(), m.Limit.Rule.For(m.Key, 1))
		if err != nil || !strings.HasPrefix(d.Rule, want) || d.Rule != m.Limit.Rule.Name() {
			t.Errorf("the decision names %q, %v, want %s", d.Rule, err, want)
		}
		return d.Remaining
	}
	http := domain("default/eg/http", xdstest.Route("shop", minute("rule-0-match-0", 100)))
	p.push(http)
	first := count("shop/rule/0.rule-0-match-0")
	p.push(http, domain("default/eg/https", xdstest.Route("shop", minute("rule-0-match-0", 100))))
	if second := count("shop/rule/0.rule-0-match-0#"); first != 99 || second != 98 {
		t.Errorf("remaining are %d and then %d, want 99 and 98", first, second)
	}
}

// An override puts another limit in the place of a rule, by its short name. The engine knows that by the full name, too.
func TestALimitInThePlaceOfAPushedOneHasItsStates(t *testing.T) {
	p := newPushing(t, Settings{})
	p.push(domain("default/eg/http", xdstest.Route("shop", minute("rule-0-match-0", 100))))
	var names Names
	names.Use(p.Config().Foreign.(*Config))
	engine := names.Around(weir.NewMemory(weir.MemoryOptions{}))
	limit := p.Config().Foreign.(*Config).Limits[0]
	for i := range mostMade + 10 {
		instead, err := weir.NewRule(limit.Rule.Name(), weir.FixedWindow{Rate: weir.Rate{Count: 1_000_000, Period: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := engine.Record(t.Context(), instead.For("u", 1)); err != nil || d.Rule != limit.Rule.Name() || d.Remaining >= 1_000_000 {
			t.Fatalf("after %d: got %+v, %v, want it counted, and the short name", i, d, err)
		}
	}
	if n := names.current.Load().number.Load(); n > mostMade {
		t.Errorf("%d rules are kept, want at most %d", n, mostMade)
	}
}

func TestALimitWithATildeIsNoShadow(t *testing.T) {
	p := newPushing(t, Settings{})
	p.push(domain("d", xdstest.Limit("user", "~a", 1, pb.RateLimitUnit_DAY), minute(strings.Repeat("x", 300)+"1", 1), minute(strings.Repeat("x", 300)+"2", 1)))
	for _, l := range p.Config().Foreign.(*Config).Limits {
		if strings.Contains(l.Rule.Name()+l.Full, "~") {
			t.Errorf("the limit is named %q and %q, and a ~ marks shadows", l.Rule.Name(), l.Full)
		}
	}
}

func TestTenThousandResourcesAreReadAndMoreLimitsThanTheBoundAreBad(t *testing.T) {
	var list []any
	for i := range 10_001 {
		list = append(list, domain(fmt.Sprintf("domain%05d", i), minute("k", 1), minute("l", 1)))
	}
	p := newPushing(t, Settings{})
	done := p.push(list...)
	if len(done.Bad) != 1 || done.Bad[0].Name != "domain10000" || !strings.Contains(done.Bad[0].Why, "is limit 20001, want at most 20000") || len(p.Config().Rules) != maxLimits {
		t.Errorf("bad are %+v of %d limits, want the last resource alone", done.Bad, len(p.Config().Rules))
	}
}

// Envoy Gateway's own tests have this number, for a rule without a limit.
func TestAPushedNumberThatNoTrafficReachesIsAcceptedAndNoted(t *testing.T) {
	p := newPushing(t, Settings{})
	done := p.push(domain("d", xdstest.Limit("k", "", 4294967295, pb.RateLimitUnit_SECOND)))
	if notes := p.Config().Foreign.(*Config).Notes; len(done.Bad) > 0 || len(notes) != 1 || !strings.Contains(notes[0].Text, "unlimited in effect") {
		t.Errorf("bad are %+v and notes %+v, want a note", done.Bad, notes)
	}
}

func FuzzPush(f *testing.F) {
	seed, _ := proto.Marshal(domain("default/eg/http", xdstest.Route("shop", minute("rule-0-match-0", 100))))
	f.Add(seed, seed)
	f.Add([]byte{0xff}, []byte{})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		p := newPushing(t, Settings{MergeDomains: len(one)%2 == 0})
		good := domain("good", minute("k", 1))
		done := p.push(good, &anypb.Any{TypeUrl: ResourceType, Value: one}, &anypb.Any{TypeUrl: ResourceType, Value: two})
		content, err := p.Save()
		if err != nil {
			t.Fatal(err)
		}
		again := newPushing(t, Settings{MergeDomains: len(one)%2 == 0})
		if restored, err := again.Restore(content); err != nil || len(restored.Bad) > 0 || again.limits() != p.limits() {
			t.Errorf("restored %s, %+v, %v, want %s", again.limits(), restored.Bad, err, p.limits())
		}
		if len(done.Bad) > 2 {
			t.Errorf("bad are %+v", done.Bad)
		}
	})
}

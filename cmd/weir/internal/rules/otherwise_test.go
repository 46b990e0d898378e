package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// chained is a request with those that are asked in its place, as text.
func chained(q *weir.Request) string {
	var links []string
	for ; q != nil; q = q.Otherwise {
		links = append(links, fmt.Sprintf("%s of %q costs %d", q.Rule, q.Key, q.Cost))
	}
	return strings.ReplaceAll(strings.Join(links, ", otherwise "), "token bucket ", "")
}

// chainsOf is an Outcome as text, with the requests in place of others.
func chainsOf(o *Outcome) string {
	var texts []string
	for i := range o.Requests {
		texts = append(texts, chained(&o.Requests[i]))
	}
	return said(o) + "; " + strings.Join(texts, "; ")
}

const pools = `
attributes: [tenant, region, plan]
rules:
  - name: floor
    match: {path: /v1*}
    key: tenant
    limit: 100/m
    cost: {from: header.x-tokens, default: 2}
    plans: {by: plan, limits: {gold: 200/m, blocked: deny all}}
    otherwise: pool
  - name: pool
    match: otherwise
    key: [tenant, region]
    missing: skip
    limit: 1000/m
    plans: {by: plan, limits: {gold: 2000/m}}
    keys: {a|eu: 3000/m}
    otherwise: credits
  - name: credits
    match: otherwise
    key: header.x-user
    hashed: true
    missing: refuse
    cost: 1
    limit: 10000/m
    otherwise: last
  - {name: last, match: otherwise, limit: 100000/m, plans: {by: plan, limits: {silver: deny all}}, otherwise: never}
  - {name: never, match: otherwise, limit: 7/m}
  - {name: direct, key: tenant, limit: 1/s, otherwise: shared}
  - {name: shared, match: otherwise, key: [tenant, region], limit: 2/s, otherwise: open}
  - {name: open, match: otherwise, limit: 3/s}
`

func TestARuleAsksThePoolsBehindItByTheAttributesOfTheRequest(t *testing.T) {
	config := parsed(t, pools)
	for _, c := range []struct {
		request Attributes
		cost    int64
		want    string
	}{
		{Attributes{"path": "/v1/a", "tenant": "a"}, 1, `floor=100/m of "a" costs 2`},
		{Attributes{"path": "/v1/a"}, 1, `floor=100/m of "\\-" costs 2`},
		{Attributes{"path": "/v1/a", "tenant": "a", "region": "us"}, 1, `floor=100/m of "a" costs 2, otherwise pool=1000/m of "a|us" costs 2`},
		{Attributes{"path": "/v1/a", "tenant": "a", "region": "eu", "header.x-tokens": "7"}, 3, `floor=100/m of "a" costs 21, otherwise pool=3000/m of "a|eu" costs 21`},
		{Attributes{"path": "/v1/a", "tenant": "b", "region": "us", "plan": "gold"}, 1, `floor=200/m of "b" costs 2, otherwise pool=2000/m of "b|us" costs 2`},
		{Attributes{"path": "/v1/a", "tenant": "b", "region": "us", "plan": "blocked"}, 1, `floor=deny all of "b" costs 2`},
		{Attributes{"path": "/v1/a", "tenant": "a", "header.x-user": "u"}, 3, `floor=100/m of "a" costs 6, otherwise credits=10000/m of "0bfe935e70c321c7ca3afc75ce0d0ca2" costs 3` +
			`, otherwise last=100000/m of "" costs 3, otherwise never=7/m of "" costs 3`},
		{Attributes{"path": "/v1/a", "tenant": "a", "header.x-user": "u", "plan": "silver"}, 1, `floor=100/m of "a" costs 2, otherwise credits=10000/m of "0bfe935e70c321c7ca3afc75ce0d0ca2" costs 1` +
			`, otherwise last=deny all of "" costs 1`},
	} {
		var o Outcome
		config.Decide(c.request, c.cost, &o)
		if len(o.Requests) != 1 || chained(&o.Requests[0]) != c.want {
			t.Errorf("%v: got %s, want %s", c.request, chainsOf(&o), c.want)
		}
	}
}

func TestACallerThatNamesARuleGetsItsPools(t *testing.T) {
	config := parsed(t, pools)
	for _, c := range []struct{ rule, key, plan, want string }{
		{"floor", "a", "", ""}, // the region is missing, and then the user
		{"floor", "a", "blocked", ""},
		{"direct", "a", "", `shared=2/s of "a|\\-" costs 5, otherwise open=3/s of "" costs 5`},
		{"direct", `a\|b`, "gold", `shared=2/s of "a\\|b|\\-" costs 5, otherwise open=3/s of "" costs 5`},
		{"direct", `\#00`, "", `shared=2/s of "\\-|\\-" costs 5, otherwise open=3/s of "" costs 5`},
		{"last", "", "silver", ""},
		{"open", "", "", ""},
		{"nothing", "", "", ""},
	} {
		if got := chained(config.Otherwise(c.rule, c.key, c.plan, 5)); got != c.want {
			t.Errorf("rule %s, key %s, plan %s: got %s, want %s", c.rule, c.key, c.plan, got, c.want)
		}
	}
	hashed := parsed(t, `
attributes: [tenant]
rules:
  - {name: floor, key: tenant, hashed: true, limit: 1/s, otherwise: same}
  - {name: same, match: otherwise, key: tenant, hashed: true, keys: {a: 9/s}, plans: {by: header.x-plan, limits: {gold: 8/s}}, limit: 2/s, otherwise: plain}
  - {name: plain, match: otherwise, key: tenant, limit: 3/s}
`)
	for key, want := range map[string]string{
		"ca978112ca1bbdcafac231b39a23dc4d": `same=9/s of "ca978112ca1bbdcafac231b39a23dc4d" costs 1, otherwise plain=3/s of "\\-" costs 1`,
		"00000000000000000000000000000000": `same=8/s of "00000000000000000000000000000000" costs 1, otherwise plain=3/s of "\\-" costs 1`,
	} {
		if got := chained(hashed.Otherwise("floor", key, "gold", 1)); got != want {
			t.Errorf("key %s: got %s, want %s", key, got, want)
		}
	}
}

// The values of a request stay on the stack, and the pools behind a rule are one allocation.
func TestPoolsAllocateOnceAndOnlyWhereTheyAre(t *testing.T) {
	config := parsed(t, `
attributes: [tenant]
rules:
  - {name: plain, match: {method: GET}, key: tenant, limit: 5/m}
  - {name: floor, match: {method: POST}, key: tenant, limit: 5/m, otherwise: pool}
  - {name: pool, match: otherwise, limit: 50/m, otherwise: credits}
  - {name: credits, match: otherwise, key: tenant, limit: 50/d}
`)
	for method, want := range map[string]float64{"GET": 0, "POST": 1} {
		request := Attributes{"method": method, "tenant": "acme"}
		var o Outcome
		if n := testing.AllocsPerRun(100, func() { config.Decide(request, 1, &o) }); n != want || len(o.Requests) != 1 {
			t.Errorf("%s: %v allocations, want %v; %s", method, n, want, chainsOf(&o))
		}
	}
}

func TestNothingReachesAPoolByAnotherWay(t *testing.T) {
	config := parsed(t, pools)
	if got := config.ByName(); !slices.Equal(got, []string{"direct"}) {
		t.Errorf("by name: got %v, want the rule without match alone", got)
	}
	for _, r := range config.Named() {
		if config.Rule(r.Name()).Pool {
			t.Errorf("callers can name the pool %s", r.Name())
		}
	}
	if got := names(config.Matches(Attributes{"path": "/v2", "tenant": "a", "region": "eu", "header.x-user": "u"})); len(got) > 0 {
		t.Errorf("got %v, want no match", got)
	}
	if config.Unnamed("pool") == "" || config.Unnamed("floor") != "" {
		t.Errorf("Unnamed: got %q of the pool, and %q of the rule before it", config.Unnamed("pool"), config.Unnamed("floor"))
	}
	if got := config.Pools(); len(got) != 6 || got[0].Name() != "pool" {
		t.Errorf("Pools: got %v", got)
	}
	denied := parsed(t, "default: deny\nrules: [{name: pool, match: otherwise, limit: 50/m}]")
	var o Outcome
	if denied.Decide(Attributes{}, 1, &o); o.Verdict != Refuse || o.Reason != ByDefault {
		t.Errorf("got %s, want the default", said(&o))
	}
}

func TestAShadowAsksNoPool(t *testing.T) {
	config := parsed(t, `rules: [{name: floor, match: any, limit: 5/m, shadow: true, otherwise: pool}, {name: pool, match: otherwise, limit: 50/m}]`)
	var o Outcome
	config.Decide(Attributes{}, 1, &o)
	if len(o.Requests) != 0 || len(o.Beside) != 1 || o.Beside[0].Otherwise != nil || config.Otherwise("floor", "", "", 1) != nil {
		t.Errorf("got %s, want the shadow without its pool", said(&o))
	}
	enforced := config.Shadowed(Modes{Rules: map[string]bool{"floor": false}})
	if enforced.Decide(Attributes{}, 1, &o); len(o.Requests) != 1 || chained(&o.Requests[0]) != `floor=5/m of "" costs 1, otherwise pool=50/m of "" costs 1` {
		t.Errorf("enforced: got %s, want it with its pool", chainsOf(&o))
	}
	if all := enforced.Shadowed(Modes{All: true}); all.Rule("pool").Shadow || !all.Rule("floor").Shadow || all.Switches(all.Rule("pool")) {
		t.Error("a pool became a shadow")
	}
}

// hostile is a file of maxRules rules: a chain of half of them, a circle with a tail, and names that are unknown but near others.
func hostile() string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range maxRules {
		to := i + 1
		switch {
		case i == maxRules/2: // the end of the chain
			fmt.Fprintf(&b, "  - {name: p%d, match: otherwise, limit: 5/m}\n", i)
			continue
		case i == maxRules*3/4:
			to = i - 1000
		case i > maxRules*3/4:
			to = maxRules + i
		}
		fmt.Fprintf(&b, "  - {name: p%d, match: otherwise, limit: 5/m, otherwise: p%d}\n", i, to)
	}
	return b.String()
}

func TestHostileChainsAreRefusedQuickly(t *testing.T) {
	read := func(text string) (problems Problems, took time.Duration) {
		start := time.Now()
		_, err := Parse(Options{}, File{"weir.yaml", []byte(text)})
		problems, _ = err.(Problems)
		return problems, time.Since(start)
	}
	plain := regexp.MustCompile("otherwise: p[0-9]+").ReplaceAllString(hostile(), "missing: skip")
	_, usual := read(plain)
	problems, took := read(hostile())
	if took > 10*usual { // walks of the whole chain from each rule take a hundred times as long
		t.Errorf("refused after %s, and a file without chains after %s", took, usual)
	}
	for want, count := range map[string]int{
		"makes a chain of 5 rules behind this one, want at most 4":                                                           1,
		"goes round in a circle: p14000 → p14001 → p14002 → p14003 → p14004 → p14005 → p14006 → p14007 → … → p14000; remove": 1,
		"and no rule has that name; want that of a rule with match: otherwise":                                               maxRules/4 - 1,
	} {
		got := 0
		for _, p := range problems {
			if strings.Contains(p.Text, want) {
				got++
			}
		}
		if got != count {
			t.Errorf("%d problems are that it %s, want %d; the first is %v", got, want, count, problems[0])
		}
	}
	if len(problems) != 2+maxRules/4-1 {
		t.Errorf("%d problems", len(problems))
	}
}

// lacking is a request of a log that does not have the attribute of a name.
type lacking struct {
	Attributes
	name string
}

func (l lacking) Lacks(name string) bool { return name == l.name }

func TestARuleIsUndecidedIfALogLacksWhatItsPoolsRead(t *testing.T) {
	config := parsed(t, `
attributes: [tenant, region]
rules:
  - {name: floor, match: any, key: tenant, limit: 5/m, otherwise: pool}
  - {name: pool, match: otherwise, limit: 50/m, otherwise: credits}
  - {name: credits, match: otherwise, key: region, limit: 50/d}
`)
	for _, c := range []struct{ lacks, want string }{
		{"region", "floor region"}, {"tenant", "floor tenant"}, {"path", ""},
	} {
		var o Outcome
		config.Decide(lacking{Attributes{}, c.lacks}, 1, &o)
		got := ""
		for _, u := range o.Undecided {
			got += u.Rule.Name + " " + u.Attribute
		}
		if got != c.want || (len(o.Requests) == 0) != (c.want != "") {
			t.Errorf("without %s: undecided is %q, want %q; %s", c.lacks, got, c.want, said(&o))
		}
	}
}

func TestARecordingHasThePoolsThatItsKeyTells(t *testing.T) {
	config := parsed(t, `
attributes: [tenant, region]
rules:
  - {name: same, match: any, key: tenant, limit: 5/m, otherwise: each}
  - {name: hashed, match: any, key: tenant, hashed: true, limit: 5/m, otherwise: apart}
  - {name: beside, match: any, key: tenant, limit: 5/m, otherwise: apart}
  - {name: apart, match: otherwise, key: tenant, limit: 50/m}
  - {name: other, match: any, key: tenant, limit: 5/m, otherwise: regional}
  - {name: costly, match: any, key: tenant, limit: 5/m, otherwise: dear}
  - {name: planned, match: any, key: tenant, limit: 5/m, otherwise: plans}
  - {name: single, match: any, key: tenant, limit: 5/m, otherwise: keys}
  - {name: each, match: otherwise, key: tenant, limit: 50/m, otherwise: all}
  - {name: all, match: otherwise, limit: 60/m}
  - {name: regional, match: otherwise, key: region, limit: 50/m}
  - {name: dear, match: otherwise, cost: 2, limit: 50/m}
  - {name: plans, match: otherwise, limit: 50/m, plans: {by: region, limits: {eu: 60/m}}}
  - {name: keys, match: otherwise, key: tenant, limit: 50/m, keys: {a: 60/m}}
`)
	for _, c := range []struct {
		rule   string
		hashed bool
		want   string
	}{
		{"same", false, `same=5/m of "a" costs 3, otherwise each=50/m of "a" costs 3, otherwise all=60/m of "" costs 3`},
		{"same", true, `same=5/m of "a" costs 3, otherwise each=50/m of "a" costs 3, otherwise all=60/m of "" costs 3`},
		{"single", false, `single=5/m of "a" costs 3, otherwise keys=60/m of "a" costs 3`},
		{"single", true, ""}, {"hashed", false, ""}, {"beside", false, ""}, // nobody knows what hashed left in its pool
		{"other", false, ""}, {"costly", false, ""}, {"planned", false, ""},
	} {
		var o Outcome
		if !config.Recorded(c.rule, "a", c.hashed, 3, &o) || (len(o.Undecided) == 1) != (c.want == "") {
			t.Errorf("%s: got %s, undecided %v, want %q", c.rule, said(&o), o.Undecided, c.want)
		} else if c.want != "" && chained(&o.Requests[0]) != c.want {
			t.Errorf("%s: got %s, want %s", c.rule, chained(&o.Requests[0]), c.want)
		}
	}
}

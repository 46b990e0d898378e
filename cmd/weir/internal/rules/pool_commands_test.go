package rules

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

const waterfall = `
attributes: [tenant]
rules:
  - {name: floor, match: {path: /v1*}, key: tenant, limit: 100/m, otherwise: pool}
  - {name: pool, match: otherwise, limit: 150/m, otherwise: credits}
  - {name: credits, match: otherwise, key: tenant, limit: fixed window 30/d}
`

// The page has a file, tests of it, and a file with a bound for each tenant.
func TestTheExamplesOfPoolsWork(t *testing.T) {
	content, err := os.ReadFile("../../../../docs/howto/pools.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := yamlBlock.FindAllStringSubmatch(string(content), -1)
	if len(blocks) != 3 {
		t.Fatalf("%d examples, want 3", len(blocks))
	}
	results, err := Test(File{"weir.test.yaml", []byte(blocks[1][1])}, func([]string) (*Config, error) { return parsed(t, blocks[0][1]), nil })
	if err != nil || len(results) != 1 || results[0].Failure != "" {
		t.Errorf("the tests of the page: %+v, %v", results, err)
	}
	const bounded = `{rules: weir.yaml, tests: [{name: a tenant has 300 of the pool, steps: [
		{request: {path: /v1/a, tenant: acme}, times: 400, expect: allow}, {request: {path: /v1/a, tenant: acme}, expect: deny},
		{request: {path: /v1/a, tenant: globex}, times: 400, expect: allow, paid_by: pool}]}]}`
	results, err = Test(File{"weir.test.yaml", []byte(strings.ReplaceAll(bounded, "\t", ""))}, func([]string) (*Config, error) { return parsed(t, blocks[2][1]), nil })
	if err != nil || results[0].Failure != "" {
		t.Errorf("the tests of the bound: %+v, %v", results, err)
	}
}

// A file of tests makes requests as the daemon does: the floor first, then what is left of the pool, then the credits.
func TestTestsOfRulesSayWhoPaid(t *testing.T) {
	const steps = `
rules: weir.yaml
tests:
  - name: %s
    steps:
      - {request: {path: /v1/a, tenant: a}, times: 100, expect: allow, rule: floor, paid_by: floor, remaining: 0}
      - {request: {path: /v1/a, tenant: a}, times: 150, expect: allow, rule: pool, paid_by: pool, remaining: 0}
      - {request: {path: /v1/a, tenant: a}, times: 30, expect: allow, rule: credits, paid_by: credits, remaining: 0}
      - {request: {path: /v1/a, tenant: a}, expect: deny, rule: floor, retry_after: 400ms}
      - {request: {path: /v1/a, tenant: b}, times: 100, expect: allow, paid_by: floor}
      - {request: {path: /v1/a, tenant: b}, expect: allow, paid_by: credits, remaining: 29}
      - {request: {path: /v1/a, tenant: a}, after: 600ms, expect: allow, paid_by: %s}
`
	for _, c := range []struct{ payer, failure string }{
		{"floor", ""},
		{"pool", "line 12: got allow by floor, paid by floor, want pool"},
	} {
		results, err := Test(File{"weir.test.yaml", fmt.Appendf(nil, steps, "they say who paid", c.payer)}, func([]string) (*Config, error) { return parsed(t, waterfall), nil })
		if err != nil || len(results) != 1 || results[0].Failure != c.failure {
			t.Errorf("paid by %s: got %+v, %v, want failure %q", c.payer, results, err, c.failure)
		}
	}
}

func TestAnExplanationHasThePoolsBehindARule(t *testing.T) {
	config := parsed(t, waterfall)
	engine := weir.NewMemory(weir.MemoryOptions{})
	if _, err := engine.Record(context.Background(), config.Rule("pool").Limit.For("", 150)); err != nil {
		t.Fatal(err)
	}
	e, err := config.Explain(context.Background(), Attributes{"path": "/v1/a", "tenant": "a"}, 1, engine)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Steps) != 1 || len(e.Steps[0].Otherwise) != 2 {
		t.Fatalf("got %+v, want the floor and two pools behind it", e)
	}
	floor, pool, credits := e.Steps[0], e.Steps[0].Otherwise[0], e.Steps[0].Otherwise[1]
	if floor.RetryAfter != "" || *floor.Remaining != 100 || pool.RetryAfter == "" || *pool.Key != "" || *credits.Key != "a" || *credits.Remaining != 30 {
		t.Errorf("got %+v, want an empty pool between others", e)
	}
	text := e.Text()
	for _, want := range []string{
		"\nfloor, weir.yaml:4\n", "  otherwise   pool\n", "\nif floor refuses: pool, weir.yaml:5\n  match       otherwise\n", "\nif pool refuses: credits, weir.yaml:6\n",
		`the limit of rule "floor" decides; if it refuses, that of "pool", then "credits"` + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

func TestADiffShowsAChangedOtherwise(t *testing.T) {
	from := parsed(t, waterfall)
	to := parsed(t, strings.Replace(strings.Replace(waterfall, ", otherwise: pool", ", otherwise: credits", 1), ", otherwise: credits}\n  - {name: credits", "}\n  - {name: credits", 1))
	changes := Diff(from, to)
	if len(changes) != 2 {
		t.Fatalf("got %+v, want two changes", changes)
	}
	floor, pool := changes[0], changes[1]
	if fmt.Sprintf("%v %v %s%s", floor.Old, floor.New, floor.Match, floor.Fresh) != "[{otherwise pool}] [{otherwise credits}] path: /v1*" {
		t.Errorf("the floor: got %+v", floor)
	}
	if fmt.Sprintf("%v %v %s%s", pool.Old, pool.New, pool.Match, pool.Fresh) != "[{otherwise credits}] [] otherwise" {
		t.Errorf("the pool: got %+v", pool)
	}
}

// blocking is an engine with overrides that refuse all of a rule.
type blocking struct {
	weir.Engine
	rule string
}

func (b blocking) Requests(requests []weir.Request) []weir.Request {
	changed := slices.Clone(requests)
	for i, q := range changed {
		if q.Rule.Name() == b.rule {
			changed[i].Rule, _ = weir.NewRule(b.rule, weir.DenyAll{})
		}
	}
	return changed
}

func TestAnExplanationEndsAtABlock(t *testing.T) {
	config := parsed(t, waterfall)
	for blocked, pools := range map[string]int{"floor": 0, "pool": 1, "credits": 2, "none": 2} {
		e, err := config.Explain(context.Background(), Attributes{"path": "/v1/a", "tenant": "a"}, 1, blocking{weir.NewMemory(weir.MemoryOptions{}), blocked})
		if err != nil || len(e.Steps) != 1 || len(e.Steps[0].Otherwise) != pools {
			t.Errorf("a block of %s: got %+v, %v, want %d pools", blocked, e.Steps, err, pools)
		}
	}
}

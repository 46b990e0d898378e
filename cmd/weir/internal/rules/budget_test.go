package rules

import (
	"context"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

func TestRulesOfOneBudgetCountTogether(t *testing.T) {
	c := parsed(t, `rules:
  - {name: login, match: {path: /login}, key: client, limit: token bucket 1/h burst 1}
  - {name: login-api, match: {path: /api}, key: client, limit: token bucket 1/h burst 2, budget: login}`)
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }})
	for _, step := range []struct {
		path string
		want bool
	}{{"/api", true}, {"/login", false}, {"/api", true}, {"/api", false}} {
		var o Outcome
		c.Decide(Attributes{"path": step.path, "client": "192.0.2.1"}, 1, &o)
		d, err := engine.Take(context.Background(), o.Requests...)
		if err != nil || d.Allowed != step.want {
			t.Fatalf("%s got %+v, %v, want %v", step.path, d, err, step.want)
		}
	}
	if named := c.Named(); len(named) != 1 {
		t.Errorf("callers may name %v, want login alone", named)
	}
}

// A budget that would not be shared would admit more than the file says.
func TestABudgetThatWouldNotBeSharedIsAnError(t *testing.T) {
	for rule, want := range map[string]string{
		`{name: b, match: any, limit: 1/h, key: client, budget: nosuch}`:                      "name of another rule",
		`{name: b, match: any, limit: 1/h, key: client, budget: b}`:                           "name of another rule",
		`{name: b, match: any, limit: 1/h, key: host, budget: a}`:                             "another key",
		`{name: b, match: any, limit: fixed window 1/h, key: client, budget: a}`:              "another algorithm",
		`{name: b, match: any, limit: 1/h, key: client, budget: a, shadow: true}`:             "only one of the two",
		`{name: b, match: any, limit: 1/h, key: client, budget: a, message: x}`:               "belongs to the rule",
		`{name: b, match: any, deny: true, budget: a}`:                                        "belongs to a limit",
		`{name: b, match: any, limit: leaky bucket 1/h queue 3, key: client, budget: a}`:      "another algorithm",
		`{name: b, match: {path: "~x"}, limit: token bucket 2/h, key: client, budget: a}`:     "regular expression",
		`{name: b, match: {uri: "~("}, limit: token bucket 2/h, key: client, budget: a}`:      "no regular expression",
		`{name: b, match: {uri: "~` + strings.Repeat("x", 600) + `"}, limit: 1/h, key: host}`: "at most 512",
	} {
		_, err := Parse(Options{}, File{"weir.yaml", []byte("rules:\n  - {name: a, match: any, limit: token bucket 1/h, key: client}\n  - " + rule)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", rule, err, want)
		}
	}
}

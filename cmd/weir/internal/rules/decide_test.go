package rules

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

// yamlBlock matches the examples of docs/reference/rules.md.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// example returns the complete example of docs/reference/rules.md.
func example(t testing.TB) string {
	t.Helper()
	content, err := os.ReadFile("../../../../docs/reference/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := yamlBlock.FindAllStringSubmatch(string(content), -1)
	return blocks[1][1]
}

// said is an Outcome as text: what is decided, by which rules, with which keys and costs.
func said(o *Outcome) string {
	var b strings.Builder
	b.WriteString([]string{"ask", "allow", "refuse"}[o.Verdict])
	if o.Reason != "" {
		b.WriteString(" " + string(o.Reason))
	}
	if o.Rule != nil {
		b.WriteString(" by " + o.Rule.Name)
	}
	for _, list := range [][]weir.Request{o.Requests, o.Beside} {
		for _, q := range list {
			b.WriteString("; " + q.Rule.String() + " of " + q.Key + " costs " + weirCost(q.Cost))
		}
	}
	return b.String()
}

func weirCost(n int64) string {
	return strings.TrimSuffix(weir.Rate{Count: n, Period: 1e9}.String(), "/s")
}

func TestTheExampleOfTheDocumentDecidesAsItSays(t *testing.T) {
	config := parsed(t, example(t))
	for _, c := range []struct {
		request Attributes
		cost    int64
		want    string
	}{
		{Attributes{"path": "/"}, 1, "allow default"},
		{Attributes{"client": "10.1.2.3", "method": "POST", "path": "/login"}, 1, "allow rule by office"},
		{Attributes{"client": "198.51.100.9", "method": "POST", "path": "/login"}, 1, "refuse rule by banned"},
		{Attributes{"client": "192.0.2.1", "method": "post", "path": "/.//login/"}, 1,
			"ask; login=token bucket 5/m and fixed window 100/d of 192.0.2.1 costs 1"},
		{Attributes{"client": "2001:dead::1:2:3:4", "method": "POST", "path": "/login"}, 2,
			"ask; login=token bucket 5/m and fixed window 100/d of 2001:dead::/64 costs 2"},
		{Attributes{"method": "POST", "path": "/login"}, 1, `ask; login=token bucket 5/m and fixed window 100/d of \- costs 1`},
		{Attributes{"host": "api.example.com", "path": "/v1/x"}, 1, "refuse missing by api"},
		{Attributes{"host": "eu.api.example.com:443", "path": "/v1", "header.x-api-key": "k1"}, 1,
			"ask; api=token bucket 10/s burst 20 of 6ab9f1eb8f7d3388f4f9d586f66e99fd costs 1; api~candidate=token bucket 8/s burst 20 of 6ab9f1eb8f7d3388f4f9d586f66e99fd costs 1"},
		{Attributes{"host": "api.example.com", "path": "/v1/x", "header.x-api-key": "k1", "plan": "gold"}, 1, "ask; api=token bucket 100/s of 6ab9f1eb8f7d3388f4f9d586f66e99fd costs 1"},
		{Attributes{"host": "api.example.com", "path": "/v1/x", "header.x-api-key": "acme", "plan": "gold"}, 1, "ask; api=token bucket 1000/s of 822b33ad87c148a0a20a5ba7cd5ebcaa costs 1"},
		{Attributes{"path": "/users/7/search", "user": "a|b"}, 1, "allow default; search=sliding window 1000/h of a\\|b|/users/7/search costs 1"},
		{Attributes{"path": "/users/7/search", "user": "a", "header.x-cost": "7"}, 3, "allow default; search=sliding window 1000/h of a|/users/7/search costs 21"},
		{Attributes{"path": "/users/7/search"}, 1, "allow default"},
	} {
		var o Outcome
		config.Decide(c.request, c.cost, &o)
		if got := said(&o); got != c.want {
			t.Errorf("%v: got %q, want %q", c.request, got, c.want)
		}
	}
	if config.Rule("mail") == nil || config.Rule("mail").Limit == nil {
		t.Error("the rule mail cannot be asked by name")
	}
}

func TestRulesBeyondTheBoundRefuse(t *testing.T) {
	for count, want := range map[int]Verdict{MaxMatches: Ask, MaxMatches + 1: Refuse} {
		var b strings.Builder
		b.WriteString("rules:\n")
		for i := range count {
			b.WriteString("  - {name: r" + weirCost(int64(i+1)) + ", match: any, limit: 5/m}\n")
		}
		var o Outcome
		parsed(t, b.String()).Decide(Attributes{}, 1, &o)
		if o.Verdict != want {
			t.Errorf("%d rules match: got %s, want verdict %d", count, said(&o), want)
		}
	}
}

func TestACostThatIsNoNumberRefuses(t *testing.T) {
	config := parsed(t, "rules: [{name: r, match: any, limit: 5/m, cost: {from: header.x, default: 2}}]")
	for text, want := range map[string]string{
		"3": "ask; r=token bucket 5/m of  costs 3", "0": "ask; r=token bucket 5/m of  costs 0",
		"-1": "refuse cost by r", "1.5": "refuse cost by r", "": "refuse cost by r", "9007199254740993": "refuse cost by r", "+3": "refuse cost by r",
	} {
		var o Outcome
		config.Decide(Attributes{"header.x": text}, 1, &o)
		if got := said(&o); got != want {
			t.Errorf("cost %q: got %q, want %q", text, got, want)
		}
	}
	var o Outcome
	config.Decide(Attributes{}, 1, &o)
	if got := said(&o); !strings.HasSuffix(got, "costs 2") {
		t.Errorf("without the attribute: got %q, want the default", got)
	}
	config.Decide(Attributes{"header.x": "9007199254740992"}, 1<<60, &o)
	if o.Requests[0].Cost < 1<<60 {
		t.Errorf("a product beyond 64 bits: got %d, want the largest cost", o.Requests[0].Cost)
	}
}

func TestDefaultDenyIgnoresShadows(t *testing.T) {
	config := parsed(t, "default: deny\nrules: [{name: r, match: any, limit: 5/m, shadow: true}, {name: d, match: any, deny: true, shadow: true}]")
	var o Outcome
	config.Decide(Attributes{}, 1, &o)
	if got := said(&o); got != "refuse default; r=token bucket 5/m of  costs 1; d=deny all of  costs 1" {
		t.Errorf("got %q", got)
	}
}

func TestDecidingKnownRequestsAllocatesNothing(t *testing.T) {
	config := parsed(t, example(t))
	request := Attributes{"client": "192.0.2.1", "method": "POST", "path": "/login", "host": "www.example.com"}
	var o Outcome
	if n := testing.AllocsPerRun(100, func() { config.Decide(request, 1, &o) }); n > 4 {
		t.Errorf("%v allocations, want 4 at most", n)
	}
	if !slices.Equal(names(o.Rules), []string{"login"}) {
		t.Errorf("got %v", names(o.Rules))
	}
}

package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
)

// drawnRule is a rule as a file has it.
type drawnRule struct {
	name, match, missing string // match: "" for none
	key                  []string
	hashed               bool
	limit                string
	planBy               string
	plans, keys          map[string]string
	cost                 string // a number, "from c default 2", or ""
	otherwise            string
}

var chainAttributes = []string{"a", "b", "c"}

// drawChains draws a few pools and rules before them. Some name a rule behind them, and a few any.
func drawChains(random *rand.Rand) (rules []*drawnRule) {
	pools, all := 1+random.IntN(6), 0
	for i := range pools + 1 + random.IntN(4) {
		r := &drawnRule{name: fmt.Sprintf("r%d", i), match: "otherwise"}
		if i >= pools {
			r.match = []string{"any", "{a: x}", "{b: '*'}", ""}[random.IntN(4)]
		}
		r.draw(random)
		to := i - 1 - random.IntN(3)
		if i >= pools {
			to = random.IntN(pools)
		}
		switch {
		case random.IntN(40) == 0:
			r.otherwise = fmt.Sprintf("r%d", random.IntN(pools+3))
		case to >= 0 && random.IntN(8) > 0:
			r.otherwise = fmt.Sprintf("r%d", to)
		}
		all++
		rules = append(rules, r)
	}
	random.Shuffle(all, func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
	return rules
}

func (r *drawnRule) draw(random *rand.Rand) {
	limit := func() string {
		if random.IntN(8) == 0 {
			return "deny all"
		}
		return fmt.Sprintf("%d/m", 1+random.IntN(9))
	}
	r.limit = fmt.Sprintf("%d/m", 1+random.IntN(9))
	for _, i := range random.Perm(3)[:random.IntN(3)] {
		r.key = append(r.key, chainAttributes[i])
	}
	if len(r.key) > 0 {
		r.missing, r.hashed = []string{"share", "skip", "refuse"}[random.IntN(3)], random.IntN(4) == 0
	}
	if r.match == "" {
		return
	}
	if random.IntN(2) == 0 {
		r.planBy, r.plans = chainAttributes[random.IntN(3)], map[string]string{"x": limit(), "7": limit()}
	}
	if len(r.key) == 1 && random.IntN(2) == 0 {
		r.keys = map[string]string{"y": limit()}
	}
	r.cost = []string{"", "3", "from c default 2"}[random.IntN(3)]
}

func yamlOf(rules []*drawnRule) string {
	var b strings.Builder
	b.WriteString("attributes: [a, b, c]\nrules:\n")
	field := func(format string, value string) {
		if value != "" {
			fmt.Fprintf(&b, format, value)
		}
	}
	limits := func(of map[string]string) (text string) {
		for name, limit := range of {
			text += fmt.Sprintf("%q: %s, ", name, limit)
		}
		return strings.TrimSuffix(text, ", ")
	}
	for _, r := range rules {
		fmt.Fprintf(&b, "  - {name: %s, limit: %s", r.name, r.limit)
		field(", match: %s", r.match)
		field(", missing: %s", r.missing)
		field(", key: [%s]", strings.Join(r.key, ", "))
		if r.hashed {
			b.WriteString(", hashed: true")
		}
		if r.plans != nil {
			fmt.Fprintf(&b, ", plans: {by: %s, limits: {%s}}", r.planBy, limits(r.plans))
		}
		field(", keys: {%s}", limits(r.keys))
		if r.cost == "3" {
			b.WriteString(", cost: 3")
		} else {
			field(", cost: {%s, default: 2}", strings.TrimSuffix(strings.Replace(r.cost, "from ", "from: ", 1), " default 2"))
		}
		field(", otherwise: %s", r.otherwise)
		b.WriteString("}\n")
	}
	return b.String()
}

// makesChains reports whether each otherwise names a pool, without a circle and with up to four behind any rule.
func makesChains(rules []*drawnRule) bool {
	for _, r := range rules {
		seen := 0
		for r.otherwise != "" {
			at := slices.IndexFunc(rules, func(p *drawnRule) bool { return p.name == r.otherwise })
			if at < 0 || rules[at].match != "otherwise" {
				return false
			}
			if r, seen = rules[at], seen+1; seen > 4 {
				return false
			}
		}
	}
	return true
}

// chainText is the request of a rule, with those in its place, as chained shows it. It reads the fields anew for each. A request that
// names the rule and a key has a plan; values are what its key tells.
func chainText(rules []*drawnRule, r *drawnRule, values map[string]string, named *namedRequest) string {
	var links []string
	cost, blocked := int64(0), false
	for first := true; r != nil && !blocked; first = false {
		before := cost
		key, complete := slowKey(r, values)
		sameKey := named != nil && named.hashedLike(r)
		if sameKey {
			key, complete = named.key, true
		}
		own, valid := slowCost(r, values)
		switch {
		case named != nil:
			cost = named.cost
		case first || r.cost != "":
			cost = own
		default:
			valid = true
		}
		if complete || r.missing != "skip" {
			if !complete && r.missing == "refuse" || named == nil && !valid {
				break
			}
			limit := r.limit
			plan, has := values[r.planBy]
			if named != nil {
				plan, has = named.plan, named.plan != ""
			}
			if of := r.plans[plan]; has && of != "" {
				limit = of
			}
			for name, of := range r.keys {
				if hash := sameKey && r.hashed; !hash && key == name || hash && key == slowHash(name) {
					limit = of
				}
			}
			if r.hashed && !sameKey {
				key = slowHash(key)
			}
			links = append(links, fmt.Sprintf("%s=%s of %q costs %d", r.name, limit, key, cost))
			blocked = limit == "deny all"
		} else {
			cost = before
		}
		next := r.otherwise
		r = nil
		for _, p := range rules {
			if p.name == next {
				r = p
			}
		}
	}
	return strings.Join(links, ", otherwise ")
}

// namedRequest is a request that names a rule and a key of it.
type namedRequest struct {
	rule      *drawnRule
	key, plan string
	cost      int64
}

func (n *namedRequest) hashedLike(r *drawnRule) bool {
	return r == n.rule || len(r.key) > 0 && slices.Equal(r.key, n.rule.key) && r.hashed == n.rule.hashed
}

func slowHash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

func slowKey(r *drawnRule, values map[string]string) (key string, complete bool) {
	complete = true
	var parts []string
	for _, a := range r.key {
		value, has := values[a]
		if complete = complete && has; !has {
			value = `\-`
		}
		parts = append(parts, value)
	}
	return strings.Join(parts, "|"), complete
}

func slowCost(r *drawnRule, values map[string]string) (cost int64, valid bool) {
	switch value, has := values["c"]; {
	case r.cost == "3":
		return 3, true
	case r.cost == "":
		return 1, true
	case !has:
		return 2, true
	case value == "7":
		return 7, true
	}
	return 0, false
}

// A pool is found as its fields say, whatever the chain: by attributes, and by the name of the rule before it.
func TestRandomChainsAreThoseOfASlowReading(t *testing.T) {
	random := rand.New(rand.NewPCG(randtest.Seed(t), 1))
	refused, links := 0, 0
	for range randtest.Rounds(t, 1000, 300) {
		rules := drawChains(random)
		text := yamlOf(rules)
		config, err := Parse(Options{}, File{"weir.yaml", []byte(text)})
		if (err == nil) != makesChains(rules) {
			t.Fatalf("got %v, want an error: %v\n%s", err, !makesChains(rules), text)
		}
		if err != nil {
			refused++
			continue
		}
		for range 10 {
			request := Attributes{}
			for _, a := range chainAttributes {
				if value := []string{"x", "y", "7", ""}[random.IntN(4)]; value != "" {
					request[a] = value
				}
			}
			links += compareChains(t, config, rules, request, text)
			links += compareNamed(t, config, rules, random, text)
		}
	}
	if refused < 10 || links < 1000 {
		t.Errorf("%d files were refused, and %d pools asked: too few to compare", refused, links)
	}
}

// compareChains compares the chains of a request by attributes. It returns the number of pools.
func compareChains(t *testing.T, config *Config, rules []*drawnRule, request Attributes, text string) (links int) {
	var o Outcome
	config.Decide(request, 1, &o)
	for i, r := range o.Rules {
		at := slices.IndexFunc(rules, func(d *drawnRule) bool { return d.name == r.Name })
		got, want := chained(&o.Requests[i]), chainText(rules, rules[at], request, nil)
		if links += strings.Count(want, "otherwise"); got != want {
			t.Fatalf("%v: got %s, want %s\n%s", request, got, want, text)
		}
	}
	return links
}

// compareNamed compares the chain of a request that names a rule. It returns the number of pools.
func compareNamed(t *testing.T, config *Config, rules []*drawnRule, random *rand.Rand, text string) (links int) {
	r := rules[random.IntN(len(rules))]
	if r.match == "otherwise" {
		return 0
	}
	named := &namedRequest{rule: r, key: []string{"x", "y", "x|7", `y|\-`, slowHash("y"), `\#00`}[random.IntN(6)], plan: []string{"", "x"}[random.IntN(2)], cost: 5}
	values := map[string]string{}
	if parts := strings.Split(named.key, "|"); !r.hashed && len(parts) == len(r.key) && named.key != `\#00` {
		for i, a := range r.key {
			if parts[i] != `\-` {
				values[a] = parts[i]
			}
		}
	}
	want := chainText(rules, r, values, named)
	if _, behind, ok := strings.Cut(want, ", otherwise "); ok {
		want = behind
	} else {
		want = ""
	}
	if got := chained(config.Otherwise(r.name, named.key, named.plan, named.cost)); got != want {
		t.Fatalf("rule %s, key %s, plan %s: got %s, want %s\n%s", r.name, named.key, named.plan, got, want, text)
	}
	return strings.Count(want, "otherwise")
}

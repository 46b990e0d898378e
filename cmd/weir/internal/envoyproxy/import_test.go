package envoyproxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/randtest"
)

// entriesOf are the attributes of a descriptor of the domain shop.
type entriesOf []*envoy.RateLimitDescriptor_Entry

func (e entriesOf) Attribute(name string) (string, bool) {
	if name == "domain" {
		return "shop", true
	}
	for _, entry := range e {
		if name == "descriptor."+entry.Key {
			return entry.Value, true
		}
	}
	return "", false
}

// randomFile returns a file whose keys come in order. Every limit has a number of its own.
func randomFile(random *rand.Rand, values []string) string {
	var b strings.Builder
	b.WriteString("domain: shop\ndescriptors:\n")
	limits := 0
	var write func(depth, from int)
	write = func(depth, from int) {
		given := map[string]bool{}
		for range 1 + random.IntN(4) {
			key, value := from+random.IntN(4-from), values[random.IntN(len(values))]
			if name := fmt.Sprint(key, value); given[name] {
				continue
			} else {
				given[name] = true
			}
			in := strings.Repeat("    ", depth)
			fmt.Fprintf(&b, "%s  - key: k%d\n", in, key)
			if value != "" {
				fmt.Fprintf(&b, "%s    value: %q\n", in, value)
			}
			if strings.Contains(value, "*") && random.IntN(2) == 0 {
				fmt.Fprintf(&b, "%s    share_threshold: true\n", in)
			}
			if random.IntN(3) > 0 {
				limits++
				fmt.Fprintf(&b, "%s    rate_limit: {unit: day, requests_per_unit: %d}\n", in, limits)
			}
			if key < 3 && random.IntN(2) == 0 {
				fmt.Fprintf(&b, "%s    descriptors:\n", in)
				write(depth+1, key+1)
			}
		}
	}
	write(0, 0)
	return b.String()
}

// The imported rules decide a descriptor by the limit by which the files decide it, and tell the same keys apart. The files
// mention each key of the descriptor.
func TestImportedRulesDecideByTheSameLimits(t *testing.T) {
	random := rand.New(rand.NewPCG(randtest.Seed(t), 1))
	values := []string{"", "", "a", "b", "a*", "*b", `a\`, "ab", "*"}
	asked := []string{"a", "b", "ab", "aab", `a\`, "c", "", "*"}
	decided := 0
	for range 300 {
		text := randomFile(random, values)
		config, err := Parser(Settings{}, &Stats{})(rules.Options{}, rules.File{Name: "f.yaml", Content: []byte(text)})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		foreign := config.Foreign.(*Config)
		made := Import(foreign)
		written, err := made.YAML("f.yaml", "envoyproxy")
		if err != nil {
			t.Fatal(err)
		}
		if len(made.Rules) == 0 {
			continue
		}
		ours, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: written})
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, text, written)
		}
		keys := map[string]string{} // of theirs by ours, and the reverse
		for range 50 {
			var entries entriesOf
			for key := range 4 {
				if random.IntN(2) == 0 && strings.Contains(text, fmt.Sprintf("key: k%d\n", key)) {
					entries = append(entries, &envoy.RateLimitDescriptor_Entry{Key: fmt.Sprint("k", key), Value: asked[random.IntN(len(asked))]})
				}
			}
			theirs := foreign.Match("shop", entries)
			var o rules.Outcome
			ours.Decide(entries, 1, &o)
			want, got, key := "", "", ""
			if theirs.Limit != nil {
				want = fmt.Sprint(theirs.Limit.Rule.Limits())
			}
			for _, q := range o.Requests {
				got += fmt.Sprint(q.Rule.Limits())
				key = q.Rule.Name() + "=" + q.Key
			}
			if got != want {
				t.Fatalf("%v: the rules decide by %s, the files by %s\n%s\n%s", entries, got, want, text, written)
			}
			if want == "" {
				continue
			}
			decided++
			full := theirs.Limit.Rule.Name() + "=" + theirs.Key
			for from, to := range map[string]string{"ours " + key: full, "theirs " + full: key} {
				if known, ok := keys[from]; ok && known != to {
					t.Fatalf("%v: %s is %s and %s\n%s", entries, from, known, to, text)
				}
				keys[from] = to
			}
		}
	}
	if decided < 500 {
		t.Errorf("limits decided %d times, want 500 at least", decided)
	}
}

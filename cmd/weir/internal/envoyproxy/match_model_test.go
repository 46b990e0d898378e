package envoyproxy

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/weirflow/weir/internal/randtest"
)

// node is a descriptor of the model.
type node struct {
	key, value string
	limit      int // 0 is none
	share      bool
	below      []*node
}

// drawNodes draws descriptors, of which no two have the same key and value, and writes them.
func drawNodes(r *rand.Rand, depth int, limits *int, out *strings.Builder) (list []*node) {
	seen := map[string]bool{}
	for range 1 + r.IntN(4) {
		n := &node{key: []string{"a", "b"}[r.IntN(2)], value: []string{"", "x", "y", "x*", "*y", "*", "x*y", "a*a", "|"}[r.IntN(9)]}
		if seen[n.key+"="+n.value] {
			continue
		}
		seen[n.key+"="+n.value] = true
		in := strings.Repeat("    ", depth)
		fmt.Fprintf(out, "%s  - key: %s\n%s    value: %q\n", in, n.key, in, n.value)
		if n.share = strings.Contains(n.value, "*") && r.IntN(2) == 0; n.share {
			fmt.Fprintf(out, "%s    share_threshold: true\n", in)
		}
		if r.IntN(3) > 0 {
			*limits++
			n.limit = *limits
			fmt.Fprintf(out, "%s    rate_limit: {unit: day, requests_per_unit: %d}\n", in, n.limit)
		}
		if depth < 3 && r.IntN(2) == 0 {
			fmt.Fprintf(out, "%s    descriptors:\n", in)
			n.below = drawNodes(r, depth+1, limits, out)
		}
		list = append(list, n)
	}
	return list
}

// choose returns the descriptors for an entry: an exact value or the first pattern, and the key alone.
func choose(list []*node, e *envoy.RateLimitDescriptor_Entry) (pattern, alone *node) {
	for _, n := range list {
		glob := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(n.value), `\*`, ".*") + "$"
		switch fits, _ := regexp.MatchString(glob, e.Value); {
		case n.key != e.Key:
		case n.value != "" && n.value == e.Value:
			return n, nil
		case n.value == "":
			alone = n
		case fits && pattern == nil:
			pattern = n
		}
	}
	return pattern, alone
}

// walk returns the limit of entries, and what counts together.
func walk(list []*node, entries []*envoy.RateLimitDescriptor_Entry) (limit int, counter string) {
	for i, e := range entries {
		n, alone := choose(list, e)
		if n == nil {
			n = alone
		}
		if n == nil {
			return 0, ""
		}
		if n.share {
			counter += fmt.Sprintf("%q", n.value)
		} else {
			counter += fmt.Sprintf("%q", e.Value)
		}
		if i == len(entries)-1 {
			return n.limit, counter
		}
		list = n.below
	}
	return 0, ""
}

func TestRandomDescriptorsFindTheLimitsThatFilesDocument(t *testing.T) {
	values := []string{"", "x", "y", "xy", "xay", "x*", "*", "z", "a", "aa", "a|a", "|", `\`}
	found := 0
	for seed := range randtest.Seeds(t, 300, 300) {
		r := rand.New(rand.NewPCG(seed, 11))
		var text strings.Builder
		text.WriteString("domain: d\ndescriptors:\n")
		limits := 0
		list := drawNodes(r, 0, &limits, &text)
		c, err := parsed(text.String())
		if err != nil {
			t.Fatalf("%s\n%v", &text, err)
		}
		counters, keys := map[string]string{}, map[string]string{}
		for range 60 {
			var entries []*envoy.RateLimitDescriptor_Entry
			for range r.IntN(4) {
				entries = append(entries, &envoy.RateLimitDescriptor_Entry{Key: []string{"a", "b", "c"}[r.IntN(3)], Value: values[r.IntN(len(values))]})
			}
			limit, counter := walk(list, entries)
			m := c.Match("d", entries)
			if got := m.Limit.count(); got != limit {
				t.Fatalf("seed %d: %v: got limit %d, want %d\n%s", seed, entries, got, limit, &text)
			}
			if limit == 0 {
				continue
			}
			found++
			key, state := fmt.Sprint(limit, counter), fmt.Sprint(limit, m.Key)
			if was := counters[key]; was != "" && was != state || keys[state] != "" && keys[state] != key {
				t.Fatalf("seed %d: %v: counts under %s, want the counter %s alone\n%s", seed, entries, state, key, &text)
			}
			counters[key], keys[state] = state, key
		}
	}
	if found < 500 {
		t.Errorf("%d limits were found, want 500 at least", found)
	}
}

func (l *Limit) count() int {
	if l == nil {
		return 0
	}
	return int(l.Shown.RequestsPerUnit)
}

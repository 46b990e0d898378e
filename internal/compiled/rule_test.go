package compiled

import (
	"math"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
)

func compiled(name string, algorithms ...algorithm.Algorithm) *Rule {
	c := &Rule{Name: name, Text: name}
	for _, a := range algorithms {
		c.Add(a, "bucket")
	}
	return c
}

var (
	bucket = algorithm.NewTokenBucket(1, 1, 3)
	slots  = algorithm.NewConcurrency(3, 0)
	queue  = algorithm.NewLeakyBucket(1, 1, 3, 0)
)

func TestStatesOfEqualLimitsDifferByOrdinal(t *testing.T) {
	c := compiled("r", bucket, bucket)
	c.Add(slots, "bucket/1m") // no other ordinal of "bucket"
	c.Add(bucket, "bucket")
	for i, want := range []string{"r\x00bucket\x000", "r\x00bucket\x001", "r\x00bucket/1m\x000", "r\x00bucket\x002"} {
		if got := c.Parts[i].State; got != want {
			t.Errorf("part %d has states named %q, want %q", i, got, want)
		}
	}
}

func TestPartsKnowTheirTraits(t *testing.T) {
	c := compiled("r", bucket, slots, queue)
	for i, want := range []Part{{}, {Leases: true, Endless: true}, {Delays: true}} {
		p := c.Parts[i]
		if p.Delays != want.Delays || p.Leases != want.Leases || p.Endless != want.Endless {
			t.Errorf("part %d: got %+v, want the traits of %+v", i, p, want)
		}
	}
	if words := c.Parts[1].Words; words != nil {
		t.Errorf("slots have words: %v", words)
	}
}

func TestRequestsOfOneRuleAndKeyAreMerged(t *testing.T) {
	a, b := compiled("a", bucket), compiled("b", bucket)
	again := compiled("a", bucket)
	got, problem := Merge(OpReset, []Request{
		{Rule: a, Key: "k", Cost: math.MaxInt64 - 1}, {Rule: b, Key: "k", Cost: 1}, {Rule: a, Key: "l", Cost: 2},
		{Rule: again, Key: "k", Cost: 5}, {Rule: b, Key: "k", Cost: -3},
	})
	want := []Request{{Rule: a, Key: "k", Cost: math.MaxInt64}, {Rule: b, Key: "k", Cost: -2}, {Rule: a, Key: "l", Cost: 2}}
	if problem != nil || len(got) != len(want) {
		t.Fatalf("got %v and %v, want %v", got, problem, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("request %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	a, alone := compiled("a", bucket), compiled("q", queue)
	other := &Rule{Name: "a", Text: "other", Parts: a.Parts}
	long := strings.Repeat("k", MaxKey+1)
	good := Request{Rule: a, Key: "k", Cost: 1}
	for _, tt := range []struct {
		op       string
		requests []Request
		field    string // empty if they are good
	}{
		{OpTake, []Request{good}, ""},
		{OpTake, []Request{{Key: "k"}}, "rule"},
		{OpTake, []Request{{Rule: &Rule{Name: "zero"}}}, "rule"},
		{OpTake, []Request{{Rule: a, Key: long}}, "key"},
		{OpTake, []Request{{Rule: a, Colocation: long}}, "key"},
		{OpTake, []Request{{Rule: a, Cost: -1}}, "cost"},
		{OpPeek, []Request{{Rule: a, Cost: -1}}, "cost"},
		{OpRecord, []Request{{Rule: a, Cost: -1}}, "cost"},
		{OpReturn, []Request{{Rule: a, Cost: -1}}, "cost"},
		{OpReturn, []Request{{Rule: a, Cost: 1}}, ""},
		{OpReset, []Request{{Rule: a, Cost: -1}}, ""},
		{OpTake, []Request{{Rule: alone}}, ""},
		{OpTake, []Request{good, {Rule: alone}}, "rule"},
		{OpReset, []Request{good, {Rule: alone}}, ""},
		{OpTake, []Request{good, {Rule: other, Key: "k"}}, "rule"},
		{OpTake, []Request{good, {Rule: other, Key: "l"}}, ""},
	} {
		merged, problem := Merge(tt.op, append([]Request(nil), tt.requests...))
		if got := fieldOf(problem); got != tt.field || problem == nil && len(merged) == 0 {
			t.Errorf("%s of %v: the field refused is %q, want %q", tt.op, tt.requests, got, tt.field)
		}
	}
	for count, want := range map[int]string{0: "requests", 1: "", MaxRequests: "", MaxRequests + 1: "requests"} {
		if got := fieldOf(CheckCount(count)); got != want {
			t.Errorf("a call of %d requests: the field refused is %q, want %q", count, got, want)
		}
	}
}

func fieldOf(p *Problem) string {
	if p == nil {
		return ""
	}
	return p.Field
}

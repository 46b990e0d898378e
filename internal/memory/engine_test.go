package memory

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/compiled"
)

// ruleOf returns a rule of one limit.
func ruleOf(name string, a algorithm.Algorithm) *compiled.Rule {
	r := &compiled.Rule{Name: name, Text: name, Home: new(Homes)}
	r.Add(a, "limit")
	return r
}

func bucket(units int64) algorithm.Algorithm {
	return algorithm.NewTokenBucket(1, int64(24*time.Hour), units)
}

func TestARefusalNamesTheRequestThatBinds(t *testing.T) {
	now := int64(1_700_000_000_123_456_789)
	e := engineAt(&now, 0)
	two := &compiled.Rule{Name: "two", Text: "two", Home: new(Homes)}
	two.Add(bucket(9), "limit")
	two.Add(bucket(8), "limit")
	requests := []compiled.Request{
		{Rule: two, Key: "k", Cost: 1}, {Rule: ruleOf("small", bucket(3)), Key: "k", Cost: 4}, {Rule: ruleOf("large", bucket(9)), Key: "k", Cost: 1},
	}
	for _, verb := range []Verb{Peek, Take, Record} {
		if _, a, err := e.Decide(verb, requests, 0); err != nil || a.Allowed || a.Binding != 1 {
			t.Errorf("verb %d: got %+v and %v, want a refusal of request 1", verb, a, err)
		}
	}
}

// A rule caches its states for one engine. If two engines use it in turn, each finds its own states.
func TestEnginesThatShareARuleKeepTheirOwnStates(t *testing.T) {
	now := int64(1_700_000_000_123_456_789)
	r, engines := ruleOf("r", bucket(3)), []*Engine{engineAt(&now, 0), engineAt(&now, 0)}
	for range 3 {
		for _, e := range engines {
			take(e, r, "k")
		}
	}
	for i, e := range engines {
		if _, a, err := e.Decide(Peek, []compiled.Request{{Rule: r, Key: "k", Cost: 1}}, 0); err != nil || a.Allowed || a.Remaining != 0 {
			t.Errorf("engine %d after 3 of 3 units: got %+v and %v, want none to remain", i, a, err)
		}
	}
}

// No lock is held after the error: the next call decides.
func TestAKeyWithoutRoomThatCannotShareIsATypedError(t *testing.T) {
	now := int64(1_700_000_000_123_456_789)
	e, r := engineAt(&now, 1), ruleOf("slots", algorithm.NewConcurrency(1, 0))
	var full *NoRoomError
	for i := range 100 {
		_, _, err := e.Decide(Take, []compiled.Request{{Rule: r, Key: strings.Repeat("k", i+1), Cost: 1}}, 0)
		if err != nil && !errors.As(err, &full) {
			t.Fatal(err)
		}
	}
	if full == nil || *full != (NoRoomError{Rule: "slots", MaxKeys: 1}) {
		t.Errorf("100 keys at a bound of 1: got %+v, want an error of the rule and the bound", full)
	}
	if stats := e.Stats(); stats.Keys > 1 {
		t.Errorf("%d keys at a bound of 1", stats.Keys)
	}
}

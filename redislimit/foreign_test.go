package redislimit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
)

// A list, say of another program, is neither read as a state that does not exist, nor overwritten, nor deleted.
func TestAKeyOfAnotherTypeIsAnErrorThatNamesItAndKeepsItsValue(t *testing.T) {
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr, Options{})
	for i, text := range []string{
		"token bucket 100/h", "leaky bucket 100/h queue 5", "fixed window 100/h", "sliding window 100/h", "cycle 100/h", "sliding log 100/h",
		"sliding log 30000/h", "rate gate 100/h", "concurrency 5 lease 9s", "token bucket 100/h and fixed window 9/h", "sliding log 100/h and token bucket 100/h",
	} {
		rule := mustRule(t, fmt.Sprintf("r%d=%s", i, text))
		ask := rule.For("alice", 1)
		if err := allowed(engine.Take(t.Context(), ask)); err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
		keys := server.Do("KEYS", fmt.Sprintf("*:r%d:*", i)).([]any)
		foreign := keys[0].(string)
		server.Do("DEL", foreign)
		server.Do("RPUSH", foreign, "another", "program's", "list")
		record := ask
		record.Cost = 1
		for verb, err := range map[string]error{
			"Take": failed(engine.Take(t.Context(), ask)), "Peek": failed(engine.Peek(t.Context(), ask)),
			"Take with an identity": failed(doCall(t.Context(), engine, weir.Call{Op: weir.OpTake, Identity: "x"}, ask)),
			"Take of two keys":      failed(engine.Take(t.Context(), ask, rule.For("bob", 1))),
			"Take of none":          failed(engine.Take(t.Context(), rule.For("alice", 0))),
			"TakeUpTo":              func() error { _, _, err := weir.TakeUpTo(t.Context(), engine, 7, ask); return err }(),
			"Record":                failed(engine.Record(t.Context(), record)), "Return": failed(engine.Return(t.Context(), record)), "Reset": engine.Reset(t.Context(), rule.For("bob", 1), ask),
		} {
			if verb == "Take of two keys" && strings.HasPrefix(text, "leaky") {
				continue // a rule that delays is decided alone
			}
			wantForeign(t, rule.String()+": "+verb, err, foreign)
		}
		if got := server.Do("LRANGE", foreign, "0", "-1"); fmt.Sprint(got) != "[another program's list]" {
			t.Errorf("%s: key %q is now %v", rule, foreign, got)
		}
		if d, err := engine.Peek(t.Context(), rule.For("bob", 0)); err != nil || d.Remaining != d.Limit {
			t.Errorf("%s: a refused decision has taken %+v, %v", rule, d, err)
		}
	}
}

func failed(_ weir.Decision, err error) error { return err }

func wantForeign(t *testing.T, what string, err error, key string) {
	t.Helper()
	got, ok := errors.AsType[*Error](err)
	if !ok || got.Reason != Damaged || got.Counted != weir.CountedNo || !strings.Contains(err.Error(), fmt.Sprintf("%q", key)) {
		t.Errorf("%s: %v, want an error that names %q, and nothing counted", what, err, key)
	}
}

// Only the decision on the list is an error; the others of the same call are made.
func TestAKeyOfAnotherTypeFailsNoOtherDecisionOfTheCall(t *testing.T) {
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr, Options{})
	rule := mustRule(t, "r=token bucket 100/h")
	requests, results := make([]weir.Request, 5), make([]weir.Result, 5)
	for i := range requests {
		requests[i] = rule.For(fmt.Sprint(i), 1)
	}
	foreign := engine.keys.Name(engine.keys.LaneOf(&requests[2]), "r::", "2")
	server.Do("SADD", foreign, "member")
	for left := int64(99); left > 96; left-- {
		if err := engine.Each(t.Context(), enginekit.Calls(weir.OpTake, requests...), results); err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if i == 2 {
				wantForeign(t, "the third decision", r.Err, foreign)
			} else if r.Err != nil || !r.Decision.Allowed || r.Decision.Remaining != left {
				t.Errorf("decision %d: %+v, want it admitted and %d remaining", i, r, left)
			}
		}
	}
}

// The keys besides the states are not overwritten either.
func TestAnIdentityServerOrProbeOfAnotherTypeIsNotOverwritten(t *testing.T) {
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr, Options{})
	rule := mustRule(t, "r=token bucket 100/h")
	ask := rule.For("alice", 1)
	if err := allowed(doCall(t.Context(), engine, weir.Call{Identity: "x"}, ask)); err != nil {
		t.Fatal(err)
	}
	identity := server.Do("KEYS", "*:x").([]any)[0].(string)
	strict, err := Open("redis://"+server.Addr, Options{DenyNewServer: true})
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close()
	foreign := []string{identity, engine.keys.Server(0), engine.keys.Probe(1)}
	for _, key := range foreign {
		server.Do("DEL", key)
		server.Do("HSET", key, "field", "value")
	}
	wantForeign(t, "Take", failed(doCall(t.Context(), engine, weir.Call{Identity: "x"}, ask)), identity)
	if _, err := strict.Take(context.Background(), rule.For("alice", 1)); err == nil || !strings.Contains(err.Error(), foreign[1]) || weir.WasCounted(err) != weir.CountedNo {
		t.Errorf("Take with DenyNewServer: %v, want an error that names %q", err, foreign[1])
	}
	if warnings, err := engine.Warnings(t.Context()); err != nil || len(warnings) > 0 {
		t.Errorf("Warnings: %q, %v, want none", warnings, err)
	}
	for _, key := range foreign {
		if got := server.Do("TYPE", key); got != "hash" {
			t.Errorf("%q is now a %v", key, got)
		}
	}
	if d, err := engine.Peek(t.Context(), rule.For("alice", 0)); err != nil || d.Remaining != 99 {
		t.Errorf("afterwards: %+v, %v, want 99 remaining", d, err)
	}
}

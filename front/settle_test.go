package front_test

import (
	"context"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

type rule = front.Rule[string, string]

// newFront returns a front whose requests are their own keys.
func newFront(t *testing.T, engine weir.Engine, rules ...rule) *front.Front[string, string] {
	t.Helper()
	f, err := front.New(front.Options[string, string]{Name: "test", Key: func(r string) string { return r }, Engine: engine, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestALimitWithoutANameNeedsAnEngineOfItsOwn(t *testing.T) {
	own := func(string) string { return "key" }
	for _, limited := range []rule{{Limit: "60/m"}, {Limit: "60/m and fixed window 100/d", Key: own}, {Limit: "concurrency 2 lease 1m", Settled: true}} {
		newFront(t, nil, limited)
		options := front.Options[string, string]{Name: "test", Key: own, Engine: weir.NewMemory(weir.MemoryOptions{}), Rules: []rule{limited}}
		for name, made := range map[string]func() error{
			"New":      func() error { _, err := front.New(options); return err },
			"NewRules": func() error { _, err := front.NewRules(options); return err },
		} {
			const want = `has no name, and rules of one name share their states on the Engine: name it, as in "reads=`
			if err := made(); err == nil || !strings.Contains(err.Error(), "rules[0].limit") || !strings.Contains(err.Error(), want+limited.Limit) {
				t.Errorf("%s with %q on an engine of the program: %v, want an error with %q", name, limited.Limit, err, want)
			}
		}
		limited.Limit = "reads=" + limited.Limit
		newFront(t, options.Engine, limited)
	}
}

func TestSettleRefusesWhatItCannotSettle(t *testing.T) {
	plan, err := weir.ParseRule("gold=10/m")
	if err != nil {
		t.Fatal(err)
	}
	none := func(string) string { return "" }
	outer := newFront(t, nil, rule{Limit: "tokens=10/m", Settled: true}, rule{Limit: "other=10/m"})
	inner := newFront(t, nil, rule{Limit: "work=10/m", Settled: true}, rule{Limit: "idle=10/m", Settled: true, Key: none, Missing: front.MissingUnlimited},
		rule{Plan: func(string) *weir.Rule { return plan }, Settled: true})
	ctx, ended := t.Context(), []func(){}
	for _, f := range []*front.Front[string, string]{outer, inner} {
		ask := f.Ask(ctx, "alice", front.Whole)
		if !ask.Outcome.Passes() {
			t.Fatal(ask.Outcome)
		}
		ctx = f.Context(ctx, ask.Grant)
		ended = append(ended, func() { ask.Grant.End(ctx) })
	}
	tests := []struct {
		ctx  context.Context
		rule string
		cost int64
		want string // "" for no error
	}{
		{ctx, "tokens", 3, ""},
		{ctx, "work", 3, ""},
		{ctx, "gold", 3, ""},
		{ctx, "idle", 3, ""}, // this request has no key
		{outer.Context(t.Context(), nil), "tokens", 3, ""},
		{inner.Context(t.Context(), nil), "silver", 3, ""}, // a plan could name it
		{ctx, "token", 3, `front: settle: rule "token": the request has no Settled rule of this name, but "work", "idle", one of a Plan, "tokens"`},
		{ctx, "other", 3, `rule "other": the request has no Settled rule of this name`},
		{ctx, "silver", 3, `rule "silver": the request has no Settled rule of this name`},
		{ctx, "tokens", -1, `rule "tokens": cost -1 is negative`},
		{t.Context(), "tokens", 3, `rule "tokens": the context is not that of a request under a Settled rule`},
	}
	check := func() {
		t.Helper()
		for _, tt := range tests {
			err := front.Settle(tt.ctx, tt.rule, tt.cost)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Settle of %d under %s: %v, want %q", tt.cost, tt.rule, err, tt.want)
			}
		}
	}
	check()
	for _, end := range ended {
		end()
	}
	for i := range 3 {
		tests[i].want = "the request has ended"
	}
	check()
}

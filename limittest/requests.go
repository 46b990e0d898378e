package limittest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// texts formats requests for a failure message.
func texts(requests []weir.Request) string {
	var all []string
	for _, q := range requests {
		name := "no rule"
		if q.Rule != nil {
			name = q.Rule.String()
		}
		all = append(all, fmt.Sprintf("%s key %.40q cost %d", name, q.Key, q.Cost))
	}
	return strings.Join(all, ", ")
}

// verbs returns the calls that take requests, each as a function that returns only its error.
func (f *fixture) verbs() map[string]func(...weir.Request) error {
	ctx := context.Background()
	return map[string]func(...weir.Request) error{
		"Take": func(q ...weir.Request) error {
			_, err := f.engine.Take(ctx, q...)
			return err
		},
		"Reserve": func(q ...weir.Request) error {
			_, err := f.engine.Reserve(ctx, q...)
			return err
		},
		"Peek": func(q ...weir.Request) error {
			_, err := f.engine.Peek(ctx, q...)
			return err
		},
		"Record": func(q ...weir.Request) error {
			_, err := f.engine.Record(ctx, q...)
			return err
		},
		"Return": func(q ...weir.Request) error {
			_, err := f.engine.Return(ctx, q...)
			return err
		},
		"Reset": func(q ...weir.Request) error { return f.engine.Reset(ctx, q...) },
	}
}

func badRequests(f *fixture) {
	rule := f.rule("r", weir.TokenBucket{Rate: weir.PerHour(5)})
	good := rule.For("k", 1)
	chained := good
	chained.Otherwise = &weir.Request{Rule: f.rule("pool", weir.TokenBucket{Rate: weir.PerHour(9)}), Key: "k", Cost: 1}
	bad := []struct {
		what     string
		field    string
		requests []weir.Request
	}{
		{"no requests", "requests", nil},
		{"too many requests", "requests", manyRequests(rule, weir.MaxRequests+1)},
		{"no rule", "rule", []weir.Request{good, {Key: "k", Cost: 1}}},
		{"a rule not made by NewRule", "rule", []weir.Request{good, {Rule: &weir.Rule{}, Key: "k", Cost: 1}}},
		{"a key too long", "key", []weir.Request{good, rule.For(strings.Repeat("x", weir.MaxKey+1), 1)}},
		{"a request in place of another", "otherwise", []weir.Request{chained}},
		{"a request in place of the second", "otherwise", []weir.Request{rule.For("other", 1), chained}},
	}
	for verb, call := range f.verbs() {
		for _, b := range bad {
			f.wantRequestError(verb+" with "+b.what, call(b.requests...), b.field)
		}
		if verb != "Record" && verb != "Reset" {
			f.wantRequestError(verb+" with a negative cost", call(good, rule.For("other", -1)), "cost")
			f.wantRequestError(verb+" with a negative cost that the sum hides", call(rule.For("k", 3), rule.For("k", -1)), "cost")
		}
	}
	f.wantRequestError("Take of leased units with a request in place of another", f.failure(weir.Call{Op: weir.OpTake, Requests: []weir.Request{chained}, Lease: 1}), "otherwise")
	f.wantRequestError("TakeUpTo with a request in place of another", f.failure(weir.Call{Op: weir.OpTakeUpTo, Requests: []weir.Request{chained}, Most: 1}), "otherwise")
	f.wantRequestError("Each with a request in place of another", f.failure(weir.Call{Op: weir.OpEach, Each: &weir.Batch{Calls: []weir.Call{{Requests: []weir.Request{chained}}}, Results: make([]weir.Result, 1)}}), "otherwise")
	f.wantRemaining("after bad requests", rule, "k", 5)
	f.want("as many requests as are legal", f.take(manyRequests(rule, weir.MaxRequests)...), true, 4)
	f.want("as long a key as is legal", f.take(rule.For(strings.Repeat("x", weir.MaxKey), 1)), true, 4)
}

// failure makes a call, and returns its error, or that of the only call of an OpEach.
func (f *fixture) failure(call weir.Call) error {
	_, err := f.engine.Do(context.Background(), call)
	if err == nil && call.Each != nil {
		err = call.Each.Results[0].Err
	}
	return err
}

func manyRequests(rule *weir.Rule, n int) []weir.Request {
	requests := make([]weir.Request, n)
	for i := range requests {
		requests[i] = rule.For(fmt.Sprint("many ", i), 1)
	}
	return requests
}

func contextDone(f *fixture) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	rule := f.rule("r", weir.TokenBucket{Rate: weir.PerHour(5)})
	d, err := f.engine.Take(ctx, rule.For("k", 1))
	if !errors.Is(err, context.Canceled) || d.Allowed {
		f.Errorf("Take with a context that is done: got %+v and error %v, want nothing allowed and context.Canceled", d, err)
	}
	r, err := f.engine.Reserve(ctx, rule.For("k", 1))
	if !errors.Is(err, context.Canceled) {
		f.Errorf("Reserve with a context that is done: got error %v, want context.Canceled", err)
	}
	if err := r.Cancel(context.Background()); err != nil {
		f.Errorf("Cancel of the handle of a failed Reserve: %v", err)
	}
	f.wantRemaining("afterwards", rule, "k", 5)
}

func eachOnItsOwn(f *fixture) {
	ctx := context.Background()
	rule := f.rule("r", weir.TokenBucket{Rate: weir.PerHour(5)})
	other := f.rule("other", weir.LeakyBucket{Rate: weir.PerHour(5), Queue: 1, NoDelay: 1})
	requests := []weir.Request{
		rule.For("a", 3), rule.For("b", 1), rule.For("a", 3), rule.For("a", -1), {Key: "a", Cost: 1},
		rule.For("a", 2), other.For("a", 1), rule.For("b", 6), rule.For("a", 1),
	}
	want := []struct {
		allowed   bool
		remaining int64
		badField  string
	}{
		{true, 2, ""}, {true, 4, ""}, {false, 2, ""}, {false, 0, "cost"}, {false, 0, "rule"},
		{true, 0, ""}, {true, 1, ""}, {false, 4, ""}, {false, 0, ""},
	}
	results := make([]weir.Result, len(requests))
	results[0] = weir.Result{Err: errors.New("stale")}
	if err := f.engine.Each(ctx, enginekit.Calls(weir.OpTake, requests...), results); err != nil {
		f.Fatalf("Each: %v", err)
	}
	for i, w := range want {
		what := "Each, answer to " + texts(requests[i:i+1])
		if w.badField != "" {
			f.wantRequestError(what, results[i].Err, w.badField)
		} else if results[i].Err != nil {
			f.Errorf("%s: got error %v", what, results[i].Err)
		}
		f.want(what, results[i].Decision, w.allowed, w.remaining)
	}
	if err := f.engine.Each(ctx, enginekit.Calls(weir.OpTake, requests[:2]...), results[:1]); err == nil {
		f.Error("Each with 2 requests and 1 result: got no error")
	}
	f.wantRemaining("b after Each with slices that differ", rule, "b", 4)
	if err := f.engine.Each(ctx, nil, nil); err != nil {
		f.Errorf("Each of nothing: got error %v, want none", err)
	}
}

// eachOfSeveralVerbs tests that takes, records, returns and peeks in one Each are made in order, each with its own answer.
func eachOfSeveralVerbs(f *fixture) {
	rule := f.rule("r", weir.TokenBucket{Rate: weir.PerHour(5)})
	other := f.rule("other", weir.FixedWindow{Rate: weir.PerDay(8)})
	call := func(op weir.Op, requests ...weir.Request) weir.Call { return weir.Call{Op: op, Requests: requests} }
	calls := []weir.Call{
		call(weir.OpTake, rule.For("a", 5)),
		call(weir.OpTake, rule.For("a", 1)),
		call(weir.OpReturn, rule.For("a", 2)),
		call(weir.OpTake, rule.For("a", 1), other.For("a", 8)),
		call(weir.OpRecord, other.For("a", 3)),
		call(weir.OpRecord, rule.For("a", -1)),
		call(weir.OpReturn, rule.For("a", 1), other.For("a", 4)),
		call(weir.OpReset, rule.For("a", 1)),
		call(weir.OpPeek, other.For("a", 8)),
		call(weir.OpRecord, rule.For("b", 7)),
	}
	want := []struct {
		allowed   bool
		remaining int64
		fails     bool
	}{
		{true, 0, false}, {false, 0, false}, {true, 2, false}, {true, 0, false}, {false, 0, false}, {false, 0, true},
		{true, 1, false}, {false, 0, true}, {false, 1, false}, {false, 0, false},
	}
	results := make([]weir.Result, len(calls))
	if err := f.engine.Each(context.Background(), calls, results); err != nil {
		f.Fatalf("Each: %v", err)
	}
	for i, w := range want {
		what := fmt.Sprintf("Each, answer %d, to %s %s", i, calls[i].Op, texts(calls[i].Requests))
		if got := results[i].Err; (got != nil) != w.fails {
			f.Errorf("%s: got error %v, want one: %v", what, got, w.fails)
		}
		f.want(what, results[i].Decision, w.allowed, w.remaining)
	}
	f.wantRemaining("b after a record above the limit", rule, "b", 0)
}

// takeWithin tests that a call with a bound of its own is decided, even if its context has ended.
func takeWithin(f *fixture) {
	rule := f.rule("r", weir.TokenBucket{Rate: weir.PerHour(5)})
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	within := func(cost int64) (weir.Decision, error) {
		a, err := f.engine.Do(ended, weir.Call{Op: weir.OpTake, Requests: []weir.Request{rule.For("k", cost)}, Within: time.Minute})
		return a.Decision, err
	}
	d, err := within(2)
	f.decided("Take within a minute", []weir.Request{rule.For("k", 2)}, err)
	f.want("Take of 2 of 5 within a minute", d, true, 3)
	_, err = within(-2)
	f.wantRequestError("Take of a negative cost within a minute", err, "cost")
}

func checkAccepts(f *fixture) {
	var rules []*weir.Rule
	for _, limit := range everyLimit() {
		rules = append(rules, f.rule("r", limit))
	}
	if err := f.engine.Check(rules...); err != nil {
		f.Errorf("Check of every limit: got %v, want nil", err)
	}
	if err := f.engine.Check(); err != nil {
		f.Errorf("Check of no rules: got %v, want nil", err)
	}
	if err := f.engine.Check(rules[0], nil); err == nil {
		f.Error("Check of a nil rule: got no error")
	}
}

package rules

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/tape"
	"github.com/weirflow/weir/layer"
)

// TestResult is a test of a file of tests, with its outcome.
type TestResult struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Name    string `json:"name"`
	Failure string `json:"failure,omitempty"` // empty if all answers are as expected
}

// step is one line of requests with the answer that they should get.
type step struct {
	node
	request      Attributes
	expect, rule string
	paidBy       string
	after        time.Duration
	times, cost  int64
	matches      []string // nil for any
	remaining    int64    // -1 for any
	retryAfter   time.Duration
	wantsRetry   bool
}

type test struct {
	node
	name  string
	steps []step
}

// testFile is the content of a file of tests.
type testFile struct {
	rules []string
	tests []test
}

var (
	testFileFields fields[testFile]
	testFields     fields[test]
	stepFields     fields[step]
)

func init() {
	testFileFields = fields[testFile]{
		{"rules", "The rules files, relative to this one.", nil, func(n node, f *testFile) {
			for _, v := range n.list(100) {
				if text, ok := v.text("the name of a rules file"); ok {
					f.rules = append(f.rules, text)
				}
			}
		}},
		{"tests", "The tests.", nil, func(n node, f *testFile) {
			for _, v := range n.list(maxRules) {
				v.where = "test"
				t := test{node: v}
				testFields.read(v, "a test", &t)
				f.tests = append(f.tests, t)
			}
		}},
	}
	testFields = fields[test]{
		{"name", "The promise.", nil, func(n node, t *test) { t.name, _ = n.text("a name") }},
		{"steps", "The requests, in order.", nil, func(n node, t *test) {
			for _, v := range n.list(maxRules) {
				t.steps = append(t.steps, readStep(v))
			}
		}},
	}
	stepFields = fields[step]{
		{"request", "The attributes.", nil, func(n node, s *step) { s.readRequest(n) }},
		{"expect", "The answer.", nil, func(n node, s *step) { s.expect = n.oneOf("allow", "deny") }},
		{"after", "The time before the step.", nil, func(n node, s *step) { s.after = n.duration() }},
		{"times", "The number of requests.", nil, func(n node, s *step) { s.times = n.whole(1, 1_000_000) }},
		{"cost", "The cost that the caller names.", nil, func(n node, s *step) { s.cost = n.whole(0, weir.MaxCount) }},
		{"rule", "The rule of the answer.", nil, func(n node, s *step) { s.rule, _ = n.text("the name of a rule") }},
		{"paid_by", "A rule that the request is taken from.", nil, func(n node, s *step) { s.paidBy, _ = n.text("the name of a rule") }},
		{"matches", "The rules that match.", nil, func(n node, s *step) { s.readMatches(n) }},
		{"remaining", "The units left.", nil, func(n node, s *step) { s.remaining = n.whole(0, weir.MaxCount) }},
		{"retry_after", "The time until the request is admitted.", nil, func(n node, s *step) { s.retryAfter, s.wantsRetry = n.duration(), true }},
	}
}

func readStep(n node) step {
	n.where = "step"
	s := step{node: n, times: 1, cost: 1, remaining: -1}
	before := len(*n.doc.problems)
	given := stepFields.read(n, "a step", &s)
	for _, field := range []string{"request", "expect"} {
		if given[field].Node == nil && len(*n.doc.problems) == before {
			n.fail("has no %s", field)
		}
	}
	return s
}

func (s *step) readRequest(n node) {
	members, _ := n.members("attributes")
	s.request = Attributes{}
	for _, m := range members {
		name := AttributeName(m.name)
		if _, twice := s.request[name]; twice {
			m.fail("%q is given twice, in two spellings", name)
		}
		if text, ok := m.scalar(); ok {
			s.request[name] = text
		} else {
			m.unlike("a text")
		}
	}
}

func (s *step) readMatches(n node) {
	s.matches = []string{}
	if list, ok := n.Node.(interface{ Len() int }); ok && list.Len() == 0 {
		return // no rule
	}
	for _, v := range n.list(maxRules) {
		if text, ok := v.text("the name of a rule"); ok {
			s.matches = append(s.matches, text)
		}
	}
	slices.Sort(s.matches)
}

func (n node) duration() time.Duration {
	text, ok := n.text("a duration like 500ms, 12s or 1h30m")
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > weir.MaxPeriod {
		n.fail("is %s, want a duration like 500ms, 12s or 1h30m, up to 366 days", plain.Quoted(text))
	}
	return d
}

// Test runs the tests of a file, in virtual time, against the rules of the files that it names. The error is Problems, or that of load.
func Test(file File, load func(names []string) (*Config, error)) ([]TestResult, error) {
	var problems Problems
	var content testFile
	left := maxTokens
	root, ok := open(file, &left, &problems)
	if ok {
		given := testFileFields.read(root, "a file of tests", &content)
		for _, field := range []string{"rules", "tests"} {
			if given[field].Node == nil && len(problems) == 0 {
				root.fail("has no %s, want the name of a rules file in rules, and a list of tests in tests", field)
			}
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	config, err := load(content.rules)
	if err != nil {
		return nil, err
	}
	results := make([]TestResult, len(content.tests))
	for i, t := range content.tests {
		results[i] = TestResult{File: file.Name, Line: t.token().Position.Line, Name: t.name}
		if err := t.run(config); err != nil {
			results[i].Failure = err.Error()
		}
	}
	return results, nil
}

// start is when each test begins: a whole day, so that windows begin with it.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// run returns the first answer that is not as expected.
func (t *test) run(config *Config) error {
	now := start
	clock := tape.New()
	engine, err := layer.Otherwise(clock)
	if err != nil {
		return err
	}
	for i := range t.steps {
		s := &t.steps[i]
		if s.after > time.Duration(math.MaxInt64-now) {
			return fmt.Errorf("line %d: the test takes more than the 200 years that a clock has", s.token().Position.Line)
		}
		now += int64(s.after)
		clock.At(now)
		if err := s.run(config, engine); err != nil {
			return fmt.Errorf("line %d: %w", s.token().Position.Line, err)
		}
	}
	return nil
}

func (s *step) run(config *Config, engine weir.Engine) error {
	if err := config.CheckNames(s.request); err != nil {
		return err
	}
	if s.matches != nil {
		var got []string
		for _, r := range config.Matches(s.request) {
			got = append(got, r.Name)
		}
		if slices.Sort(got); !slices.Equal(got, s.matches) {
			return fmt.Errorf("matches %s, want %s", listed(got), listed(s.matches))
		}
	}
	var last reply
	for i := range s.times {
		var err error
		if last, err = ask(config, engine, s.request, s.cost); err != nil {
			return err
		}
		if last.allowed != (s.expect == "allow") {
			return fmt.Errorf("request %d of %d: %s, want %s", i+1, s.times, last, s.expect)
		}
	}
	return s.compare(last)
}

// compare compares the last answer of the step.
func (s *step) compare(a reply) error {
	switch {
	case s.rule != "" && a.rule != s.rule:
		return fmt.Errorf("%s, want rule %s", a, s.rule)
	case s.paidBy != "" && !slices.Contains(a.paid, s.paidBy):
		return fmt.Errorf("%s, paid by %s, want %s", a, listed(a.paid), s.paidBy)
	case s.remaining >= 0 && a.decision.Remaining != s.remaining:
		return fmt.Errorf("%s with %d remaining, want %d", a, a.decision.Remaining, s.remaining)
	case s.wantsRetry && a.decision.RetryAfter != s.retryAfter:
		return fmt.Errorf("%s, want retry after %s", a, s.retryAfter)
	}
	return nil
}

// reply is the answer to one request.
type reply struct {
	allowed  bool
	rule     string
	decision weir.Decision
	paid     []string // the rules that the request is taken from
}

func (a reply) String() string {
	text := "got deny"
	if a.allowed {
		text = "got allow"
	}
	if a.rule != "" {
		text += " by " + a.rule
	}
	if a.decision.RetryAfter == weir.Never {
		return text + ", never to be admitted"
	}
	if !a.allowed && a.decision.RetryAfter > 0 {
		text += fmt.Sprintf(", retry after %s", a.decision.RetryAfter)
	}
	return text
}

// ask makes one request.
func ask(config *Config, engine weir.Engine, request Attributes, cost int64) (a reply, err error) {
	var o Outcome
	config.Decide(request, cost, &o)
	if o.Rule != nil {
		a.rule = o.Rule.Name
	}
	if o.Verdict != Ask {
		a.allowed = o.Verdict == Allow
		return a, nil
	}
	answer, err := engine.Do(context.Background(), weir.Call{Op: weir.OpTake, Requests: o.Requests})
	if err != nil {
		return a, errors.New(strings.TrimPrefix(err.Error(), "weir: "))
	}
	a.decision = answer.Decision
	if a.allowed, a.rule = a.decision.Allowed, a.decision.Rule; a.allowed {
		a.paid = payers(o.Requests, answer.Paid)
	}
	return a, nil
}

// payers returns the names of the rules that a call was taken from: those of its requests, unless others were made in their place.
func payers(requests, paid []weir.Request) (names []string) {
	if paid == nil {
		paid = requests
	}
	for _, q := range paid {
		names = append(names, q.Rule.Name())
	}
	return names
}

func listed(names []string) string {
	if len(names) == 0 {
		return "no rule"
	}
	return strings.Join(names, ", ")
}

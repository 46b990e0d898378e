package playground

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

const someRules = `rules:
  - name: login
    match: {path: /login}
    key: client
    limit: token bucket 5/m burst 5
  - name: all
    match: any
    key: client
    limit: 100/s
`

const someTests = `rules: [weir.yaml]
tests:
  - name: the sixth log-in waits
    steps:
      - {request: {path: /login, client: 192.0.2.1}, times: 5, expect: allow}
      - {request: {path: /login, client: 192.0.2.1}, expect: deny, rule: login, retry_after: 12s}
      - {request: {path: /login, client: 192.0.2.2}, expect: deny}
`

func asked(t *testing.T, do string, r ruling) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"do": do, "rules": r.Rules, "request": r.Request, "tests": r.Tests, "cost": r.Cost})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRulesAreAskedAndTested(t *testing.T) {
	ruled, failure := ask[Ruled](t, asked(t, "explain", ruling{Rules: someRules, Request: "path=/login\n\n client=192.0.2.1 \n"}))
	if failure.Message != "" || len(ruled.Explanation.Steps) != 2 || ruled.Explanation.Steps[0].Rule != "login" || *ruled.Explanation.Steps[0].Key != "192.0.2.1" {
		t.Errorf("got %+v and %+v", failure, ruled)
	}
	if !strings.HasPrefix(ruled.Text, "the limits of 2 rules decide together\n") || !strings.Contains(ruled.Text, "login, weir.yaml:2") {
		t.Errorf("got the text %s", ruled.Text)
	}
	results, failure := ask[[]rules.TestResult](t, asked(t, "test", ruling{Rules: someRules, Tests: someTests}))
	if failure.Message != "" || len(results) != 1 || results[0].Line != 3 || !strings.Contains(results[0].Failure, "line 7: request 1 of 1: got allow, want deny") && !strings.Contains(results[0].Failure, "want deny") {
		t.Errorf("got %+v and %+v", failure, results)
	}
	checked, failure := ask[Checked](t, `{"do":"check","text":`+quoted(someRules)+`}`)
	if failure.Message != "" || len(checked.File) != 2 || checked.File[1] != "100/s" && checked.File[1] != "token bucket 100/s" {
		t.Errorf("got %+v and %+v", failure, checked)
	}
}

func quoted(text string) string {
	q, _ := json.Marshal(text)
	return string(q)
}

func TestBadRulesGetTheErrorsOfTheProgram(t *testing.T) {
	minus := int64(-1)
	for want, question := range map[string]string{
		"explain: 1 problem\nweir.yaml:":        asked(t, "explain", ruling{Rules: strings.Replace(someRules, "bucket", "bukket", 1)}),
		`"path" is no attribute`:                asked(t, "explain", ruling{Rules: someRules, Request: "path"}),
		"is given twice":                        asked(t, "explain", ruling{Rules: someRules, Request: "path=/\npath=/x"}),
		"explain: ":                             asked(t, "explain", ruling{Rules: someRules, Request: "colour=red"}),
		"a negative cost":                       asked(t, "explain", ruling{Rules: someRules, Cost: &minus}),
		"rules test: 1 problem\nweir.test.yaml": asked(t, "test", ruling{Rules: someRules, Tests: "tests: 7"}),
		"rules test: 1 problem\nweir.yaml":      asked(t, "test", ruling{Rules: "rules: [", Tests: someTests}),
		"check: 1 problem\nweir.yaml":           `{"do":"check","text":"rules:\n  - nam: x\n"}`,
		"check: no rule has a limit":            `{"do":"check","text":"rules:\n  - {name: x, match: any, deny: true}\n"}`,
	} {
		if _, failure := ask[any](t, question); !strings.Contains(failure.Message, want) || len(failure.Hints) == 0 {
			t.Errorf("%.200s: got %+v, want %q and a hint", question, failure, want)
		}
	}
}

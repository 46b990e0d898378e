package playground

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/lint"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// ruling is a rules file with a request, or with tests.
type ruling struct {
	Rules   string `json:"rules"`
	Request string `json:"request"` // attributes, NAME=VALUE, one a line
	Cost    *int64 `json:"cost"`    // that the caller names; 1 without one
	Tests   string `json:"tests"`   // a file of tests; they run on Rules, not on the files that it names
}

// Ruled is how a request is decided, as weir explain says it.
type Ruled struct {
	Explanation rules.Explanation `json:"explanation"` // as weir explain --format json has it
	Text        string            `json:"text"`
}

// The names of pasted texts in errors.
const (
	rulesName = "weir.yaml"
	testsName = "weir.test.yaml"
)

// explain says how the request is decided.
func (r *ruling) explain() (Ruled, error) {
	config, file, err := parse("explain", r.Rules)
	if err != nil {
		return Ruled{}, err
	}
	request, err := rules.ParseAttributes(lines(r.Request))
	if err != nil {
		return Ruled{}, err
	}
	if err := config.CheckRequest("explain", request); err != nil {
		return Ruled{}, err
	}
	cost := int64(1)
	if r.Cost != nil {
		cost = *r.Cost
	}
	if cost < 0 {
		return Ruled{}, plain.Misusef("use a cost of 0 or more", "explain: %d: a negative cost", cost)
	}
	e, err := config.Explain(context.Background(), request, cost, nil)
	if err != nil {
		return Ruled{}, plain.Fail(fmt.Errorf("explain: %s", plain.Message(err)), "change the request or its rule")
	}
	e.Warnings = lint.Warnings(config, file).Shown()
	return Ruled{e, e.Text()}, nil
}

// test runs the tests.
func (r *ruling) test() ([]rules.TestResult, error) {
	results, err := rules.Test(rules.File{Name: testsName, Content: []byte(r.Tests)}, func([]string) (*rules.Config, error) {
		config, _, err := parse("rules test", r.Rules)
		return config, err
	})
	if err != nil {
		return nil, rules.Refused("rules test", err)
	}
	return results, nil
}

func parse(command, text string) (*rules.Config, rules.File, error) {
	file := rules.File{Name: rulesName, Content: []byte(text)}
	config, err := rules.Parse(rules.Options{}, file)
	if err != nil {
		return nil, file, rules.Refused(command, err)
	}
	return config, file, nil
}

// lines returns the lines of a text that are not blank.
func lines(text string) []string {
	all := strings.Split(text, "\n")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return slices.DeleteFunc(all, func(line string) bool { return line == "" })
}

// Package imported writes rules that were made from the configuration of another program as a file.
package imported

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// Rule is a rule as a file has it.
type Rule struct {
	Name      string   `yaml:"name"`
	Match     any      `yaml:"match"` // any, or Patterns
	Except    Patterns `yaml:"except,omitempty"`
	Key       []string `yaml:"key,flow,omitempty"`
	Missing   string   `yaml:"missing,omitempty"`
	Budget    string   `yaml:"budget,omitempty"`
	Limit     string   `yaml:"limit,omitempty"`
	Deny      bool     `yaml:"deny,omitempty"`
	Unlimited bool     `yaml:"unlimited,omitempty"`
	OnFailure string   `yaml:"on_failure,omitempty"`
	Shadow    bool     `yaml:"shadow,omitempty"`
}

// Patterns are patterns by attribute.
type Patterns map[string][]string

// Note names a setting that was left out, or differs from the other program.
type Note struct {
	File string
	Line int
	Text string
}

func (n Note) String() string {
	if n.File == "" {
		return n.Text
	}
	return fmt.Sprintf("%s:%d: %s", n.File, n.Line, n.Text)
}

// Result is the result of an import.
type Result struct {
	Rules []Rule
	Notes []Note
}

// Shadow makes all rules that refuse shadows, which say nothing about an engine that fails.
func (r *Result) Shadow() {
	for i := range r.Rules {
		if rule := &r.Rules[i]; !rule.Unlimited {
			rule.Shadow, rule.OnFailure = true, ""
		}
	}
}

// YAML returns the rules as a file. Notes are its comments, each on one line whatever it quotes.
func (r *Result) YAML(from, command string) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Made from %s by weir rules import %s.\n", from, command)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "# %s\n", strings.Join(strings.FieldsFunc(n.String(), func(r rune) bool { return r < ' ' }), " "))
	}
	text, err := yaml.MarshalWithOptions(struct {
		Rules []Rule `yaml:"rules"`
	}{r.Rules}, yaml.IndentSequence(true))
	b.Write(text)
	return []byte(b.String()), err
}

// Check returns the problems of the rules as a file.
func (r *Result) Check() error {
	if len(r.Rules) == 0 {
		return nil
	}
	text, err := r.YAML("", "")
	if err == nil {
		_, err = rules.Parse(rules.Options{}, rules.File{Name: "result", Content: text})
	}
	return err
}

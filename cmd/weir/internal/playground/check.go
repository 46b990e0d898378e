package playground

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/explain"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/replay"
)

// Checked is the content of a text: a limit, several joined with "and", or the limits of a rules file.
type Checked struct {
	Limits   []Explained `json:"limits"`
	Together string      `json:"together,omitempty"` // of several limits
	File     []string    `json:"file,omitempty"`     // the limits of a rules file; Limits explains the first
	Notes    []string    `json:"notes,omitempty"`    // on rules of the file
}

// Explained is a limit in plain words, as weir check has them.
type Explained struct {
	Limit    string `json:"limit"`
	Capacity string `json:"capacity"`
	Burst    string `json:"burst"`
	Windows  string `json:"windows,omitempty"`
	Worst    string `json:"worst"`
	Memory   string `json:"memory"`
}

// check explains the limits of a text.
func check(text string) (c Checked, err error) {
	if isRules(text) {
		if c.File, c.Notes, err = textsOf(text); err != nil {
			return c, err
		}
		text = c.File[0]
	}
	limits, err := limitsOf(text)
	if err != nil {
		return c, err
	}
	c.Limits = []Explained{}
	for _, limit := range limits {
		e := explain.Of(limit)
		windows, zone := explain.Windows(limit, time.Now())
		if zone != "" {
			windows += " " + explain.OwnZoneData() // a page sees none of the system
		}
		c.Limits = append(c.Limits, Explained{limit.String(), e.Capacity, e.Burst, windows, e.Worst, e.Memory})
	}
	if len(limits) > 1 {
		c.Together = strings.Join(explain.Together, " ")
	}
	return c, nil
}

// rulesBegin matches the first line of a file. No limit begins like this.
var rulesBegin = regexp.MustCompile(`^(#|---|\{|[A-Za-z_]+:)`)

// isRules reports whether a text is meant as a rules file.
func isRules(text string) bool { return rulesBegin.MatchString(strings.TrimSpace(text)) }

// textsOf returns the limits of a rules file, each once, and how its rules differ from a limit alone.
func textsOf(text string) (texts, notes []string, err error) {
	config, _, err := parse("check", text)
	if err != nil {
		return nil, nil, err
	}
	for _, limit := range config.Limits() {
		if text := rules.LimitText(limit); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return nil, nil, plain.Fail(errors.New("check: no rule has a limit"), "rules that deny, or are unlimited, have none")
	}
	for _, r := range config.Rules {
		if r.After {
			notes = append(notes, fmt.Sprintf("Rule %s is %s. Play charges each request before it.", r.Name, explain.After(r.Most)))
		}
	}
	return texts, notes, nil
}

// limitsOf reads a text with the errors and hints of weir check.
func limitsOf(text string) ([]weir.Limit, error) {
	candidate, err := replay.ParseCandidate(text)
	if err != nil {
		return nil, plain.LimitError("check", err, plain.LimitForms)
	}
	return candidate.Limits, nil
}

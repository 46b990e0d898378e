package admin

import (
	"fmt"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// reach refuses an entry that would never stand in for its rule, and tells where and for how long one does not.
func (h *handler) reach(e *override.Entry) (warnings []string, err error) {
	named, config := h.Rules()
	if e.Rule != "" {
		rule, err := h.rule(e.Rule)
		if err != nil {
			return nil, err
		}
		named = []*weir.Rule{rule}
	}
	missed := misses(e, named, config)
	switch {
	case e.Key != "" || e.Rule != "" && missed.reached > 0:
	case e.Prefix:
		return nil, wrong("the prefix is empty, which every key of every rule begins with: name a rule, or a longer prefix")
	default:
		return nil, wrong("the key is empty: name one, or all keys of a rule by a rule and an empty prefix")
	}
	if e.Prefix && e.Key == "" {
		warnings = append(warnings, "it concerns every key, because every key begins with an empty prefix")
	}
	warnings = append(warnings, missed.warnings()...)
	if others := sharing(e, e.Rule, config); len(others) > 0 {
		warnings = append(warnings, fmt.Sprintf("it also stands in for the limit of %s, in the same budget", names(others)))
	}
	if why, near := rules.NoClient(e.Key, e.Prefix); h.CheckKey && near && missed.reached > 0 {
		warnings = append(warnings, fmt.Sprintf("no check of a client's address has %s: %s", missed.what(), why))
	}
	for _, rule := range named {
		switch standsIn, err := e.StandsIn(rule); {
		case err != nil:
			return nil, errWrong{err}
		case standsIn:
			continue
		}
		if e.Rule != "" {
			return nil, wrong("%s", unlike(e, rule))
		}
		kind, want := slotsOf(rule)
		warnings = append(warnings, fmt.Sprintf("it leaves rule %q alone, which %s: that needs %s", rule.Name(), kind, want))
	}
	for _, rule := range named {
		if e.Rule != "" && h.isShadow(rule.Name()) {
			warnings = append(warnings, fmt.Sprintf("rule %q is a shadow, so it refuses nothing, with this neither: weir ctl enforce %s puts it in force", rule.Name(), rule.Name()))
		}
	}
	return append(warnings, h.fleeting()...), nil
}

// unlike says why an entry cannot stand in for a rule.
func unlike(e *override.Entry, rule *weir.Rule) string {
	kind, want := slotsOf(rule)
	return fmt.Sprintf("rule %q %s, and %s cannot stand in for its limit: want %s, or a block", rule.Name(), kind, e.Limit, want)
}

func slotsOf(rule *weir.Rule) (kind, want string) {
	if weir.Kit.Held(rule) != nil {
		return "has slots", "slots with a lease, such as concurrency 50 lease 1m"
	}
	return "has no slots", "a limit without slots"
}

// Idle says why an entry changes no decision of the rules in force, or returns "".
func Idle(e *override.Entry, named []*weir.Rule, config *rules.Config) string {
	if e.Rule != "" {
		rule := find(named, e.Rule)
		if rule == nil {
			return unnamed(config, e.Rule)
		}
		named = []*weir.Rule{rule}
	}
	why := ""
	for _, rule := range named {
		if _, _, missed := miss(e, rule, config); missed {
			continue
		}
		switch standsIn, err := e.StandsIn(rule); {
		case err != nil:
			return err.Error()
		case standsIn:
			return ""
		}
		why = unlike(e, rule)
	}
	if why != "" {
		return why
	}
	return strings.Join(misses(e, named, config).warnings(), "; ")
}

// missed are rules without a request that has a key.
type missed struct {
	key     string
	prefix  bool
	reached int // the rules that may have one
	whys    []string
	rules   map[string][]string // by why
	near    map[string]bool     // the reasons that the user should know although other rules have the key
}

func miss(e *override.Entry, rule *weir.Rule, config *rules.Config) (why string, near, missed bool) {
	if config == nil {
		return "", false, false
	}
	why, near = config.NoKey(rule.Name(), e.Key, e.Prefix)
	if why != "" && len(sharing(e, rule.Name(), config)) > 0 {
		return "", false, false
	}
	return why, near, why != ""
}

// sharing returns the rules that count in the budget of another rule and may have the key of an entry.
func sharing(e *override.Entry, rule string, config *rules.Config) (others []string) {
	if config == nil || rule == "" {
		return nil
	}
	for _, r := range config.Rules {
		if r.Budget != rule {
			continue
		}
		if why, _ := config.NoKey(r.Name, e.Key, e.Prefix); why == "" {
			others = append(others, r.Name)
		}
	}
	return others
}

// misses returns the rules that have no request with the key of an entry.
func misses(e *override.Entry, named []*weir.Rule, config *rules.Config) missed {
	m := missed{key: e.Key, prefix: e.Prefix, rules: map[string][]string{}, near: map[string]bool{}}
	for _, rule := range named {
		why, near, missed := miss(e, rule, config)
		if !missed {
			m.reached++
			continue
		}
		if m.rules[why] == nil {
			m.whys = append(m.whys, why)
		}
		m.rules[why] = append(m.rules[why], rule.Name())
		m.near[why] = near
	}
	return m
}

// The bounds of warnings.
const (
	mostWhys  = 10
	mostNames = 5
)

// warnings names the rules that the key misses: all of them if it reaches none, and otherwise those that have it in another
// form.
func (m missed) warnings() (warnings []string) {
	for _, why := range m.whys {
		if m.reached > 0 && !m.near[why] {
			continue
		}
		if len(warnings) == mostWhys {
			return append(warnings, "no request has it under more rules, whose keys weir ctl rules shows")
		}
		warnings = append(warnings, fmt.Sprintf("no request by attributes has %s under %s: %s", m.what(), names(m.rules[why]), why))
	}
	return warnings
}

func (m missed) what() string {
	if m.prefix {
		return fmt.Sprintf("a key that begins with %q", m.key)
	}
	return fmt.Sprintf("the key %q", m.key)
}

func names(rules []string) string {
	text, more := "rule ", ""
	if len(rules) > 1 {
		text = "the rules "
	}
	if n := len(rules) - mostNames; n > 0 {
		rules, more = rules[:mostNames], fmt.Sprintf(" and %d more", n)
	}
	for i, name := range rules {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%q", name)
	}
	return text + more
}

func find(named []*weir.Rule, name string) *weir.Rule {
	for _, rule := range named {
		if rule.Name() == name {
			return rule
		}
	}
	return nil
}

// unnamed says why nobody can name a rule.
func unnamed(config *rules.Config, name string) string {
	if config == nil {
		return "no rule in force has that name"
	}
	return config.Unnamed(name)
}

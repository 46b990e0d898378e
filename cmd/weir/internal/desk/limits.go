package desk

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// The bounds of limits in requests.
const (
	maxLimits   = 1000 // different ones, until the next reload
	maxRuleName = 128  // bytes
)

// dynamic holds the limits that requests have named. It forgets them when other rules come into force.
type dynamic struct {
	check func(...*weir.Rule) error // of the engine
	mu    sync.RWMutex
	made  map[namedLimit]*weir.Rule
	kinds map[string]string // of the rules that are not in force
}

// namedLimit is a limit in a request and the rule that state belongs to.
type namedLimit struct{ rule, text string }

// Limited returns the rule of a limit in a request. Its error names the field limit or rule, and is a *weir.RequestError.
func (f *InForce) Limited(rule, limit string) (*weir.Rule, error) {
	of := namedLimit{rule, limit}
	f.dynamic.mu.RLock()
	known := f.dynamic.made[of]
	f.dynamic.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	made, kind, err := f.newLimited(of)
	if err != nil {
		return nil, err
	}
	f.dynamic.mu.Lock()
	defer f.dynamic.mu.Unlock()
	return made, f.add(of, made, kind)
}

// add keeps a rule. The caller holds the lock.
func (f *InForce) add(of namedLimit, rule *weir.Rule, kind string) error {
	d := &f.dynamic
	known := d.kinds[of.rule]
	if inForce := f.named[of.rule]; inForce != nil {
		known = kindOf(inForce)
	}
	switch {
	case known != "" && known != kind:
		return wrongField("limit", fmt.Sprintf("is %s, but rule %s has %s; a rule has one algorithm and period", Quote(of.text), Quote(of.rule), known))
	case d.made[of] == nil && len(d.made) >= maxLimits:
		return wrongField("limit", fmt.Sprintf("is %s, and requests have named %d different limits already; name fewer", Quote(of.text), maxLimits))
	}
	if d.made == nil {
		d.made, d.kinds = map[namedLimit]*weir.Rule{}, map[string]string{}
	}
	d.made[of], d.kinds[of.rule] = rule, kind
	return nil
}

func (f *InForce) newLimited(of namedLimit) (rule *weir.Rule, kind string, err error) {
	if len(of.rule) > maxRuleName || strings.Contains(of.rule, "~") {
		return nil, "", wrongField("rule", fmt.Sprintf("is %s, want up to %d bytes without ~", Quote(of.rule), maxRuleName))
	}
	limits, err := weir.ParseLimits(of.text)
	if err == nil {
		rule, err = weir.NewRule(of.rule, limits...)
	}
	if err == nil {
		err = f.dynamic.check(rule)
	}
	if err != nil {
		return nil, "", wrongField("limit", strings.TrimPrefix(err.Error(), "weir: "))
	}
	if enginekit.Held(rule) != nil {
		return nil, "", wrongField("limit", "is "+Quote(of.text)+", which holds slots; only a rule of the daemon can")
	}
	return rule, kindOf(rule), nil
}

// kindOf describes what state depends on: the algorithms and periods of a rule.
func kindOf(rule *weir.Rule) string {
	var kinds []string
	for _, limit := range rule.Limits() {
		algorithm := strings.TrimPrefix(fmt.Sprintf("%T", limit), "weir.")
		kinds = append(kinds, algorithm+" per "+weir.Describe(limit).Rate.Period.String())
	}
	return strings.Join(kinds, " and ")
}

func wrongField(field, reason string) error { return &weir.RequestError{Field: field, Reason: reason} }

// Quote quotes a text of a caller and truncates it.
func Quote(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

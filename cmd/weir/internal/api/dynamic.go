package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// The bounds of limits in requests.
const (
	maxLimits   = 1000 // different ones, until the next reload
	maxLimit    = 256  // bytes of a text
	maxRuleName = 128  // bytes
)

// dynamic holds the limits that requests have named. It forgets them when other rules come into force.
type dynamic struct {
	mu    sync.RWMutex
	made  map[namedLimit]*weir.Rule
	kinds map[string]string // of the rules that are not in force
}

// namedLimit is a limit in a request and the rule that state belongs to.
type namedLimit struct{ rule, text string }

// limitsOf returns what makes rules of limits in a request, or nil if the caller may name none.
func (a *API) limitsOf(r *http.Request, force *inForce) func(rule, limit string) (*weir.Rule, *problem) {
	if a.dynamic == nil {
		return nil
	}
	return func(rule, limit string) (*weir.Rule, *problem) {
		if !a.dynamic(r, rule) {
			return nil, &problem{status: http.StatusForbidden, field: fieldLimit, detail: "needs the scope dynamic for rule " + quote(rule)}
		}
		return force.limited(a.engine, namedLimit{rule, limit})
	}
}

// limited returns the rule of a limit.
func (f *inForce) limited(engine weir.Engine, of namedLimit) (*weir.Rule, *problem) {
	f.dynamic.mu.RLock()
	rule := f.dynamic.made[of]
	f.dynamic.mu.RUnlock()
	if rule != nil {
		return rule, nil
	}
	rule, kind, p := newLimited(engine, of)
	if p != nil {
		return nil, p
	}
	f.dynamic.mu.Lock()
	defer f.dynamic.mu.Unlock()
	return rule, f.add(of, rule, kind)
}

// add keeps a rule. The caller holds the lock.
func (f *inForce) add(of namedLimit, rule *weir.Rule, kind string) *problem {
	d := &f.dynamic
	known := d.kinds[of.rule]
	if inForce := f.rules[of.rule]; inForce != nil {
		known = kindOf(inForce)
	}
	switch {
	case known != "" && known != kind:
		return wrongField(fieldLimit, fmt.Sprintf("is %s, but rule %s has %s; a rule has one algorithm and period", quote(of.text), quote(of.rule), known))
	case d.made[of] == nil && len(d.made) >= maxLimits:
		return wrongField(fieldLimit, fmt.Sprintf("is %s, and requests have named %d different limits already; name fewer", quote(of.text), maxLimits))
	}
	if d.made == nil {
		d.made, d.kinds = map[namedLimit]*weir.Rule{}, map[string]string{}
	}
	d.made[of], d.kinds[of.rule] = rule, kind
	return nil
}

func newLimited(engine weir.Engine, of namedLimit) (rule *weir.Rule, kind string, p *problem) {
	if len(of.rule) > maxRuleName || strings.Contains(of.rule, "~") {
		return nil, "", wrongField(fieldRule, fmt.Sprintf("is %s, want up to %d bytes without ~", quote(of.rule), maxRuleName))
	}
	limits, err := weir.ParseLimits(of.text)
	if err == nil {
		rule, err = weir.NewRule(of.rule, limits...)
	}
	if err == nil {
		err = engine.Check(rule)
	}
	if err != nil {
		return nil, "", wrongField(fieldLimit, strings.TrimPrefix(err.Error(), "weir: "))
	}
	if enginekit.Held(rule) != nil {
		return nil, "", wrongField(fieldLimit, "is "+quote(of.text)+", which holds slots; only a rule of the daemon can")
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

// wrongField returns the problem of a field whose place the caller adds to the text.
func wrongField(field, reason string) *problem {
	return &problem{status: http.StatusBadRequest, field: field, detail: reason}
}

package decide

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// The bounds of limits in calls.
const (
	maxLimits   = 1000 // of one kind of calls that are kept, and names of rules that they bring
	maxRuleName = 128  // bytes
)

// Limits keep the rules made from limits in calls. Above maxLimits they drop some, which are made again at their next call:
// the state is in the engine. The zero Limits are empty.
type Limits[L comparable, Made any] struct {
	mu   sync.RWMutex
	made map[L]Made
}

// Of returns what is made of a limit.
func (l *Limits[L, Made]) Of(limit L, newMade func(L) (Made, error)) (Made, error) {
	l.mu.RLock()
	known, ok := l.made[limit]
	l.mu.RUnlock()
	if ok {
		return known, nil
	}
	made, err := newMade(limit)
	if err != nil {
		return made, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil {
		l.made = map[L]Made{}
	}
	for old := range l.made {
		if len(l.made) < maxLimits {
			break
		}
		delete(l.made, old)
	}
	l.made[limit] = made
	return made, nil
}

// NewRule makes a rule of the limits in a call, which the engine can hold. Where all rules are shadows, something stands in for it.
func (d *Desk) NewRule(name string, limits ...weir.Limit) (*weir.Rule, error) {
	rule, err := weir.NewRule(name, limits...)
	if err == nil {
		err = d.engine.Check(rule)
	}
	if err == nil && d.options.Shadow {
		rule = rules.StandIn(rule)
	}
	return rule, err
}

// dynamic are the limits that requests have named beside the name of a rule.
type dynamic struct {
	newRule func(name string, limits ...weir.Limit) (*weir.Rule, error)
	limits  Limits[namedLimit, *weir.Rule]
	mu      sync.Mutex
	kinds   map[string]string // of the rules that are not in force
}

// namedLimit is a limit in a request and the rule that state belongs to.
type namedLimit struct{ rule, text string }

// Limited returns the rule of a limit in a request. Its error names the field limit or rule, and is a *weir.RequestError.
func (f *InForce) Limited(rule, limit string) (*weir.Rule, error) {
	return f.dynamic.limits.Of(namedLimit{rule, limit}, f.newLimited)
}

func (f *InForce) newLimited(of namedLimit) (*weir.Rule, error) {
	if len(of.rule) > maxRuleName || strings.Contains(of.rule, "~") {
		return nil, wrongField("rule", fmt.Sprintf("is %s, want up to %d bytes without ~", Quote(of.rule), maxRuleName))
	}
	if f.named[of.rule] == nil && f.known[of.rule] != nil {
		return nil, wrongField("rule", fmt.Sprintf("is %s, and %s", Quote(of.rule), f.Unnamed(of.rule)))
	}
	var rule *weir.Rule
	limits, err := weir.ParseLimits(of.text)
	if err == nil {
		rule, err = f.dynamic.newRule(of.rule, limits...)
	}
	switch {
	case err != nil:
		return nil, wrongField("limit", cli.Plain(err))
	case weir.Kit.Held(rules.Own(rule)) != nil:
		return nil, wrongField("limit", "is "+Quote(of.text)+", which holds slots; only a rule of the daemon can")
	}
	if inForce := f.named[of.rule]; inForce != nil { // whose mode it has
		if rule = rules.Own(rule); rules.InPlace(inForce) != nil {
			rule = rules.StandIn(rule)
		}
	}
	return rule, f.keepKind(of, kindOf(rules.Own(rule)))
}

// keepKind returns an error for another kind of limits than the rule has, and notes that of a new one.
func (f *InForce) keepKind(of namedLimit, kind string) error {
	d := &f.dynamic
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.kinds[of.rule]
	if inForce := f.named[of.rule]; inForce != nil {
		known = kindOf(rules.Own(inForce))
	}
	switch {
	case known == kind:
		return nil
	case known != "":
		return wrongField("limit", fmt.Sprintf("is %s, but rule %s has %s; a rule has one algorithm and period", Quote(of.text), Quote(of.rule), known))
	case len(d.kinds) >= maxLimits:
		return wrongField("rule", fmt.Sprintf("is %s, and requests have named %d other rules with their limits already; name fewer, or name them in rules files", Quote(of.rule), maxLimits))
	case d.kinds == nil:
		d.kinds = map[string]string{}
	}
	d.kinds[of.rule] = kind
	return nil
}

// kindOf describes what state depends on: the algorithms and periods of a rule.
func kindOf(rule *weir.Rule) string {
	var kinds []string
	for _, limit := range rule.Limits() {
		d := weir.Describe(limit)
		period := d.Rate.Period.String()
		if d.Calendar != 0 {
			period = d.Calendar.String()
		}
		kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", limit), "weir.")+" per "+period)
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

// Limited reports whether a limit made a decision, rather than a policy or an exemption, which leave as much as any limit can hold.
func Limited(d weir.Decision) bool { return d.Limit != weir.MaxCount || d.Remaining != weir.MaxCount }

package grpclimit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// rules are the Rules of some options, ready to use.
type rules struct {
	list  []rule
	names map[string]bool // of the rules without plans
	plans plans
}

// rule is a Rule, ready to use.
type rule struct {
	Rule
	fixed *set // nil if there is a Plan
}

// set is a weir.Rule in parts.
type set struct {
	rule     *weir.Rule
	slots    *weir.Rule // its limits whose units are held; nil if there are none
	rates    *weir.Rule // its other limits, whose units are spent; nil if there are none
	capacity int64      // of the slots
}

// part is the part of a rule that a call or a message is charged to.
type part int

const (
	all part = iota
	slotsOnly
	ratesOnly
)

// ruleFor returns the rule of a part; nil if it has no limits.
func (s *set) ruleFor(p part) *weir.Rule {
	switch p {
	case slotsOnly:
		return s.slots
	case ratesOnly:
		return s.rates
	}
	return s.rule
}

// compile checks the options and prepares their rules. Rules without a Key get the usual one.
func (r *rules) compile(o *Options, usual Key) error {
	r.names = map[string]bool{}
	problems := o.check()
	for i := range o.Rules {
		field := fmt.Sprintf("rules[%d]", i)
		made, err := compileRule(o, o.Rules[i], usual)
		if err != nil {
			problems = append(problems, inField(field, err))
			continue
		}
		if made.fixed != nil {
			name := made.fixed.rule.Name()
			if r.names[name] {
				problems = append(problems, optionError(field, "has the name %q of an earlier rule, with which it would share states: give it another", name))
			}
			r.names[name] = true
		}
		r.list = append(r.list, made)
	}
	return errors.Join(problems...)
}

func compileRule(o *Options, given Rule, usual Key) (rule, error) {
	made := rule{Rule: given}
	sources := 0
	for _, given := range []bool{given.Limit != "", given.Rule != nil, given.Plan != nil} {
		if given {
			sources++
		}
	}
	if sources != 1 {
		return made, optionError("", "has not exactly one of Limit, Rule and Plan")
	}
	if given.Missing < MissingShares || given.Missing > MissingUnlimited {
		return made, optionError("missing", "%d is no policy", given.Missing)
	}
	if given.Key == nil {
		made.Key = usual
	}
	if given.Plan != nil {
		return made, nil
	}
	if given.Limit != "" {
		var err error
		if made.Rule.Rule, err = weir.ParseRule(withName(given)); err != nil {
			return made, err
		}
	}
	var err error
	made.fixed, err = newSet(o, made.Rule.Rule)
	return made, err
}

// withName returns the text of a rule, with a name.
func withName(given Rule) string {
	switch {
	case strings.Contains(given.Limit, "="):
		return given.Limit
	case given.Key != nil:
		return "key=" + given.Limit
	}
	return "client=" + given.Limit
}

// newSet checks that a rule can be used, and takes it apart.
func newSet(o *Options, r *weir.Rule) (*set, error) {
	if err := o.Engine.Check(r); err != nil {
		return nil, err
	}
	s := &set{rule: r}
	var held, spent []weir.Limit
	for _, limit := range r.Limits() {
		if err := o.checkAlone(limit); err != nil {
			return nil, err
		}
		if slots, ok := limit.(weir.Concurrency); ok {
			held, s.capacity = append(held, limit), slots.Slots
		} else {
			spent = append(spent, limit)
		}
	}
	s.slots, s.rates = partOf(r, held), partOf(r, spent)
	return s, nil
}

// partOf returns a rule of some of the limits of r, which shares their states with r.
func partOf(r *weir.Rule, some []weir.Limit) *weir.Rule {
	switch len(some) {
	case 0:
		return nil
	case len(r.Limits()):
		return r
	}
	part, _ := weir.NewRule(r.Name(), some...) // the limits of r are valid
	return part
}

// checkAlone refuses a limit that decides alone beside other rules, and a bucket that delays for longer than a call may
// be held.
func (o *Options) checkAlone(limit weir.Limit) error {
	log, counts := limit.(weir.SlidingLog)
	bucket, delays := limit.(weir.LeakyBucket)
	if (delays || counts && log.CountDenied) && len(o.Rules) > 1 {
		return optionError("limit", "%s cannot be decided together with other rules: give it interceptors of its own", limit)
	}
	if !delays || bucket.NoDelay >= bucket.Queue {
		return nil
	}
	longest := time.Duration(float64(bucket.Queue) / float64(bucket.Rate.Count) * float64(bucket.Rate.Period))
	if longest > o.MaxWait || longest < 0 {
		return optionError("limit", "%s holds calls for longer than MaxWait of %v: shorten the queue or raise MaxWait", limit, o.MaxWait)
	}
	return nil
}

// inField says which of the options an option error is about.
func inField(field string, err error) error {
	e, ok := err.(*weir.OptionError)
	if !ok {
		return err
	}
	if e.Field != "" {
		field += "." + e.Field
	}
	return optionError(field, "%s", e.Reason)
}

// plans are the rules that plans have named so far.
type plans struct {
	known sync.Map // *weir.Rule to *set
	mu    sync.Mutex
	count int
}

// maxPlans bounds the number of remembered rules.
const maxPlans = 4096

// setOf returns the set of a rule, or of the plan of a call.
func (r *rules) setOf(o *Options, from *rule, ctx context.Context, method string) (*set, error) {
	if from.fixed != nil {
		return from.fixed, nil
	}
	named := from.Plan(ctx, method)
	if named == nil {
		return nil, optionError("plan", "is nil: name a rule, of weir.Unlimited if there is no limit")
	}
	if known, ok := r.plans.known.Load(named); ok {
		return known.(*set), nil
	}
	if r.names[named.Name()] {
		return nil, optionError("plan", "has the name %q of another rule, with which it would share states: give it another", named.Name())
	}
	made, err := newSet(o, named)
	if err != nil {
		return nil, err
	}
	r.plans.mu.Lock()
	defer r.plans.mu.Unlock()
	if r.plans.count < maxPlans {
		if _, known := r.plans.known.LoadOrStore(named, made); !known {
			r.plans.count++
		}
	}
	return made, nil
}

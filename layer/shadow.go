package layer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// ShadowOptions configure a Shadow. The zero value enforces nothing.
type ShadowOptions struct {
	// Candidates are rules to try beside the enforced ones, by the names of the enforced ones. Calls of other rules pass.
	// Without any candidate nothing is enforced: every take is admitted, and its limits are decided aside.
	Candidates map[string]*weir.Rule
	// Engine keeps the states of the shadows, under the names of the rules with the suffix ~shadow. Default: the engine
	// below, so that all processes share them.
	Engine weir.Engine
	// Decided is called with each decision aside, on a goroutine of its own, one at a time.
	Decided func(ShadowDecision)
}

const (
	shadowSuffix = "~shadow"
	shadowPause  = 5 * time.Millisecond // for more decisions, so that they share a call of the engine
	mostShadows  = 4096                 // rules
)

// ShadowDecision is a decision aside, and the enforced one.
type ShadowDecision struct {
	Rule, Key string        // of the enforced request: the one that refused, if one did
	Enforced  weir.Decision // by the engine; admitted if nothing is enforced
	Shadow    weir.Decision // its Rule has the suffix
}

// ShadowCounts count the decisions aside of one rule.
type ShadowCounts struct {
	Rule      string
	Decisions uint64
	Refusals  uint64 // by the shadow
	Stricter  uint64 // enforced: admitted, shadow: refused
	Looser    uint64 // enforced: refused, shadow: admitted
}

// ShadowStats are the counts of a Shadow.
type ShadowStats struct {
	Rules   []ShadowCounts // by name
	Errors  uint64         // decisions aside that failed
	Dropped uint64         // calls that were not decided aside, because too many waited
}

// Shadowed is an engine with a Shadow. It is safe for concurrent use.
type Shadowed struct {
	engine
	below   weir.Engine
	options ShadowOptions

	aside *Aside

	mu     sync.Mutex
	rules  map[*weir.Rule]*weir.Rule
	stats  ShadowStats
	counts map[string]*ShadowCounts
}

// Shadow tries limits without enforcing them. Without candidates it is a dry run of all rules. With candidates it decides
// each beside the rule that is enforced, and counts the differences.
//
// The shadows are decided later, in order, on a goroutine of their own and in states of their own. So they change no
// answer and no error, and an engine on a network hides what they cost.
func Shadow(e weir.Engine, options ShadowOptions) (*Shadowed, error) {
	problems := []error{checkOver(e, shadows)}
	for name, r := range options.Candidates {
		if r == nil {
			problems = append(problems, optionError(shadows, "candidates", "have no rule for %q", name))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	options.Candidates = maps.Clone(options.Candidates)
	s := &Shadowed{below: e, options: options, rules: map[*weir.Rule]*weir.Rule{}, counts: map[string]*ShadowCounts{}}
	s.aside = NewAside(cmp.Or(options.Engine, e), shadowPause, s.decided)
	s.engine = weir.Wrap(e, s.around)
	return s, nil
}

// Unwrap returns the engine below, for weir.Find.
func (s *Shadowed) Unwrap() weir.Engine { return s.below }

func (s *Shadowed) rank() rank { return shadows }

func (s *Shadowed) around(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	if call.Op == weir.OpReserve {
		return weir.Kit.Reserve(ctx, s, call) // so that takes and settlements pass here
	}
	if len(s.options.Candidates) == 0 {
		return s.dryRun(call)
	}
	a, err := next(ctx, call)
	for i := range enginekit.Decisions(&call) {
		if c, d, _, err := enginekit.DecisionAt(&call, &a, err, i); err == nil && !keepsWaiting(c, d, nil) {
			s.shadow(*c, weir.Answer{Decision: *d, Times: a.Times})
		}
	}
	return a, err
}

// dryRun admits calls that an engine could decide.
func (s *Shadowed) dryRun(call weir.Call) (weir.Answer, error) {
	if call.Op == weir.OpEach {
		return weir.Answer{}, enginekit.DecideEach(call.Each, s.dryRun)
	}
	call.Requests = alone(call.Requests)
	if err := checked(&call); err != nil {
		return weir.Answer{}, err
	}
	a := weir.Answer{Decision: admitted(call), Times: call.Most}
	if call.Op == weir.OpReserveAhead {
		a.Reservation = &weir.Reservation{Decision: a.Decision}
	}
	s.shadow(call, a)
	return a, nil
}

// shadow has the shadows of a call that was answered decided aside.
func (s *Shadowed) shadow(call weir.Call, a weir.Answer) {
	switch call.Op {
	case weir.OpPeek, weir.OpReserveAhead, weir.OpEach:
		return
	case weir.OpTakeUpTo:
		call.Op = weir.OpTake
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(call.Requests, s.concerns) {
		return
	}
	requests := make([]weir.Request, 0, len(call.Requests))
	for _, q := range call.Requests {
		if q.Rule, q.Otherwise = s.shadowOf(q.Rule), nil; q.Rule != nil {
			q.Cost = scaled(q.Cost, max(a.Times, 1), 1)
			requests = append(requests, q)
		}
	}
	if len(requests) == 0 {
		return
	}
	if !s.aside.Add(weir.Call{Op: call.Op, Requests: requests, Lease: call.Lease, Taken: call.Taken}, a.Decision) {
		s.stats.Dropped++
	}
}

// concerns reports whether a request has a shadow that can differ.
func (s *Shadowed) concerns(q weir.Request) bool {
	return len(s.options.Candidates) == 0 || s.options.Candidates[q.Rule.Name()] != nil
}

// shadowOf returns the candidate of a rule, or the same limits, under the name of the shadow. For a rule that has only slots,
// or none, such as the parts of a reservation, it returns the same part.
func (s *Shadowed) shadowOf(r *weir.Rule) *weir.Rule {
	if known, ok := s.rules[r]; ok {
		return known
	}
	from := r
	if candidate := s.options.Candidates[r.Name()]; candidate != nil {
		switch f := factsOf(r); {
		case f.units == nil:
			from = factsOf(candidate).slots
		case f.slots == nil && factsOf(candidate).slots != nil:
			from = factsOf(candidate).units
		default:
			from = candidate
		}
	}
	var made *weir.Rule
	if from != nil {
		made, _ = weir.NewRule(r.Name()+shadowSuffix, from.Limits()...) // nil if the name is too long
	}
	if len(s.rules) < mostShadows {
		s.rules[r] = made
	}
	return made
}

// decided counts a decision aside.
func (s *Shadowed) decided(call weir.Call, enforced weir.Decision, r weir.Result) {
	d := r.Decision
	switch {
	case r.Err != nil:
		s.mu.Lock()
		s.stats.Errors++
		s.mu.Unlock()
		return
	case call.Op != weir.OpTake:
		return
	}
	named := d.Rule
	if d.Allowed && !enforced.Allowed {
		named = enforced.Rule + shadowSuffix
	}
	name := named[:max(len(named)-len(shadowSuffix), 0)]
	s.mu.Lock()
	c := s.counts[name]
	if c == nil && len(s.counts) < mostShadows {
		c = &ShadowCounts{Rule: name}
		s.counts[name] = c
	}
	if c != nil {
		c.Decisions++
		c.count(enforced.Allowed, d.Allowed)
	}
	s.mu.Unlock()
	if s.options.Decided != nil {
		s.options.Decided(ShadowDecision{Rule: name, Key: d.Key, Enforced: enforced, Shadow: d})
	}
}

func (c *ShadowCounts) count(enforced, shadow bool) {
	switch {
	case enforced && !shadow:
		c.Stricter++
		c.Refusals++
	case !enforced && shadow:
		c.Looser++
	case !shadow:
		c.Refusals++
	}
}

// Stats returns the current counts.
func (s *Shadowed) Stats() ShadowStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	for _, name := range slices.Sorted(maps.Keys(s.counts)) {
		stats.Rules = append(stats.Rules, *s.counts[name])
	}
	return stats
}

package rules

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// Otherwise is the match of a rule that is only asked where others refuse.
const Otherwise = "otherwise"

// Field is a field of a rule with its value as text.
type Field struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Describe returns the fields of a rule that are not at their defaults, in one spelling whatever that of the file.
func (c *Config) Describe(r *Rule) (fields []Field) {
	add := func(name, text string, given bool) {
		if given {
			fields = append(fields, Field{name, text})
		}
	}
	add("full name", r.Full, r.Full != "")
	add("replaces", r.Replaces, r.Replaces != "")
	add("match", c.matchText(r), !r.named())
	for _, flag := range []struct {
		name string
		on   bool
	}{{"deny", r.Deny}, {"unlimited", r.Unlimited}, {"shadow", r.Shadow}} {
		add(flag.name, "true", flag.on)
	}
	add("limit", LimitText(r.Limit), r.Limit != nil && !r.Deny)
	add("key", strings.Join(c.attributeNames(r.key), ", "), len(r.key) > 0)
	add("hashed", "true", r.hashed)
	add("missing", string(r.missing), r.missing != MissingShare)
	add("budget", r.Budget, r.Budget != "")
	add("otherwise", r.Otherwise, r.Otherwise != "")
	add("plans", "by "+strings.Join(c.attributeNames([]int{r.planBy}), "")+": "+limitTexts(r.plans), len(r.plans) > 0)
	add("keys", limitTexts(r.keys), len(r.keys) > 0)
	add("cost", c.costText(r), r.cost != 1 || r.costFrom >= 0)
	add("charge", r.chargeText(), r.After)
	add("estimate", estimateText(r.Estimate), r.Estimate != nil)
	add("on_failure", r.OnFailure.String(), r.HasPolicy)
	add("candidate", LimitText(r.Candidate), r.Candidate != nil)
	add("message", r.Message, r.Message != "")
	return fields
}

// MatchedBy returns the attributes that the rule matches by, more than once if it has several conditions of one.
func (c *Config) MatchedBy(r *Rule) []string {
	var slots []int
	for _, condition := range slices.Concat(r.match, r.except) {
		slots = append(slots, condition.slot)
	}
	return c.attributeNames(slots)
}

func (c *Config) attributeNames(slots []int) (names []string) {
	for _, slot := range slots {
		if slot >= 0 {
			names = append(names, c.mentions[slot].name)
		}
	}
	return names
}

func (c *Config) matchText(r *Rule) string {
	text := c.conditionsText(r.match)
	switch {
	case r.any:
		text = "any"
	case r.Pool:
		text = Otherwise
	}
	if len(r.except) > 0 {
		text += "; except " + c.conditionsText(r.except)
	}
	return text
}

func (c *Config) conditionsText(conditions []condition) string {
	var texts []string
	for _, condition := range conditions {
		var sources []string
		for _, p := range condition.patterns {
			sources = append(sources, p.source)
		}
		slices.Sort(sources)
		texts = append(texts, c.mentions[condition.slot].name+": "+strings.Join(sources, ", "))
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

func (c *Config) costText(r *Rule) string {
	if r.costFrom < 0 {
		return strconv.FormatInt(r.cost, 10)
	}
	return "from " + c.mentions[r.costFrom].name + ", default " + strconv.FormatInt(r.cost, 10)
}

// Text returns what the rule does to a request that matches: its limit, and in words the number of other limits.
func (r *Rule) Text() string {
	switch others := len(r.plans) + len(r.keys); {
	case r.Deny:
		return "deny"
	case r.Unlimited:
		return "no limit: exempt"
	case others > 0:
		return LimitText(r.Limit) + ", or " + strconv.Itoa(others) + " of plans and keys"
	}
	return LimitText(r.Limit)
}

// LimitText returns the limits of a rule as a file writes them, or "" without a rule.
func LimitText(r *weir.Rule) string {
	if r == nil {
		return ""
	}
	return strings.TrimPrefix(r.String(), r.Name()+"=")
}

func limitTexts(limits map[string]*weir.Rule) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		texts = append(texts, name+": "+LimitText(limits[name]))
	}
	return strings.Join(texts, "; ")
}

// The kinds of a Change.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Change is a rule that differs between two configurations.
type Change struct {
	Rule  string  `json:"rule"`
	Kind  string  `json:"kind"`
	Match string  `json:"match,omitempty"` // the requests that it concerns
	Old   []Field `json:"old,omitempty"`   // the fields that differ
	New   []Field `json:"new,omitempty"`
	Keeps bool    `json:"keeps,omitempty"` // the limit differs, and keys keep what they have used
	Fresh string  `json:"fresh,omitempty"` // why keys start afresh
}

// Diff returns the changes from one configuration to another, in the order of the new one and then of the old one.
func Diff(from, to *Config) (changes []Change) {
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }})
	for _, now := range to.Rules {
		before := from.Rule(now.Name)
		if before == nil {
			changes = append(changes, Change{Rule: now.Name, Kind: Added, Match: to.matchText(now), New: to.Describe(now)})
			continue
		}
		older, newer := from.Describe(before), to.Describe(now)
		gone := without(older, newer)
		come := without(newer, older)
		if len(gone)+len(come) > 0 {
			fresh := startsAfresh(engine, from, to, before, now)
			keeps := fresh == "" && before.Limit != nil && now.Limit != nil && LimitText(before.Limit) != LimitText(now.Limit)
			changes = append(changes, Change{now.Name, Changed, to.matchText(now), gone, come, keeps, fresh})
		}
	}
	for _, before := range from.Rules {
		if to.Rule(before.Name) == nil {
			changes = append(changes, Change{Rule: before.Name, Kind: Removed, Match: from.matchText(before), Old: from.Describe(before)})
		}
	}
	return changes
}

func without(fields, others []Field) (rest []Field) {
	for _, f := range fields {
		if !slices.Contains(others, f) {
			rest = append(rest, f)
		}
	}
	return rest
}

// startsAfresh says why keys of a changed rule lose what they have used, or returns "".
func startsAfresh(engine weir.Engine, from, to *Config, before, now *Rule) string {
	switch {
	case before.Limit == nil || now.Limit == nil:
		return ""
	case !slices.Equal(from.attributeNames(before.key), to.attributeNames(now.key)):
		return "the key is another one"
	case before.hashed != now.hashed:
		return "the engine gets the key in another form"
	case before.Budget != now.Budget:
		return "it counts in another budget"
	}
	for i, limit := range now.Limit.Limits() {
		if alone, err := weir.NewRule(now.Limit.Name(), limit); err == nil && !carries(engine, strconv.Itoa(i), before.Limit, alone) {
			return limit.String() + " is a new limit: another algorithm or window"
		}
	}
	return ""
}

// carries reports whether a limit goes on from the states of a rule. It tries with a fresh key: an engine alone knows.
func carries(engine weir.Engine, key string, before, alone *weir.Rule) bool {
	ctx := context.Background()
	fresh, err := engine.Peek(ctx, alone.For(key, 1))
	if err != nil || !fresh.Allowed || fresh.Limit == weir.MaxCount {
		return true // it has no state
	}
	_, _ = engine.Take(ctx, before.For(key, 1))
	used, err := engine.Peek(ctx, alone.For(key, 1))
	return err == nil && used != fresh
}

// Step is how a rule takes part in the decision on a request.
type Step struct {
	Rule       string  `json:"rule"`
	File       string  `json:"file"`
	Line       int     `json:"line"`
	Fields     []Field `json:"fields"`
	Key        *string `json:"key,omitempty"`
	Limit      string  `json:"limit,omitempty"` // that of the key
	Cost       int64   `json:"cost,omitempty"`
	Remaining  *int64  `json:"remaining,omitempty"`   // of the key, if states are known
	RetryAfter string  `json:"retry_after,omitempty"` // in text, rounded up
	Cause      string  `json:"cause,omitempty"`       // "ban", if one refuses
	Otherwise  []Step  `json:"otherwise,omitempty"`   // the pools that are asked where the rule refuses, in order
}

// Explanation says how a request is decided.
type Explanation struct {
	Answer   string   `json:"answer"` // in a sentence
	Steps    []Step   `json:"rules"`
	Notes    []string `json:"notes,omitempty"`    // of the request
	Warnings Problems `json:"warnings,omitempty"` // of the files, if the caller has looked for any
}

// overrider is an engine that gives keys other limits than those of their rules.
type overrider interface {
	Requests(requests []weir.Request) []weir.Request
}

// Explain says how a request is decided. The engine, if any, holds the states.
func (c *Config) Explain(ctx context.Context, from Source, cost int64, engine weir.Engine) (Explanation, error) {
	var o Outcome
	c.Decide(from, cost, &o)
	e := Explanation{Answer: o.sentence(), Notes: c.unread(from)}
	requests := slices.Concat(o.Requests, o.Beside)
	for _, r := range c.Matches(from) {
		step := c.stepOf(r)
		at := slices.IndexFunc(requests, func(q weir.Request) bool { return q.Rule.Name() == r.stateName() })
		if at >= 0 {
			if err := c.explain(ctx, &step, requests[at], engine); err != nil {
				return e, err
			}
		}
		e.Steps = append(e.Steps, step)
	}
	return e, nil
}

func (c *Config) stepOf(r *Rule) Step {
	return Step{Rule: r.Name, File: r.File, Line: r.Line, Fields: c.Describe(r)}
}

// explain adds to a step the request of its rule, by the override in force, and those that are asked where it is refused.
func (c *Config) explain(ctx context.Context, step *Step, q weir.Request, engine weir.Engine) error {
	next := q.Otherwise
	q.Otherwise = nil
	if over, ok := weir.Find[overrider](engine); ok {
		q = over.Requests([]weir.Request{q})[0]
	}
	step.Key, step.Limit, step.Cost = &q.Key, LimitText(q.Rule), q.Cost
	if err := step.Peek(ctx, q, engine); err != nil || next == nil || blocks(q.Rule) {
		return err
	}
	pool := c.stepOf(c.Rule(next.Rule.Name()))
	if err := c.explain(ctx, &pool, *next, engine); err != nil {
		return err
	}
	step.Otherwise = append([]Step{pool}, pool.Otherwise...)
	step.Otherwise[0].Otherwise = nil
	return nil
}

// Peek adds how full the key is, and when it is free.
func (s *Step) Peek(ctx context.Context, q weir.Request, engine weir.Engine) error {
	if engine == nil {
		return nil
	}
	d, err := engine.Peek(ctx, q)
	if err != nil {
		return err
	}
	s.Remaining = &d.Remaining
	switch {
	case d.RetryAfter == weir.Never:
		s.RetryAfter = "never"
	case !d.Allowed:
		s.RetryAfter = plain.Wait(d.RetryAfter)
	}
	if d.Cause == weir.ByBan {
		s.Cause = d.Cause.String()
	}
	return nil
}

// behind says which rules are asked where a request is refused.
func behind(q *weir.Request) (text string) {
	for next := q.Otherwise; next != nil; next = next.Otherwise {
		before := ", then "
		if text == "" {
			before = "; if it refuses, that of "
		}
		text += before + strconv.Quote(next.Rule.Name())
	}
	return text
}

// sentence says what is decided, and why.
func (o *Outcome) sentence() string {
	switch {
	case o.Verdict == Ask && len(o.Requests) == 1:
		return "the limit of rule " + strconv.Quote(o.Rules[0].Name) + " decides" + behind(&o.Requests[0])
	case o.Verdict == Ask:
		return "the limits of " + strconv.Itoa(len(o.Requests)) + " rules decide together"
	case o.Reason == ByDefault && o.Verdict == Allow:
		return "admitted: no rule decides, and the default is allow"
	case o.Reason == ByDefault:
		return "refused: no rule decides, and the default is deny"
	case o.Reason == ByPath:
		return "refused: servers may read different paths in its path"
	case o.Verdict == Allow:
		return "admitted: rule " + strconv.Quote(o.Rule.Name) + " exempts it"
	case o.Reason == ByMissing:
		return "refused: an attribute of the key of rule " + strconv.Quote(o.Rule.Name) + " is missing"
	case o.Reason == ByCost:
		return "refused: its cost under rule " + strconv.Quote(o.Rule.Name) + " is no whole number"
	case o.Reason == ByTooMany:
		return "refused: more than " + strconv.Itoa(MaxMatches) + " rules with limits match"
	}
	return "refused: rule " + strconv.Quote(o.Rule.Name) + " denies it"
}

// Package rules reads the rules of files, and says which of them decide a request.
//
// [Parse] makes a [Config] of the bytes of files, or returns all their [Problems]. A Config is immutable. It knows no terminal, file
// or watcher: rulefiles reads files and follows their changes, and lint says what rules say without effect.
// docs/reference/rules.md describes the format.
//
// One request goes this way:
//
//  1. A front offers what it knows of the request as a [Source] of attributes.
//  2. [Config.Decide] reads each attribute that a rule mentions once, in its normal form (normal.go).
//  3. An index finds the few rules that may match, and the patterns of each confirm it (match.go).
//  4. The rules that match refuse the request, exempt it, or become requests of an engine, each with its key, limit and
//     cost (decide.go). The front makes one call of them, all or nothing.
//
// Reading goes the other way round: node.go reads YAML, fields.go lists every field with its meaning, and compile.go makes a
// Rule of them.
package rules

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/layer"
)

// File is the content of a file.
type File struct {
	Name    string
	Content []byte
}

// Options configure Parse.
type Options struct {
	// Check returns an error for a rule that the engine cannot hold. Default: every engine holds the rules.
	Check func(rules ...*weir.Rule) error
}

// The bounds of rules.
const (
	maxRules      = 20_000
	maxAlone      = 256
	maxPatterns   = 1_000
	maxAttributes = 64
	maxPlans      = 10_000
	maxMessage    = 512
	maxName       = 128
	maxLinks      = 4 // rules that stand in for another, one after the other
)

// Config is the content of all files. It is immutable and safe for concurrent use.
type Config struct {
	Listen   map[string]string // addresses and files of the ports, by the flag of weir serve
	Engine   map[string]string // the engine that daemons share, their number and the deadline, by the flag: engine, peers, deadline
	Deny     bool              // refuse requests that no rule matches
	Rules    []*Rule
	Foreign  any // what the parser of another format keeps; see New
	names    map[string]*Rule
	most     map[*weir.Rule]int64 // the bounds of told costs that rules name
	declared []string             // the names of further attributes
	mentions []attribute          // the attributes that rules mention, by slot
	admits   bool                 // nothing is refused, unless a rule is enforced: see Modes
	index    index
}

// ByAttributes reports whether attributes find rules. They find none that the parser of another format has read.
func (c *Config) ByAttributes() bool { return c.Foreign == nil }

// Rule returns the rule of a name, or nil.
func (c *Config) Rule(name string) *Rule { return c.names[name] }

// Missing says what happens to a request without an attribute of the key.
type Missing string

// The ways of a request without an attribute of the key.
const (
	MissingShare  Missing = "share"
	MissingRefuse Missing = "refuse"
	MissingSkip   Missing = "skip"
)

// Rule is one rule of a file. Its fields do not change.
type Rule struct {
	Name      string
	Full      string // the name in engines of a rule of a control plane; "" for Name
	Replaces  string // the name of the pushed limit that it stands in place of, or ""
	File      string
	Line      int
	Message   string                 // for people whose request the rule refuses
	OnFailure layer.Policy           // while the engine fails
	HasPolicy bool                   // the rule names it, so that no policy for other rules stands in for deny
	Deny      bool                   // refuses every request that matches
	Unlimited bool                   // exempts every request that matches from other limits
	Shadow    bool                   // decides and counts, and never refuses
	Limit     *weir.Rule             // nil for Deny and Unlimited, except in a shadow
	Candidate *weir.Rule             // nil without one
	After     bool                   // costs are reported after the work
	Most      int64                  // the most units that one such cost counts; 0 for a bound by the capacity
	Estimate  *front.EstimateOptions // of reservations; nil without one
	Budget    string                 // the rule whose states it counts in, or "" for its own
	Otherwise string                 // the pool that is asked in place of the rule where that refuses, or ""
	Pool      bool                   // only rules with its name in Otherwise reach it: no attributes and no callers

	order    int  // among all rules
	foreign  bool // another format has it
	stays    bool // it would be enforced, so a request that it matches is not one of no rule
	any      bool
	match    []condition
	except   []condition // one of which is enough
	key      []int       // slots
	hashed   bool        // the engine gets the hash of the key
	missing  Missing
	planBy   int // a slot
	plans    map[string]*weir.Rule
	keys     map[string]*weir.Rule
	cost     int64
	costFrom int                 // a slot, or -1
	ownCost  bool                // of a pool: it does not have the cost of the rule that it stands in for
	chain    []*Rule             // the pools that are asked in its place, in order
	untold   [2]bool             // see markUntold
	blocks   map[*weir.Rule]bool // the limits that refuse all, so no pool is asked in place of them
	places   []placed
}

// named reports whether only callers that name the rule ask it.
func (r *Rule) named() bool { return !r.any && !r.Pool && len(r.match) == 0 }

// matchable reports whether attributes find the rule.
func (r *Rule) matchable() bool { return r.any || len(r.match) > 0 }

// limits returns the rules of the engine that decide keys of the rule.
func (r *Rule) limits() (all []*weir.Rule) {
	if r.Limit != nil {
		all = append(all, r.Limit)
	}
	for _, limits := range []map[string]*weir.Rule{r.plans, r.keys} {
		for _, limit := range limits {
			all = append(all, limit)
		}
	}
	return all
}

// Limits returns all rules that an engine decides by, with those of plans, keys, shadows and candidates.
func (c *Config) Limits() (all []*weir.Rule) {
	for _, r := range c.Rules {
		all = append(all, r.limits()...)
		if r.Candidate != nil {
			all = append(all, r.Candidate)
		}
	}
	return all
}

// Policies returns the answers while the engine fails, of the rules that say so.
func (c *Config) Policies() map[string]layer.Policy {
	policies := map[string]layer.Policy{}
	for _, r := range c.Rules {
		if r.HasPolicy {
			policies[r.Name] = r.OnFailure
		}
	}
	return policies
}

// ByName returns the names of the rules that only callers ask who name them, because the rules have no match.
func (c *Config) ByName() (names []string) {
	for _, r := range c.Rules {
		if r.named() {
			names = append(names, r.Name)
		}
	}
	return names
}

// Candidates returns the candidates by the limits in force.
func (c *Config) Candidates() map[*weir.Rule]*weir.Rule {
	candidates := map[*weir.Rule]*weir.Rule{}
	for _, r := range c.Rules {
		if r.Candidate != nil {
			candidates[r.Limit] = r.Candidate
		}
	}
	return candidates
}

// Named returns the limits in force that callers may name, in the order of the files. A rule that counts in the budget of
// another one has the name of that one, and nobody can name a pool. In place of a shadow stands a rule that admits everything.
func (c *Config) Named() (named []*weir.Rule) {
	for _, r := range c.Rules {
		switch {
		case r.Deny || r.Unlimited || r.Budget != "" || r.Pool:
		case r.Shadow:
			named = append(named, StandIn(r.Limit))
		default:
			named = append(named, r.Limit)
		}
	}
	return named
}

// MostTold returns the units that one cost told after the work counts under a limit, or 0 if its rule names no bound. A limit
// of before a reload has the bound of the rule that has its name now.
func (c *Config) MostTold(limit *weir.Rule) int64 {
	if most, known := c.most[limit]; known {
		return most
	}
	if r := c.Rule(limit.Name()); r != nil {
		return r.Most
	}
	return 0
}

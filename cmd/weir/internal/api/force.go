package api

import (
	"weak"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// inForce are the rules that requests are decided by, with what is prepared for them. It does not change: Use replaces
// it, and a request that has begun keeps the one that it began with.
type inForce struct {
	named   []*weir.Rule
	rules   map[string]*weir.Rule
	config  *rules.Config // finds rules by attributes; nil without rules in files
	leases  leases
	quotas  quotas
	checks  combinations
	dynamic dynamic
	retired map[weak.Pointer[weir.Rule]]bool // rules of the past with names, by which callers may still wait
}

// Use decides later requests by these rules. They are named ones, and those that a configuration finds by attributes, if
// it is not nil. All differ in name, have a lease on every slot, and were accepted by Engine.Check.
func (a *API) Use(named []*weir.Rule, config *rules.Config) {
	f := &inForce{named: named, rules: make(map[string]*weir.Rule, len(named)), config: config, leases: leases{}, quotas: quotas{}}
	all := named
	if config != nil {
		all = append(all[:len(all):len(all)], config.Limits()...)
	}
	for _, r := range all {
		f.leases.add(r)
		f.quotas.add(r)
	}
	for _, r := range named {
		f.rules[r.Name()] = r
	}
	a.waits.waiting.use(named)
	if before := a.force.Load(); before != nil {
		f.retire(before)
	}
	a.force.Store(f)
	a.Changed()
}

// retire notes the rules of the past that callers may still wait by.
func (f *inForce) retire(before *inForce) {
	f.retired = map[weak.Pointer[weir.Rule]]bool{}
	for rule := range before.retired {
		if rule.Value() != nil {
			f.retired[rule] = true
		}
	}
	for _, r := range before.named {
		f.retired[weak.Make(r)] = true
	}
}

// resolve returns a request by the rule and the override that are in force. A rule that is gone stays as it was.
func (a *API) resolve(r weir.Request) weir.Request {
	f := a.force.Load()
	if r.Rule == nil {
		return r
	}
	if now := f.rules[r.Rule.Name()]; now != nil && f.retired[weak.Make(r.Rule)] {
		r.Rule = now
	}
	if over, ok := weir.Find[overrider](a.engine); ok {
		r = over.Requests([]weir.Request{r})[0]
	}
	return r
}

// Changed has waiting callers look at the limits in force, after overrides have changed.
func (a *API) Changed() { a.waits.queue.Changed() }

// InForce returns the rules that later requests are decided by: those with names, and those of files or nil.
func (a *API) InForce() (named []*weir.Rule, config *rules.Config) {
	f := a.force.Load()
	return f.named, f.config
}

// byAttributes reports whether rules decide requests by their attributes.
func (f *inForce) byAttributes() bool { return f.config != nil && f.config.ByAttributes() }

// appendMessage adds the text of the rule that refuses to an answer.
func (f *inForce) appendMessage(answer []byte, d weir.Decision) []byte {
	text := ""
	if !d.Allowed {
		text = f.message(d.Rule)
	}
	if text == "" {
		return answer
	}
	answer = append(answer[:len(answer)-len("}\n")], `,"message":`...)
	return append(appendText(answer, text), "}\n"...)
}

// message returns the text of a rule in a file for people whose request it refuses, or "".
func (f *inForce) message(rule string) string {
	if f.config == nil || f.config.Rule(rule) == nil {
		return ""
	}
	return f.config.Rule(rule).Message
}

// Rules returns the number of rules in force.
func (a *API) Rules() int {
	f := a.force.Load()
	if f.config != nil {
		return len(f.config.Rules)
	}
	return len(f.rules)
}

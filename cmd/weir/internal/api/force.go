package api

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// inForce are the rules that requests are decided by, with what is prepared for them. It does not change: Use replaces
// it, and a request that has begun keeps the one that it began with.
type inForce struct {
	rules  map[string]*weir.Rule
	config *rules.Config // finds rules by attributes; nil without rules in files
	leases leases
	checks map[string]checkedRule
	probed *weir.Rule
}

// Use decides later requests by these rules. They are named ones, and those that a configuration finds by attributes, if
// it is not nil. All differ in name, have a lease on every slot, and were accepted by Engine.Check. There is at least one.
func (a *API) Use(named []*weir.Rule, config *rules.Config) {
	f := &inForce{rules: make(map[string]*weir.Rule, len(named)), config: config, leases: leases{}, checks: make(map[string]checkedRule, len(named))}
	all := named
	if config != nil {
		all = append(all[:len(all):len(all)], config.Limits()...)
	}
	for _, r := range all {
		f.leases.add(r)
	}
	for _, r := range named {
		f.rules[r.Name()] = r
		f.probed = r
		f.checks[r.Name()] = a.newChecked(r)
	}
	a.waits.waiting.use(named)
	a.force.Store(f)
}

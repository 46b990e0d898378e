package door

import (
	"fmt"
	"strings"
)

// Scope is a set of what callers may do.
type Scope uint8

// The scopes.
const (
	Take    Scope = 1 << iota // ask, take, wait, reserve and settle
	Dynamic                   // name a limit in the request
	Refund                    // give back what the caller does not hold
	Admin                     // see keys, reset and change them
	Metrics                   // read metrics
)

// The scopes of callers that need no identity.
const (
	Local = Take | Dynamic | Refund | Metrics // on loopback
	All   = Local | Admin                     // on the socket of the daemon's own user
)

var scopeNames = []string{"take", "dynamic", "refund", "admin", "metrics"}

// String returns the names of the scopes.
func (s Scope) String() string {
	var names []string
	for i, name := range scopeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// parseScope reads the name of one scope.
func parseScope(text string) (Scope, error) {
	for i, name := range scopeNames {
		if name == text {
			return 1 << i, nil
		}
	}
	return 0, fmt.Errorf("%q is no scope, want one of %s", text, strings.Join(scopeNames, ", "))
}

// Identity is who asks. It does not change.
type Identity struct {
	Name string // for logs
	any  Scope  // for every rule
	some Scope  // for some rule at least
	only map[string]Scope
}

// nobody may do nothing.
var nobody = &Identity{}

// Anyone returns the identity of callers that may do this without showing who they are. The name is for logs.
func Anyone(name string, may Scope) *Identity { return &Identity{Name: name, any: may, some: may} }

// May reports whether the caller has a scope for a rule. The rule "" stands for what belongs to no rule: only callers
// that have the scope for every rule may do that.
func (i *Identity) May(scope Scope, rule string) bool {
	return i.any&scope != 0 || i.only[rule]&scope != 0
}

// Some reports whether the caller has a scope for some rule. A handler that learns the rule from the request asks this
// before it reads the request.
func (i *Identity) Some(scope Scope) bool { return i.some&scope != 0 }

// grant adds a scope, for every rule or for one.
func (i *Identity) grant(scope Scope, rule string) {
	i.some |= scope
	if rule == "" {
		i.any |= scope
		return
	}
	if i.only == nil {
		i.only = map[string]Scope{}
	}
	i.only[rule] |= scope
}

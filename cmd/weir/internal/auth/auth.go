// Package auth finds the caller of a request, and its rights.
//
// An [Identity] has scopes, each for every rule or for some. A request gets one in this way:
//
//  1. The server of a port marks the context of each connection with its [Port].
//  2. [Of] looks at the bearer token of the request, then at the certificate of its connection. A request with neither may
//     do what the port lets anyone do.
//  3. The handler asks [Identity.May], or stands behind [Port.Guard].
package auth

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Port is an address where callers arrive. Its fields do not change.
type Port struct {
	// Open is the identity of callers that show neither a token nor a certificate. Default: they may do nothing.
	Open *Identity
	// Keys tell callers apart. Default: nobody is known.
	Keys *Keys
	// Hosts reports whether requests may have this Host. Default: they may have any.
	Hosts func(host string) bool
}

type portKey struct{}

// Mark returns the context of a connection to the port.
func (p *Port) Mark(ctx context.Context) context.Context { return context.WithValue(ctx, portKey{}, p) }

// of returns the port of a request, or one that is closed.
func of(r *http.Request) *Port {
	if p, ok := r.Context().Value(portKey{}).(*Port); ok {
		return p
	}
	return &Port{Hosts: func(string) bool { return false }}
}

// Of returns who sent a request.
func Of(r *http.Request) *Identity {
	return of(r).Identify(Bearer(r.Header.Get("Authorization")), r.TLS)
}

// Serves reports whether the port of a request answers its Host.
func Serves(r *http.Request) bool {
	p := of(r)
	return p.Hosts == nil || p.Hosts(r.Host)
}

// Identify returns who shows a bearer token, which may be empty, over a connection, which is nil without TLS.
func (p *Port) Identify(token string, state *tls.ConnectionState) *Identity {
	if strings.HasPrefix(token, keyPrefix) { // which never stands for more than its key, even where anyone may come in
		return p.Keys.holder(token)
	}
	if p.Keys != nil {
		if who := p.Keys.identify(token, state); who != nil {
			return who
		}
	}
	if p.Open != nil {
		return p.Open
	}
	return nobody
}

// Bearer returns the token in the value of an Authorization field, or "".
func Bearer(value string) string {
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Scope is a set of the rights of callers.
type Scope uint8

// The scopes.
const (
	Take    Scope = 1 << iota // ask, take, wait, reserve and settle
	Dynamic                   // name a limit in the request
	Refund                    // give back what the caller does not hold
	Admin                     // see keys, reset and change them
	Metrics                   // read metrics
	Read                      // peek, and give tokens to peek at one key
)

// The scopes of callers that need no identity.
const (
	Local = Take | Dynamic | Refund | Metrics // on loopback
	All   = Local | Admin | Read              // on the socket of the daemon's own user
)

// Watch is that of callers that see rules and sums, and Peek that of those that peek. One of their scopes is enough.
const (
	Watch = Metrics | Admin
	Peek  = Take | Read
)

var scopeNames = []string{"take", "dynamic", "refund", "admin", "metrics", "read"}

// String returns the names of the scopes.
func (s Scope) String() string { return strings.Join(s.names(), ", ") }

func (s Scope) names() (names []string) {
	for i, name := range scopeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
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
	key  *KeyToken // the only key that its holder may ask for
	why  string    // the caller is nobody although it shows a KeyToken
}

// nobody may do nothing.
var nobody = &Identity{}

// Anyone returns the identity of callers that may do this without showing who they are. The name is for logs.
func Anyone(name string, may Scope) *Identity { return &Identity{Name: name, any: may, some: may} }

// MayAsk reports whether the caller has a scope for a rule and may ask for a key of it.
func (i *Identity) MayAsk(scope Scope, rule, key string) bool {
	if i.key != nil {
		return scope&Read != 0 && i.key.Rule == rule && string(i.key.Key) == key
	}
	return i.May(scope, rule)
}

// Shown returns the token of a caller that shows a KeyToken, or nil.
func (i *Identity) Shown() *KeyToken { return i.key }

// May reports whether the caller has a scope, or one of several, for a rule. The rule "" stands for everything outside
// of rules: only callers that have the scope for every rule may do that.
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

// Denied is an answer to a caller that lacks a scope. Status is 401 for callers that nobody knows, and 403 for others.
type Denied struct {
	Status int
	Detail string
}

// Error returns the detail.
func (d *Denied) Error() string { return d.Detail }

// Deny returns the answer to a caller that lacks a scope for a rule, or outside of rules. It names scopes as a file of
// tokens does.
func (i *Identity) Deny(scope Scope, rule string) Denied {
	what := "this needs the scope " + strings.Join(forRule(scope.names(), rule), " or ")
	if i.why != "" {
		return Denied{http.StatusUnauthorized, i.why}
	}
	if i.key != nil {
		return Denied{http.StatusForbidden, fmt.Sprintf("this token lets its holder peek at one key of the rule %q, and do nothing else", i.key.Rule)}
	}
	if i == nobody {
		return Denied{http.StatusUnauthorized, what + ", and a token or a certificate that has it"}
	}
	return Denied{http.StatusForbidden, what + ", and the caller has " + i.String()}
}

// forRule returns the names of scopes for a rule, or for every rule.
func forRule(names []string, rule string) []string {
	if rule != "" {
		for i := range names {
			names[i] += ":" + rule
		}
	}
	return names
}

// mostNamed bounds the scopes that a message names.
const mostNamed = 8

// String returns what the caller may do as a file of tokens has it, for messages.
func (i *Identity) String() string {
	names := i.any.names()
	for _, rule := range slices.Sorted(maps.Keys(i.only)) {
		names = append(names, forRule((i.only[rule]&^i.any).names(), rule)...)
	}
	switch n := len(names) - mostNamed; {
	case len(names) == 0:
		return "none"
	case n > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), n)
	}
	return strings.Join(names, ", ")
}

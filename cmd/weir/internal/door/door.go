// Package door says who asks, and what they may do.
//
// An [Identity] has scopes, each for every rule or for some. A request gets one in this way:
//
//  1. The server of a port marks the context of each connection with its [Port].
//  2. [Of] looks at the bearer token of the request, then at the certificate of its connection. What shows neither is
//     what the port lets anyone do.
//  3. The handler asks [Identity.May], or stands behind [Port.Guard].
package door

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
)

// Port is an address at which callers arrive. Its fields do not change.
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

// Denied is an answer to a caller that lacks a scope. Status is 401 for callers that nobody knows, and 403 for others.
type Denied struct {
	Status int
	Detail string
}

// Error returns the detail.
func (d *Denied) Error() string { return d.Detail }

// Deny returns the answer to a caller that lacks a scope for a rule, or for what belongs to no rule.
func (i *Identity) Deny(scope Scope, rule string) Denied {
	what := "this needs the scope " + scope.String()
	if rule != "" {
		what += fmt.Sprintf(" for rule %q", rule)
	}
	if i == nobody {
		return Denied{http.StatusUnauthorized, what + ", and a token or a certificate that has it"}
	}
	return Denied{http.StatusForbidden, what + ", and the caller has " + i.String()}
}

// String returns what the caller may do, for messages.
func (i *Identity) String() string {
	if i.some == 0 {
		return "none"
	}
	return i.some.String()
}

// Guard serves requests that need a scope for no particular rule: those of the right Host and origin, and of callers
// that have the scope.
func Guard(scope Scope, next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := Of(r)
		switch {
		case !Serves(r):
			refuse(w, Denied{http.StatusMisdirectedRequest, "this Host is unknown; weir serve --host NAME adds one"})
		case origin.Check(r) != nil:
			refuse(w, Denied{http.StatusForbidden, "requests from pages of another origin are refused"})
		case !who.May(scope, ""):
			refuse(w, who.Deny(scope, ""))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, d Denied) {
	d.Challenge(w.Header())
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(d.Status)
	_, _ = fmt.Fprintf(w, `{"type":"about:blank","title":%q,"status":%d,"detail":%q}`+"\n", http.StatusText(d.Status), d.Status, d.Detail)
}

// Challenge says in the header how a caller can show who it is.
func (d Denied) Challenge(h http.Header) {
	if d.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="weir"`)
	}
}

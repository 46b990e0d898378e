package api

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/httplimit"
)

// The header fields that describe the request of a client to a gateway. Each check must have all of them: without one,
// rules would match less than they should.
const (
	forwardedMethod = "X-Forwarded-Method"
	forwardedURI    = "X-Forwarded-Uri"
	forwardedHost   = "X-Forwarded-Host"
	forwardedFor    = "X-Forwarded-For"  // may be repeated
	forwardedPort   = "X-Forwarded-Port" // only for rules that mention the port
)

// byAttributes reports whether rules in files find what decides a check: the daemon has trusted gateways, which send neither
// rule nor key nor cost. Such a check has no query, because some gateways pass on that of the client.
func (c *CheckOptions) byAttributes(force *decide.InForce) bool {
	return force.ByAttributes() && c.Gateways != nil && c.Rule == "" && c.Key == "" && c.Cost == ""
}

// checkAttributes decides by the rules that match the request of the client.
func (a *API) checkAttributes(force *decide.InForce, w http.ResponseWriter, r *http.Request, who asker) *problem {
	for _, name := range []string{forwardedMethod, forwardedURI, forwardedHost, forwardedFor} {
		if len(r.Header[name]) == 0 || r.Header[name][0] == "" {
			return badField(name, "is missing; the gateway must send it with each check")
		}
	}
	from := newForwarded(r.Header)
	from.client, from.hasClient = a.Check.Gateways.Addr(r)
	var o rules.Outcome
	force.Config.Decide(from, 1, &o)
	if from.unclear != nil {
		return from.unclear
	}
	switch o.Verdict {
	case rules.Allow:
		a.desk.Judged(r.Context(), who.Identity, &o, true)
		admitCheck(w)
	case rules.Refuse:
		a.desk.Judged(r.Context(), who.Identity, &o, true)
		a.denyCheck(force, &o, w, r)
	default:
		return a.answerCheck(&checked{force, who, o.Requests, o.Beside}, w, r)
	}
	return nil
}

// denyCheck answers a request that rules refuse without a limit.
func (a *API) denyCheck(force *decide.InForce, o *rules.Outcome, w http.ResponseWriter, r *http.Request) {
	f := httplimit.Refusal{Status: http.StatusForbidden, Message: "The request is refused."}
	if o.Rule != nil {
		f.Rule = o.Rule.Name
		if text := force.Message(f.Rule); text != "" {
			f.Message = text
		}
	}
	refuseCheck(f, w, r)
}

// forwarded is the request of a client as its gateway describes it.
type forwarded struct {
	header    http.Header
	alike     map[string]string // fields with _ in their names, by the name with - that many servers read them as
	client    netip.Addr
	hasClient bool
	unclear   *problem // of a field that was read and that servers read differently
}

func newForwarded(h http.Header) *forwarded {
	f := &forwarded{header: h}
	for name := range h {
		if strings.IndexByte(name, '_') >= 0 {
			if f.alike == nil {
				f.alike = map[string]string{}
			}
			f.alike[http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))] = name
		}
	}
	return f
}

// Attribute returns the value of an attribute.
func (f *forwarded) Attribute(name string) (value string, ok bool) {
	switch name {
	case "method":
		return f.field(forwardedMethod)
	case "path":
		return f.field(forwardedURI)
	case "host", "header.host":
		value, ok = f.field(forwardedHost)
		if strings.Contains(value, ",") {
			f.unclear = twice(forwardedHost)
		} else if strings.ContainsFunc(value, notInHost) {
			f.unclear = badField(forwardedHost, "is no host; servers could read another one")
		}
		return value, ok
	case "port":
		if value, ok = f.field(forwardedPort); value == "" {
			f.unclear = badField(forwardedPort, "is missing, and rules match the port; the gateway must send it with each check")
		}
		return value, ok
	case "client":
		return f.client.String(), f.hasClient
	}
	if name, ok = strings.CutPrefix(name, "header."); ok {
		return f.field(http.CanonicalHeaderKey(name))
	}
	return "", false
}

// notInHost reports whether no host has a rune. Servers drop some of them, or read others in their place.
func notInHost(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`@/\?#%`, r) }

func (f *forwarded) field(name string) (value string, ok bool) {
	values := f.header[name]
	if other := f.alike[name]; other != "" {
		f.unclear = badField(other, "has _ in its name; servers could read it as "+name)
	}
	if len(values) == 0 {
		return "", false
	}
	if len(values) > 1 {
		f.unclear = twice(name)
	}
	return values[0], true
}

func twice(field string) *problem {
	return badField(field, "occurs twice or in a list; servers could read either value")
}

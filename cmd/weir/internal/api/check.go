package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/httplimit"
)

// CheckOptions configure /v1/check, which gateways ask before they pass a request on.
type CheckOptions struct {
	// Rule, Key and Cost are the header fields that hold these, or "" if the query does.
	Rule, Key, Cost string
	// Gateways are the peers that may set these fields. It also reads the address of a client from Key.
	Gateways *httplimit.Client
	// Status is that of a refusal. Default: 429.
	Status int
}

// checked is a decoded request to /v1/check.
type checked struct {
	force    *decide.InForce
	who      asker
	requests []weir.Request
	beside   []weir.Request // of shadows and candidates, by attributes
}

// A check goes on when its client has left: a client that hangs up would otherwise ask for nothing.
const (
	checkWithin  = time.Minute
	longestDelay = 10 * time.Second // of a leaky bucket
)

// fieldResetAt is the header field of a check that says when the window of a quota ends.
const fieldResetAt = "Weir-Reset-At"

// fieldPaidBy is the header field of a check that names the rule that paid in place of another.
const fieldPaidBy = "Weir-Paid-By"

// check answers by status whether a request may go ahead.
func (a *API) check(w http.ResponseWriter, r *http.Request, who asker) {
	force := a.desk.InForce()
	var p *problem
	switch {
	case a.Check.Gateways != nil && !a.Check.Gateways.Trusts(r):
		p = badField("peer", fmt.Sprintf("%s is no gateway of this daemon; weir serve --check-trust ADDRESS names one", r.RemoteAddr))
	case a.Check.byAttributes(force):
		p = a.checkAttributes(force, w, r, who)
	default:
		p = a.checkNamed(force, w, r, who)
	}
	if p != nil {
		writeProblem(w, p)
	}
}

// checkNamed decides by the rule and the key that the check names.
func (a *API) checkNamed(force *decide.InForce, w http.ResponseWriter, r *http.Request, who asker) *problem {
	if a.Check.Key == "" && a.fromPage(r) {
		a.misled.Warn(a.Log, "refused a check with the header fields of a web page; a gateway must leave out those of its clients, or use --check-key", "origin", decide.Quote(r.Header.Get("Origin")))
		return badField("Origin", "or Sec-Fetch-Site is that of a web page elsewhere; a gateway must leave out the header fields of its clients, or name the key in one: weir serve --check-key")
	}
	named, key, cost, p := a.Check.read(r)
	if p != nil {
		return p
	}
	rule := force.Rule([]byte(named))
	if rule == nil {
		return badField(fieldRule, "is "+decide.Quote(named)+", and "+force.Unnamed(named))
	}
	return a.answerCheck(&checked{force: force, who: who, requests: []weir.Request{force.For(rule, front.BoundedKey(key), cost)}}, w, r)
}

// answerCheck decides on the requests of a check. A gateway cannot obey a delay, so the answer waits for it.
func (a *API) answerCheck(c *checked, w http.ResponseWriter, r *http.Request) *problem {
	if p := c.who.mayAsk(c.requests); p != nil {
		return p
	}
	decided := a.desk.Overridden(c.requests) // the header fields are of the limits that decide
	if p := unfit(decided); p != nil {
		return p
	}
	call := weir.Call{Op: weir.OpTake, Requests: decided, Within: checkWithin}
	made, err := a.desk.Do(r.Context(), call)
	if err != nil {
		w.Header().Set("Cache-Control", "no-store") // of a GET that a gateway may cache
		return a.problemOf(r, err, a.desk.Patience())
	}
	a.desk.Took(c.who.Identity, c.requests, c.beside, made)
	d := made.Decision
	if d.Delay > 0 && !front.Sleep(r.Context(), d.Delay) {
		return hasLeft()
	}
	decided = a.desk.Overridden(made.On)
	httplimit.AddFields(w.Header(), httplimit.Draft11, d, func() time.Duration { return a.untilAgain(r.Context(), call) }, decided...)
	if made.PaidBy != "" {
		w.Header().Set(fieldPaidBy, made.PaidBy)
	}
	end, isQuota := a.desk.QuotaEnd(d, made.On)
	if isQuota {
		w.Header().Set(fieldResetAt, end.Format(time.RFC3339))
	}
	if d.Allowed {
		admitCheck(w)
		return nil
	}
	f := httplimit.RefusalOf(d, decided...)
	f.Status, f.Message, f.ResetAt = a.Check.Status, c.force.Message(f.Rule), end
	refuseCheck(f, w, r)
	return nil
}

// unfit returns the problem of rules that no check can be decided by.
func unfit(requests []weir.Request) *problem {
	for _, q := range decide.Links(requests) {
		if weir.Kit.Held(q.Rule) != nil {
			return badField(fieldRule, "is "+decide.Quote(q.Rule.Name())+", which holds slots, which a check cannot release; delete the rule, or ask /v1/reserve instead")
		}
		if q.Rule.Delays() && weir.Describe(q.Rule.Limits()[0]).Delay > longestDelay { // it stands alone
			return badField(fieldRule, "is "+decide.Quote(q.Rule.Name())+", which would delay a request for longer than 10s; shorten its queue, or add nodelay")
		}
	}
	return nil
}

// untilAgain returns how long until an admitted call fits again, or 0 if nobody knows.
func (a *API) untilAgain(ctx context.Context, call weir.Call) time.Duration {
	call.Op = weir.OpPeek
	d, err := a.desk.Do(ctx, call)
	if err != nil || d.RetryAfter == weir.Never {
		return 0
	}
	return d.RetryAfter
}

// admitCheck answers an admitted request.
func admitCheck(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

// refuseCheck answers a refused request.
func refuseCheck(f httplimit.Refusal, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	f.Write(w, r)
}

// fromPage reports whether a web page of another origin asks. A check by GET costs units, like a POST.
func (a *API) fromPage(r *http.Request) bool {
	return a.origin.Check(&http.Request{Method: http.MethodPost, Header: r.Header, Host: r.Host, URL: r.URL}) != nil
}

// read reads the rule, the key and the cost from the query and header fields.
func (c *CheckOptions) read(r *http.Request) (rule, key string, cost int64, p *problem) {
	query, p := checkQuery(r.URL.RawQuery)
	if p == nil {
		key, p = c.key(query, r)
	}
	if p != nil {
		return "", "", 0, p
	}
	rule, found, p := oneValue(fieldRule, c.Rule, query, r)
	if !found {
		rule = defaultRule
	}
	if p != nil {
		return "", "", 0, p
	}
	text, found, p := oneValue(fieldCost, c.Cost, query, r)
	if cost = 1; p == nil && found {
		cost, p = checkCost(text)
	}
	return rule, key, cost, p
}

func checkQuery(raw string) (url.Values, *problem) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badField("query", "is not URL-encoded")
	}
	for name := range query {
		if name != fieldRule && name != fieldKey && name != fieldCost {
			return nil, badField("query", "has the field "+decide.Quote(name)+", not one of rule, key, cost")
		}
	}
	return query, nil
}

// oneValue returns the value of a field: that of the header if there is one, or that of the query.
func oneValue(field, header string, query url.Values, r *http.Request) (value string, found bool, p *problem) {
	values, from := query[field], field
	if header != "" {
		if len(values) > 0 {
			return "", false, badField(field, "is in the query, but --check-"+field+" takes it from the header "+header)
		}
		values, from = r.Header[header], header
	}
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", false, badField(from, "occurs twice")
}

// key returns the key. An address in a header field counts as its network, like the addresses of package httplimit.
func (c *CheckOptions) key(query url.Values, r *http.Request) (string, *problem) {
	if slices.Contains(addressLists, c.Key) && len(query[fieldKey]) == 0 && len(r.Header[c.Key]) > 0 {
		return c.Gateways.Key(r), nil
	}
	key, found, p := oneValue(fieldKey, c.Key, query, r)
	switch {
	case p != nil:
		return "", p
	case c.Key != "" && key == "":
		return "", badField(c.Key, "is missing; the gateway must send it with each check")
	case !found:
		return "", badField(fieldKey, "is missing")
	case !utf8.ValidString(key):
		return "", badField(fieldKey, "is not UTF-8")
	case len(key) > weir.MaxKey:
		return "", badField(fieldKey, fmt.Sprintf("has %d bytes, more than %d", len(key), weir.MaxKey))
	}
	if _, err := netip.ParseAddr(key); err == nil && c.Key != "" {
		return c.Gateways.Key(r), nil
	}
	return key, nil
}

// addressLists are the header fields that each proxy adds an address to, so they may be repeated.
var addressLists = []string{"X-Forwarded-For", "Forwarded"}

func checkCost(text string) (int64, *problem) {
	cost, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, badField(fieldCost, "is "+decide.Quote(text)+", not a whole number of 0 or more, below 2^63, in plain digits")
	}
	return int64(cost), nil
}

package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/desk"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/layer"
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

// checkedRules answer for rules that decide together, unless one of them is unfit for checks.
type checkedRules struct {
	handler http.Handler
	rule    string // that is unfit
	unfit   string
}

// checked is what a request to /v1/check asks.
type checked struct {
	rule     string // that it names
	key      string
	cost     int64
	requests []weir.Request
	outcome  *rules.Outcome // by attributes; nil otherwise
	force    *desk.InForce
	who      asker
	resetAt  time.Time // when the window of a quota ends, or zero
}

type checkedKey struct{}

func checkedOf(ctx context.Context) *checked { return ctx.Value(checkedKey{}).(*checked) }

// newChecked returns what answers for rules, in the order of the requests.
func (a *API) newChecked(rules ...*weir.Rule) checkedRules {
	o := httplimit.Options{
		Engine:  a.desk.Engine(),
		Refuse:  a.refuseCheck,
		Observe: a.observeCheck,
		Logger:  slog.New(slog.DiscardHandler), // this package logs failures of the engine
	}
	for i, rule := range rules {
		if weir.Kit.Held(rule) != nil {
			return checkedRules{rule: rule.Name(), unfit: "holds slots, which a check cannot release; delete the rule, or ask /v1/reserve instead"}
		}
		o.Rules = append(o.Rules, httplimit.Rule{
			Rule: rule,
			Key:  func(r *http.Request) string { return checkedOf(r.Context()).requests[i].Key },
			Cost: func(r *http.Request) int64 { return checkedOf(r.Context()).requests[i].Cost },
		})
	}
	limited, err := httplimit.New(o)
	if err != nil { // the engine has accepted the rules, so only a queue can be too long, of a rule that stands alone
		return checkedRules{rule: rules[0].Name(), unfit: "would delay a request for longer than 10s; shorten its queue, or add nodelay"}
	}
	return checkedRules{handler: limited(http.HandlerFunc(admitAsked))}
}

// fieldResetAt is the header field of a check that says when the window of a quota ends.
const fieldResetAt = "Weir-Reset-At"

// tellReset sets that field.
func (c *checked) tellReset(h http.Header) {
	if !c.resetAt.IsZero() {
		h.Set(fieldResetAt, c.resetAt.Format(time.RFC3339))
	}
}

// admitAsked answers an admitted request, with the header fields about limits.
func admitAsked(w http.ResponseWriter, r *http.Request) {
	checkedOf(r.Context()).tellReset(w.Header())
	admitCheck(w, r)
}

// admitCheck answers an admitted request.
func admitCheck(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

// refuseCheck answers a refused request, or one that the engine could not decide.
func (a *API) refuseCheck(w http.ResponseWriter, r *http.Request, f httplimit.Refusal) {
	if f.Err != nil {
		a.fail(w, r, f.Err)
		return
	}
	asked := checkedOf(r.Context())
	asked.tellReset(w.Header())
	f.Status, f.Message, f.ResetAt = a.Check.Status, asked.force.Message(f.Rule), asked.resetAt
	f.Write(w, r)
}

// observeCheck notes a decision.
func (a *API) observeCheck(ctx context.Context, o layer.Observation) {
	if o.Err != nil {
		return
	}
	c := checkedOf(ctx)
	var beside []weir.Request
	if c.outcome != nil {
		beside = c.outcome.Beside
	}
	a.desk.Took(c.who.Identity, c.requests, beside, o.Decision)
	c.resetAt, _ = a.desk.QuotaEnd(o.Decision, c.requests)
}

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
func (a *API) checkNamed(force *desk.InForce, w http.ResponseWriter, r *http.Request, who asker) *problem {
	if a.Check.Key == "" && a.fromPage(r) {
		a.misled.Warn(a.Log, "refused a check with the header fields of a web page; a gateway must leave out those of its clients, or use --check-key", "origin", desk.Quote(r.Header.Get("Origin")))
		return badField("Origin", "or Sec-Fetch-Site is that of a web page elsewhere; a gateway must leave out the header fields of its clients, or name the key in one: weir serve --check-key")
	}
	asked, p := a.Check.read(r)
	if p != nil {
		return p
	}
	rule := force.Rule([]byte(asked.rule))
	if rule == nil {
		return badField(fieldRule, "is "+desk.Quote(asked.rule)+", and "+force.Unnamed(asked.rule))
	}
	asked.requests = []weir.Request{rule.For(asked.key, asked.cost)}
	asked.force, asked.who = force, who
	return a.answerCheck(asked, w, r)
}

// answerCheck decides on the requests of a check.
func (a *API) answerCheck(asked *checked, w http.ResponseWriter, r *http.Request) *problem {
	if p := asked.who.mayAsk(asked.requests); p != nil {
		return p
	}
	by := a.checks.of(a, asked.force, a.desk.Overridden(asked.requests)) // the header fields are of the limits that decide
	if by.unfit != "" {
		return badField(fieldRule, "is "+desk.Quote(by.rule)+", which "+by.unfit)
	}
	by.handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), checkedKey{}, asked)))
	return nil
}

// fromPage reports whether a web page of another origin asks. A check by GET costs units, like a POST.
func (a *API) fromPage(r *http.Request) bool {
	return a.origin.Check(&http.Request{Method: http.MethodPost, Header: r.Header, Host: r.Host, URL: r.URL}) != nil
}

// read reads the rule, the key and the cost from the query and header fields.
func (c *CheckOptions) read(r *http.Request) (asked *checked, p *problem) {
	query, p := checkQuery(r.URL.RawQuery)
	if p != nil {
		return nil, p
	}
	asked = &checked{rule: defaultRule, cost: 1}
	if asked.key, p = c.key(query, r); p != nil {
		return nil, p
	}
	rule, found, p := oneValue(fieldRule, c.Rule, query, r)
	if p != nil {
		return nil, p
	}
	if found {
		asked.rule = rule
	}
	cost, found, p := oneValue(fieldCost, c.Cost, query, r)
	if p == nil && found {
		asked.cost, p = checkCost(cost)
	}
	return asked, p
}

func checkQuery(raw string) (url.Values, *problem) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badField("query", "is not URL-encoded")
	}
	for name := range query {
		if name != fieldRule && name != fieldKey && name != fieldCost {
			return nil, badField("query", "has the field "+desk.Quote(name)+", not one of rule, key, cost")
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

// addressLists are the header fields to which each proxy adds an address, so that they may be repeated.
var addressLists = []string{"X-Forwarded-For", "Forwarded"}

func checkCost(text string) (int64, *problem) {
	cost, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, badField(fieldCost, "is "+desk.Quote(text)+", not a whole number of 0 or more, below 2^63, in plain digits")
	}
	return int64(cost), nil
}

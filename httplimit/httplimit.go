// Package httplimit puts limits in front of net/http handlers, and keeps clients inside the limits of others.
//
// PerClient limits each client by the address of its connection:
//
//	limited, err := httplimit.PerClient("60/m and 1000/d")
//	if err != nil { … }
//	http.ListenAndServe(":8080", limited(mux))
//
// A refused request is answered with 429, Retry-After, and a problem document
// that names the limit. Every answer carries the RateLimit header fields. The
// states live in a memory engine that PerClient makes. [PerKey] does the same
// for users or tenants. [New] takes several rules, plans, costs, another engine
// and header format: see [Options]. docs/http.md explains all of them.
//
// No default trusts a header that a client can send. A server behind a proxy
// names the proxies that it trusts in [ClientOptions].
//
// For clients, [Transport] is an http.RoundTripper that learns the limits of
// servers from their answers and obeys them: see docs/client.md.
//
// Make a middleware once, when the program starts, because its engine remembers
// what clients have used. Everything here is safe for concurrent use.
package httplimit

import (
	"net/http"
	"sync"

	"github.com/weirflow/weir/pace"
)

// PerClient limits each client address, with its own memory engine. It is New with one rule named "client".
// [weir.ParseLimits] reads the text.
func PerClient(limits string) (func(http.Handler) http.Handler, error) {
	return New(Options{Rules: []Rule{{Limit: limits}}})
}

// PerKey limits each key that the function finds, such as [Header] of "X-Api-Key", with its own memory engine. It is
// New with one rule named "key". Requests without a key share one limit.
func PerKey(limits string, key Key) (func(http.Handler) http.Handler, error) {
	if key == nil {
		return nil, optionError("key", "is nil: name a function such as Header(\"X-Api-Key\")")
	}
	return New(Options{Rules: []Rule{{Limit: limits, Key: key}}})
}

// New returns a middleware. All handlers that it wraps share its limits. Its errors are joined *weir.OptionError,
// *weir.LimitError and *weir.SyntaxError values.
func New(options Options) (func(http.Handler) http.Handler, error) {
	l, err := newLimiter(options)
	if err != nil {
		return nil, err
	}
	l.watch.madeInRequest()
	return func(next http.Handler) http.Handler { return &handler{limiter: l, next: next} }, nil
}

// limiter holds what all handlers of one middleware share. It does not change.
type limiter struct {
	Options
	rules  []rule
	names  map[string]bool // of the rules without plans
	plans  plans
	watch  *watch
	queue  *pace.Queue // nil without Options.Wait
	visits sync.Pool
}

// handler is one wrapped handler.
type handler struct {
	*limiter
	next http.Handler
}

// ServeHTTP passes a request on if the limits admit it, and answers otherwise.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.isFree(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	v, passed := h.visit(), false
	defer func() {
		if !passed { // refused, or the client has left, or a function of the program has panicked
			v.letGo(r.Context())
		}
	}()
	if !h.admit(v, w, r) {
		return
	}
	inspected := h.watch.inspect(v, r)
	c := v.charge
	if c != nil {
		w, r = c.attach(w, r)
	}
	passed = true
	v.done()
	h.serve(c, inspected, w, r)
}

// isFree reports whether a request is not limited.
func (l *limiter) isFree(r *http.Request) bool {
	return !l.LimitPreflights && isPreflight(r) || l.Skip != nil && l.Skip(r)
}

// admit decides a request, and answers it unless it is admitted.
func (l *limiter) admit(v *visit, w http.ResponseWriter, r *http.Request) bool {
	refusal := v.addRequests(r)
	if refusal == nil && !v.free && len(v.requests) > 0 {
		refusal = v.take(w.Header(), r)
	}
	l.expose(w.Header(), r, refusal != nil && !l.DryRun)
	switch {
	case refusal == nil:
		return !v.waited && v.delay <= 0 || hold(r.Context(), v.delay)
	case r.Context().Err() != nil: // the client has left
		return false
	}
	l.answer(w, r, refusal)
	return false
}

// serve calls the handler of an admitted request, and settles the charge, if there is one, when it has returned.
func (h *handler) serve(c *charge, inspected func(), w http.ResponseWriter, r *http.Request) {
	if inspected != nil {
		defer inspected()
	}
	if c == nil {
		h.next.ServeHTTP(w, r)
		return
	}
	defer c.finish(r) // also when the handler panics
	h.next.ServeHTTP(w, r)
	c.returned = true
}

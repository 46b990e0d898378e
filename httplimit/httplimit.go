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
// and header format: see [Options]. docs/howto/http.md explains them.
//
// No default trusts a header that a client can send. A server behind a proxy
// names the proxies that it trusts in [ClientOptions].
//
// For clients, [Transport] is an http.RoundTripper that learns the limits of
// servers from their answers and obeys them: see docs/howto/client.md.
//
// Make a middleware once, when the program starts, because its engine remembers
// what clients have used. Everything here is safe for concurrent use.
package httplimit

import (
	"errors"
	"net/http"
	"time"

	"github.com/weirflow/weir/front"
)

// PerClient limits each client address, with its own memory engine. It is New with one rule named "client".
// [weir.ParseLimits] reads the text.
func PerClient(limits string) (func(http.Handler) http.Handler, error) {
	return New(Options{Rules: []Rule{{Limit: limits}}})
}

// PerKey limits each key that the function finds, such as [Hashed] of [Header]("X-Api-Key"), with its own memory engine. It is
// New with one rule named "key". Requests without a key share one limit.
func PerKey(limits string, key Key) (func(http.Handler) http.Handler, error) {
	if key == nil {
		return nil, optionError("key", "is nil: name a function such as Header(\"X-User\")")
	}
	return New(Options{Rules: []Rule{{Limit: limits, Key: key}}})
}

// New returns a middleware. All handlers that it wraps share its limits. Its errors are joined *weir.OptionError,
// *weir.LimitError and *weir.SyntaxError values.
func New(options Options) (func(http.Handler) http.Handler, error) {
	l := &limiter{Options: options, watch: newWatch(options.logger())}
	l.Client = options.client()
	var err error
	l.front, err = front.New(front.Options[*http.Request, Answer]{
		Name: name, Rules: l.Rules, Key: l.Client.Key, Engine: l.Engine, Guard: l.Guard, Prefetch: l.Prefetch, DryRun: l.DryRun,
		Wait: l.Wait, MaxWait: l.MaxWait, Observe: l.Observe, Logger: l.watch.logger,
	})
	if err := errors.Join(l.check(), err); err != nil {
		return nil, err
	}
	l.watch.madeInRequest()
	return func(next http.Handler) http.Handler { return &handler{limiter: l, next: next} }, nil
}

// limiter holds what all handlers of one middleware share. It does not change.
type limiter struct {
	Options
	front *front.Front[*http.Request, Answer]
	watch *watch
}

// handler is one wrapped handler.
type handler struct {
	*limiter
	next http.Handler
}

// ServeHTTP passes a request on if the limits admit it, and answers otherwise.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.LimitPreflights && isPreflight(r) || h.Skip != nil && h.Skip(r) {
		h.serve(nil, w, r)
		return
	}
	asked, passed := h.front.Ask(r.Context(), r, front.Whole), false
	granted := asked.Grant
	defer func() {
		if !passed { // refused, or a function of the program has panicked
			granted.Abandon(r.Context())
		}
	}()
	if asked.Decided() && (!asked.Decision.Allowed || !h.RefusalsOnly) {
		again := func() time.Duration { return h.front.Again(r.Context(), asked) }
		addFields(w.Header(), h.Headers, &asked.Decision, again, asked.Requests)
	}
	h.CORS.expose(w.Header(), r, !asked.Outcome.Passes(), h.Headers != NoHeaders)
	if !asked.Outcome.Passes() {
		h.refuse(w, r, asked)
		return
	}
	inspected := h.watch.inspect(h.front, asked, r)
	asked.Done()
	passed = true
	if inspected != nil {
		defer inspected()
	}
	h.serve(granted, w, r)
}

// refuse answers a request that does not pass, unless its client has left.
func (l *limiter) refuse(w http.ResponseWriter, r *http.Request, a *ask) {
	f := refusalOf(a)
	if a.Done(); r.Context().Err() == nil {
		f.answer(w, r, l.Refuse)
	}
}

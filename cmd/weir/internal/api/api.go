// Package api serves the decisions of an engine as JSON over HTTP.
//
// [New] returns the handler. It decodes a request, calls the engine and encodes the answer. docs/reference/api.md and
// openapi.json describe the format.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/top"
)

// Options configure an API.
type Options struct {
	Desk *decide.Desk
	Log  *slog.Logger
	// Serves reports whether the API answers requests with such a Host. Default: it answers all.
	Serves func(*http.Request) bool
	// Who returns the sender of a request. Default: everyone may do everything.
	Who func(*http.Request) *auth.Identity
	// Keys are the busiest and most refused keys of the engine, for /v1/stats. Default: none.
	Keys *top.Keys
	// Dynamic lets callers with that scope name the limit of a rule.
	Dynamic bool
	// Check configures /v1/check.
	Check CheckOptions
	// Troubles returns what does not work although the daemon decides, such as saves of its state. Default: nothing.
	Troubles func() []string
	// Waiting says what the daemon waits for before it is ready, or "". Default: it waits for nothing.
	Waiting func() string
	// Also holds the handlers of further paths.
	Also map[string]http.Handler
}

// API is an http.Handler. It is ready as soon as New returns it.
type API struct {
	Options
	desk    *decide.Desk
	phase   atomic.Int32
	bodies  bodyBudget
	origin  *http.CrossOriginProtection
	reloads reloads
	noRoom  decide.RareLog
	misled  decide.RareLog
}

var _ http.Handler = (*API)(nil)

// New returns the handler of all routes.
func New(o Options) *API {
	if o.Keys == nil {
		o.Keys = top.New()
	}
	if o.Who == nil {
		everyone := auth.Anyone("everyone", auth.All)
		o.Who = func(*http.Request) *auth.Identity { return everyone }
	}
	if o.Troubles == nil {
		o.Troubles = func() []string { return nil }
	}
	if o.Check.Status == 0 {
		o.Check.Status = http.StatusTooManyRequests
	}
	return &API{Options: o, desk: o.Desk, origin: http.NewCrossOriginProtection()}
}

// Serves reports whether a path is one of the API.
func (a *API) Serves(path string) bool {
	_, ok := routes[path]
	return ok || a.Also[path] != nil
}

// route is one path.
type route struct {
	methods []string
	scope   auth.Scope // that callers need for each rule of the request; 0 if the path needs none, or sees to it
	serve   func(*API, http.ResponseWriter, *http.Request, asker)
}

// The methods of routes.
var (
	posts     = []string{http.MethodPost}
	reads     = []string{http.MethodGet, http.MethodHead}
	getOrPost = []string{http.MethodGet, http.MethodPost}
)

const (
	takePath = "/v1/take"
	peekPath = "/v1/peek" // the only path that never counts a cost
)

var routes = map[string]route{
	takePath:        {posts, auth.Take, decideBy(weir.OpTake)},
	peekPath:        {posts, auth.Peek, decideBy(weir.OpPeek)},
	"/v1/token":     {posts, auth.Read, (*API).keyToken},
	"/v1/record":    {posts, auth.Take, decideBy(weir.OpRecord)},
	"/v1/return":    {posts, auth.Refund, decideBy(weir.OpReturn)},
	"/v1/reset":     {posts, auth.Admin, (*API).reset},
	"/v1/wait":      {posts, auth.Take, (*API).wait},
	"/v1/reserve":   {posts, auth.Take, (*API).reserve},
	"/v1/settle":    {posts, auth.Take, (*API).settle},
	"/v1/renew":     {posts, auth.Take, (*API).renew},
	"/v1/check":     {getOrPost, auth.Take, (*API).check},
	"/openapi.json": {reads, 0, (*API).openAPI},
	"/v1/stats":     {reads, auth.Metrics, (*API).stats},
	"/healthz":      {reads, 0, (*API).alive},
	"/readyz":       {reads, 0, (*API).readiness},
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.Options.Serves != nil && !a.Options.Serves(r) {
		a.refuseHost(w, r)
		return
	}
	if roomless(r.Context()) {
		a.refuseRoom(w, r)
		return
	}
	a.sayClose(w.Header())
	found, ok := routes[r.URL.Path]
	if also := a.Also[r.URL.Path]; also != nil {
		found, ok = route{getOrPost, 0, func(_ *API, w http.ResponseWriter, r *http.Request, _ asker) { also.ServeHTTP(w, r) }}, true
	}
	if !ok {
		writeProblem(w, &problem{status: http.StatusNotFound, detail: "the path does not exist; GET /openapi.json lists the paths"})
		return
	}
	if !slices.Contains(found.methods, r.Method) {
		allow := strings.Join(found.methods, ", ")
		w.Header().Set("Allow", allow)
		writeProblem(w, &problem{status: http.StatusMethodNotAllowed, detail: "this path takes " + allow})
		return
	}
	// Browsers send plain text to any origin without a preflight request, so a foreign page could spend the limits of
	// the reader's own machine.
	if a.origin.Check(r) != nil {
		writeProblem(w, &problem{status: http.StatusForbidden, detail: "requests from pages of another origin are refused"})
		return
	}
	var who asker
	if found.scope != 0 {
		if who = (asker{a.Who(r), found.scope}); !who.Some(found.scope) { // before the body is read
			writeProblem(w, denied(who.Deny(found.scope, "")))
			return
		}
	}
	found.serve(a, w, r, who)
}

// refuseHost answers a request for another Host: from a web page whose name resolves to this machine, or from a
// gateway without a --host.
func (a *API) refuseHost(w http.ResponseWriter, r *http.Request) {
	host := decide.Quote(r.Host)
	a.misled.Warn(a.Log, "refused a request for an unknown Host; --host NAME adds one", "host", host)
	writeProblem(w, &problem{status: http.StatusMisdirectedRequest, field: "Host", detail: "Host " + host + " is unknown; weir serve --host NAME adds one"})
}

// sayClose tells the client of a stopping server to send no further request on the connection. The server keeps the
// connection open until the end, because requests may already be on their way.
func (a *API) sayClose(h http.Header) {
	switch a.phase.Load() {
	case stopping:
		h["connection"] = []string{"close"} // net/http closes the connection for the canonical spelling only
	case ending:
		h.Set("Connection", "close")
	}
}

// withoutRoom is the context key of WithoutRoom.
type withoutRoom struct{}

// WithoutRoom marks the context of a spare connection beyond the room of the server. The API refuses its
// requests, except the liveness check, and closes it after the answer.
func WithoutRoom(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutRoom{}, true)
}

func roomless(ctx context.Context) bool { return ctx.Value(withoutRoom{}) != nil }

// refusalTime bounds how long a refused connection reads the rest of its request.
const refusalTime = time.Second

func (a *API) refuseRoom(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusalTime))
	w.Header().Set("Connection", "close")
	if r.URL.Path == "/healthz" {
		a.alive(w, r, asker{})
		return
	}
	a.noRoom.Warn(a.Log, "refused a request: too many connections")
	writeProblem(w, &problem{status: http.StatusServiceUnavailable, detail: "too many connections; nothing was admitted; ask again, or reuse an open connection"})
}

// denied is the problem of a caller that lacks a scope.
func denied(d auth.Denied) *problem { return &problem{status: d.Status, detail: d.Detail} }

// asker is who sent a request, and the scope that its path needs for each rule.
type asker struct {
	*auth.Identity
	needs auth.Scope
}

// mayAsk returns a problem if the caller may not ask for the rules of the requests.
func (c asker) mayAsk(requests []weir.Request) *problem {
	if d := decide.May(c.Identity, c.needs, requests); d != nil {
		return denied(*d)
	}
	return nil
}

// Package api serves the decisions of an engine as JSON over HTTP.
//
// [New] returns the handler. It decodes a request, calls the engine and encodes the answer. docs/reference/api.md and
// openapi.json describe the format.
package api

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/door"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/cmd/weir/internal/top"
)

// Options configure an API.
type Options struct {
	Engine weir.Engine
	Rules  []*weir.Rule  // as Use has them
	Config *rules.Config // as Use has it
	Log    *slog.Logger  // receives the errors of the engine
	// Serves reports whether the API answers requests with such a Host. Default: it answers all.
	Serves func(*http.Request) bool
	// Keys are the busiest and most refused keys of Engine, for /v1/stats. Default: none.
	Keys *top.Keys
	// EngineFails returns why the engine does not decide, or "". Default: it always decides.
	EngineFails func() string
	// Asked, if not nil, learns of each take, check, wait and reserve that was decided. It must not keep the requests or block.
	Asked func(requests []weir.Request, allowed bool)
	// Judged, if not nil, learns of each take and check that rules in files decided without the engine, and the reason.
	Judged func(ctx context.Context, rule string, allowed bool, reason rules.Reason)
	// Compared, if not nil, learns of each decision of a shadow or candidate, with that in force. The name is that of its limit.
	Compared func(name string, inForce, beside weir.Decision, err error)
	// Patience bounds the time that the engine may take to decide. Default: the client's request bounds it.
	Patience time.Duration
	// Who returns who sent a request. Default: everyone may do everything.
	Who func(*http.Request) *door.Identity
	// Dynamic reports whether a request may name the limit of a rule. Default: none may.
	Dynamic func(r *http.Request, rule string) bool
	// Secret returns what seals the tokens of reservations: the same in all daemons that honour them. Default: a random one.
	Secret func(context.Context) ([]byte, error)
	// Check configures /v1/check.
	Check CheckOptions
	// Wait bounds waiting callers.
	Wait WaitOptions
	// Also has the handlers of further paths.
	Also map[string]http.Handler
}

var _ http.Handler = (*API)(nil)

// New returns the handler of all routes.
func New(o Options) *API {
	a := &API{
		engine:      o.Engine,
		log:         o.Log,
		serves:      o.Serves,
		patience:    o.Patience,
		engineFails: o.EngineFails,
		keys:        o.Keys,
		asked:       o.Asked,
		judges:      o.Judged,
		compared:    o.Compared,
		who:         o.Who,
		secret:      o.Secret,
		dynamic:     o.Dynamic,
		also:        o.Also,
		origin:      http.NewCrossOriginProtection(),
	}
	if a.keys == nil {
		a.keys = top.New()
	}
	if a.secret == nil {
		own := []byte(rand.Text())
		a.secret = func(context.Context) ([]byte, error) { return own, nil }
	}
	a.checks = newChecks(o.Check)
	a.waits = newWaits(o.Engine, o.Wait, a.resolve)
	a.Use(o.Rules, o.Config)
	return a
}

// Serves reports whether a path is one of the API.
func (a *API) Serves(path string) bool {
	_, ok := routes[path]
	return ok || a.also[path] != nil
}

// route is one path.
type route struct {
	methods []string
	serve   func(*API, http.ResponseWriter, *http.Request)
}

// The methods of routes.
var (
	posts     = []string{http.MethodPost}
	reads     = []string{http.MethodGet, http.MethodHead}
	getOrPost = []string{http.MethodGet, http.MethodPost}
)

var routes = map[string]route{
	takePath:        {posts, decideWith(weir.Engine.Take)},
	peekPath:        {posts, decideWith(weir.Engine.Peek)},
	"/v1/record":    {posts, decideWith(weir.Engine.Record)},
	"/v1/return":    {posts, decideWith(weir.Engine.Return)},
	"/v1/reset":     {posts, (*API).reset},
	"/v1/wait":      {posts, (*API).wait},
	"/v1/reserve":   {posts, (*API).reserve},
	"/v1/settle":    {posts, (*API).settle},
	"/v1/renew":     {posts, (*API).renew},
	"/v1/check":     {getOrPost, (*API).check},
	"/openapi.json": {reads, (*API).openAPI},
	"/v1/stats":     {reads, (*API).stats},
	"/healthz":      {reads, (*API).alive},
	"/readyz":       {reads, (*API).readiness},
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.serves != nil && !a.serves(r) {
		a.refuseHost(w, r)
		return
	}
	if roomless(r.Context()) {
		a.refuseRoom(w, r)
		return
	}
	a.sayClose(w.Header())
	found, ok := routes[r.URL.Path]
	if also := a.also[r.URL.Path]; also != nil {
		found, ok = route{getOrPost, func(_ *API, w http.ResponseWriter, r *http.Request) { also.ServeHTTP(w, r) }}, true
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
	if p := a.admit(r); p != nil {
		writeProblem(w, p)
		return
	}
	found.serve(a, w, r)
}

// refuseHost answers a request for another Host: from a web page whose name resolves to this machine, or from a
// gateway without a --host.
func (a *API) refuseHost(w http.ResponseWriter, r *http.Request) {
	host := quote(r.Host)
	a.misled.warn(a.log, "refused a request for an unknown Host; --host NAME adds one", "host", host)
	writeProblem(w, &problem{status: http.StatusMisdirectedRequest, field: "Host", detail: "Host " + host + " is unknown; weir serve --host NAME adds one"})
}

package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/door"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/cmd/weir/internal/top"
	"github.com/weirflow/weir/layer"
)

// API is an http.Handler. It is ready as soon as New returns it.
type API struct {
	engine      weir.Engine
	force       atomic.Pointer[inForce]
	checks      *checks
	waits       *waits
	log         *slog.Logger
	serves      func(*http.Request) bool
	asked       func(requests []weir.Request, allowed bool)
	judges      func(ctx context.Context, rule string, allowed bool, reason rules.Reason)
	compared    func(name string, inForce, beside weir.Decision, err error)
	who         func(*http.Request) *door.Identity
	secret      func(context.Context) ([]byte, error)
	dynamic     func(r *http.Request, rule string) bool
	patience    time.Duration
	phase       atomic.Int32
	bodies      bodyBudget
	beside      atomic.Int32
	also        map[string]http.Handler
	origin      *http.CrossOriginProtection
	reloads     reloads
	engineFails func() string
	keys        *top.Keys
	failures    rareLog
	noRoom      rareLog
	misled      rareLog
}

// withPatience bounds the time of the engine.
func (a *API) withPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.patience == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, a.patience)
}

// alsoCounted ends the description of an error of the engine.
var alsoCounted = map[weir.Counted]string{
	weir.CountedUnknown: ", though it may have counted this request",
	weir.CountedYes:     ", though it has counted this request",
}

// fail answers an error of the engine, which had the usual patience.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	a.failWithin(w, r, err, a.patience)
}

func (a *API) failWithin(w http.ResponseWriter, r *http.Request, err error, patience time.Duration) {
	writeProblem(w, a.problemOf(r, err, patience))
}

// problemOf maps an error of the engine to a status. No other function does.
func (a *API) problemOf(r *http.Request, err error, patience time.Duration) *problem {
	if bad, ok := errors.AsType[*weir.RequestError](err); ok {
		detail := bad.Field + " " + bad.Reason
		if bad.Rule != "" {
			detail = "rule " + quote(bad.Rule) + ": " + detail
		}
		return &problem{status: http.StatusBadRequest, field: bad.Field, detail: detail}
	}
	if r.Context().Err() == nil { // otherwise no client waits for the answer
		a.failed(err, "path", r.URL.Path)
	}
	p := &problem{status: http.StatusServiceUnavailable, detail: "the engine could not decide"}
	if errors.Is(err, context.DeadlineExceeded) && patience > 0 {
		p.detail = "the engine did not decide in time"
	}
	p.detail += ", and admitted nothing; ask again"
	if r.URL.Path != peekPath {
		p.failed = err
		p.detail += alsoCounted[weir.WasCounted(err)]
	}
	return p
}

// failed logs an error of the engine, rarely. An outage is logged by the guard, once, and fails more than decisions.
func (a *API) failed(err error, where ...any) {
	if _, outage := errors.AsType[*layer.OutageError](err); !outage && a.EngineFails() == "" {
		a.failures.warn(a.log, "the engine could not decide", append(where, "error", err)...)
	}
}

const (
	takePath = "/v1/take"
	peekPath = "/v1/peek" // the only path that never counts a cost
)

// Package admin changes a daemon while it runs, and shows what is in force. weir ctl is its client.
//
// [New] returns the handler of the paths below /v1/admin/. Each needs the scope admin, except that callers with the scope
// metrics see the rules, without the keys in them. Every change leaves a line in the log: who, what, before, after. docs/howto/changing-limits.md#a-running-daemon describes the commands.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/live"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/cmd/weir/internal/xds"
)

// Options are what a daemon has.
type Options struct {
	Engine    weir.Engine // by the overrides
	Overrides *override.Table
	Fleeting  bool                                 // the overrides end with the daemon
	Rules     func() ([]*weir.Rule, *rules.Config) // those in force; the second is nil without files
	Warnings  func() rules.Problems                // what the files say that has no effect; nil in tests
	IsShadow  func(rule string) bool               // nil in tests
	// Mode makes a rule a shadow, or enforces it, and returns what it was. Its error is about the rule, or an override.StoreError. Nil in
	// tests.
	Mode     func(context.Context, override.ModeOf) (before override.Mode, err error)
	Save     func() error                         // saves the states; nil if there is no file for them
	Drain    func()                               // begins a stop
	Policy   func() (answers uint64, away string) // answers of the policy so far, and why the engine does not decide, or ""; nil without a policy
	CheckKey bool                                 // gateways name keys, and an address among them counts as its network
	Log      *slog.Logger
	Origin   func() *xds.Origin // of rules that a control plane pushes; nil, or returns nil, for others
	Live     *live.Live         // learns of changes, and has the requests of the last minutes; nil for none, in tests
}

type handler struct{ Options }

// oneKey is the key that a change is about, as the body of a request has it.
type oneKey struct {
	Rule string `json:"rule"`
	Key  string `json:"key"`
}

// target is one key, or all that begin with it.
type target struct {
	oneKey
	Prefix bool `json:"prefix"`
}

// answer is the outcome of a request.
type answer struct {
	Before   any      `json:"before"`
	After    any      `json:"after"`
	Warnings []string `json:"warnings,omitempty"`
}

// New returns the handler.
func New(o Options) http.Handler {
	h := &handler{o}
	mux := http.NewServeMux()
	handle := func(pattern string, scope auth.Scope, serve func(*http.Request) (any, error)) {
		mux.Handle(pattern, auth.Guard(scope, answered(serve)))
	}
	handle("GET /v1/admin/rules", auth.Watch, h.rules)
	for pattern, serve := range map[string]func(*http.Request) (any, error){
		"GET /v1/admin/overrides": h.overrides,
		"POST /v1/admin/override": h.override,
		"POST /v1/admin/remove":   h.remove,
		"POST /v1/admin/mode":     h.mode,
		"POST /v1/admin/grant":    h.grant,
		"POST /v1/admin/reset":    h.reset,
		"POST /v1/admin/peek":     h.peek,
		"POST /v1/admin/explain":  h.explain,
		"POST /v1/admin/snapshot": h.snapshot,
		"POST /v1/admin/drain":    h.drain,
		"POST /v1/admin/key":      h.key,
		"POST /v1/admin/whatif":   h.whatIf,
		"POST /v1/admin/refused":  h.refusals,
	} {
		handle(pattern, auth.Admin, serve)
	}
	mux.Handle("/", auth.Guard(auth.Admin, http.NotFoundHandler()))
	return mux
}

// answered serves what a function returns, as JSON.
func answered(serve func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		value, err := serve(r)
		write(w, value, err)
	})
}

// The bounds of a request.
const (
	maxBody  = 64 << 10
	patience = 5 * time.Second
)

// errWrong is the error of a request that the caller can mend.
type errWrong struct{ error }

func wrong(format string, values ...any) error { return errWrong{fmt.Errorf(format, values...)} }

func write(w http.ResponseWriter, value any, err error) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := http.StatusServiceUnavailable
		if errors.As(err, new(errWrong)) || errors.As(err, new(*weir.RequestError)) {
			status = http.StatusBadRequest
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		value = map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": plain(err)}
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // the client may have left
}

// plain returns the message without the names of packages before it.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "override: "), "weir: ")
}

// audit logs a change.
func (h *handler) audit(r *http.Request, what string, c target, a answer) answer {
	before, _ := json.Marshal(a.Before)
	after, _ := json.Marshal(a.After)
	h.Log.Info("audit", "who", auth.Of(r).Name, "from", r.RemoteAddr, "what", what, "rule", c.Rule, "key", c.Key, "prefix", c.Prefix,
		"before", string(before), "after", string(after))
	if h.Live != nil {
		h.Live.Audited(live.Change{Who: auth.Of(r).Name, From: r.RemoteAddr, What: what, Rule: c.Rule, Key: c.Key, Prefix: c.Prefix, Before: before, After: after})
	}
	return a
}

func (h *handler) overrides(*http.Request) (any, error) {
	return map[string]any{"overrides": h.Overrides.Entries()}, nil
}

func (h *handler) override(r *http.Request) (any, error) {
	var asked struct {
		target
		Limit string    `json:"limit"`
		Until time.Time `json:"until"`
	}
	if err := read(r, &asked, "key", "limit", "until"); err != nil {
		return nil, err
	}
	e := override.Entry{Rule: asked.Rule, Key: asked.Key, Prefix: asked.Prefix, Limit: asked.Limit, Until: asked.Until, By: auth.Of(r).Name}
	warnings, err := h.reach(&e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	before, err := h.Overrides.Set(ctx, &e, h.Engine)
	if err != nil {
		return nil, refused(err)
	}
	return h.audit(r, "override", asked.target, answer{before, e, warnings}), nil
}

func (h *handler) remove(r *http.Request) (any, error) {
	var c target
	if err := read(r, &c, "key"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	before, err := h.Overrides.Remove(ctx, c.Rule, c.Key, c.Prefix)
	if err != nil {
		return nil, refused(err)
	}
	return h.audit(r, "remove", c, answer{Before: before}), nil
}

// mode makes a rule a shadow, or enforces it.
func (h *handler) mode(r *http.Request) (any, error) {
	var asked struct {
		Rule string `json:"rule"`
		Mode string `json:"mode"`
	}
	if err := read(r, &asked, "rule", "mode"); err != nil {
		return nil, err
	}
	m := override.ModeOf{Rule: asked.Rule, Mode: override.Mode(asked.Mode), By: auth.Of(r).Name}
	if m.Mode != override.Shadow && m.Mode != override.Enforced {
		return nil, wrong("the mode is %s, want shadow or enforced", decide.Quote(asked.Mode))
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	before, err := h.Mode(ctx, m)
	switch {
	case errors.As(err, new(*override.StoreError)):
		return nil, err
	case err != nil:
		return nil, wrong("rule %s: %s", decide.Quote(m.Rule), plain(err))
	}
	return h.audit(r, "mode", target{oneKey: oneKey{Rule: m.Rule}}, answer{Before: before, After: m.Mode, Warnings: h.fleeting()}), nil
}

// fleeting warns of a change that ends with the daemon.
func (h *handler) fleeting() []string {
	if !h.Fleeting {
		return nil
	}
	return []string{"it ends with the daemon, which keeps it nowhere: weir serve --state FILE keeps it over a restart"}
}

// isShadow reports whether a rule is a shadow, whose limit refuses nobody.
func (h *handler) isShadow(rule string) bool { return h.IsShadow != nil && h.IsShadow(rule) }

// refused makes an error of a table one that the caller can mend, unless keeping the entry failed.
func refused(err error) error {
	if errors.As(err, new(*override.StoreError)) {
		return err
	}
	return errWrong{err}
}

func (h *handler) rule(name string) (*weir.Rule, error) {
	named, config := h.Rules()
	if rule := find(named, name); rule != nil {
		return rule, nil
	}
	return nil, wrong("rule %q: %s", name, unnamed(config, name))
}

// shown is a rule in force.
type shown struct {
	Rule   string        `json:"rule"`
	File   string        `json:"file,omitempty"`
	Line   int           `json:"line,omitempty"`
	Fields []rules.Field `json:"fields"`
}

func (h *handler) rules(r *http.Request) (any, error) {
	named, config := h.Rules()
	all, keys := []shown{}, auth.Of(r).May(auth.Admin, "")
	if config != nil {
		for _, r := range config.Rules {
			fields := config.Describe(r)
			if !keys {
				fields = withoutKeys(fields)
			}
			all = append(all, shown{r.Name, r.File, r.Line, fields})
		}
		answer := map[string]any{"rules": all}
		if o := h.origin(); o != nil {
			answer["origin"] = o
		}
		return answer, nil
	}
	for _, r := range named {
		fields := []rules.Field{{Name: "limit", Text: rules.LimitText(r)}}
		if h.isShadow(r.Name()) {
			fields = append(fields, rules.Field{Name: "shadow", Text: "true"})
		}
		all = append(all, shown{Rule: r.Name(), Fields: fields})
	}
	return map[string]any{"rules": all}, nil
}

// origin says where pushed rules come from, or returns nil.
func (h *handler) origin() *xds.Origin {
	if h.Origin == nil {
		return nil
	}
	return h.Origin()
}

// withoutKeys hides which keys have limits of their own.
func withoutKeys(fields []rules.Field) []rules.Field {
	for i := range fields {
		if fields[i].Name == "keys" {
			fields[i].Text = "some have limits of their own, which need the scope admin"
		}
	}
	return fields
}

func (h *handler) explain(r *http.Request) (any, error) {
	asked := struct {
		Attributes rules.Attributes `json:"attributes"`
		Cost       int64            `json:"cost"`
	}{Cost: 1}
	if err := read(r, &asked, "attributes"); err != nil {
		return nil, err
	}
	_, config := h.Rules()
	switch {
	case config == nil:
		return nil, wrong("the rules of this daemon are in flags, and so match no attributes")
	case !config.ByAttributes() && h.origin() == nil:
		return nil, wrong("the rules of this daemon are those of envoyproxy/ratelimit, and so match descriptors and no attributes")
	}
	request := rules.Attributes{}
	for written, value := range asked.Attributes {
		name := rules.AttributeName(written)
		if _, twice := request[name]; twice {
			return nil, wrong("the attributes have %s twice", decide.Quote(name))
		}
		request[name] = value
	}
	if err := config.CheckNames(request); err != nil {
		return nil, errWrong{err}
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	var e rules.Explanation
	var err error
	if pushed, ok := config.Foreign.(*envoyproxy.Config); ok {
		e, err = h.explainPushed(ctx, config, pushed, request, asked.Cost)
	} else {
		e, err = config.Explain(ctx, request, asked.Cost, h.Engine)
	}
	if h.Warnings != nil {
		e.Warnings = h.Warnings().Shown()
	}
	return e, err
}

func (h *handler) snapshot(r *http.Request) (any, error) {
	if err := read(r, &struct{}{}); err != nil {
		return nil, err
	}
	if h.Save == nil {
		return nil, wrong("this daemon keeps its states in no file; weir serve --state names one")
	}
	if err := h.Save(); err != nil {
		return nil, err
	}
	return h.audit(r, "snapshot", target{}, answer{After: "saved"}), nil
}

func (h *handler) drain(r *http.Request) (any, error) {
	if err := read(r, &struct{}{}); err != nil {
		return nil, err
	}
	defer h.Drain()
	return h.audit(r, "drain", target{}, answer{Before: "serving", After: "draining"}), nil
}

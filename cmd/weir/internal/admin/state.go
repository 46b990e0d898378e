package admin

import (
	"context"
	"fmt"
	"net/http"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// request asks for a key under a rule: by the limit of its own that the files give it, otherwise by that of the rule,
// which plans may replace.
func (h *handler) request(rule *weir.Rule, key string) (q weir.Request, plans bool) {
	if _, config := h.Rules(); config != nil {
		if limit, plans := config.LimitOf(rule.Name(), key); limit != nil {
			return limit.For(key, 1), plans
		}
	}
	return rule.For(key, 1), false
}

// inForce returns a request by the override in force, or as it is.
func (h *handler) inForce(q weir.Request) weir.Request {
	return h.Overrides.Requests([]weir.Request{q})[0]
}

// peek says how full a key is under a rule.
func (h *handler) peek(r *http.Request) (any, error) {
	var asked oneKey
	if err := read(r, &asked, "rule", "key"); err != nil {
		return nil, err
	}
	rule, err := h.rule(asked.Rule)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	since := h.answered()
	q, _ := h.request(rule, asked.Key)
	d, err := h.Engine.Peek(ctx, q)
	if err != nil {
		return nil, err
	}
	return struct {
		Allowed bool   `json:"allowed"`
		Key     string `json:"key"`
		Shadow  bool   `json:"shadow,omitempty"` // the rule refuses nothing
		keyState
		Warnings []string `json:"warnings,omitempty"`
	}{d.Allowed, asked.Key, h.isShadow(asked.Rule), keyStateOf(h.inForce(q), d), append(h.caveats(rule, asked.Key), h.away(since)...)}, nil
}

// grant gives units back.
func (h *handler) grant(r *http.Request) (any, error) {
	var asked struct {
		oneKey
		Units int64 `json:"units"`
	}
	if err := read(r, &asked, "rule", "key", "units"); err != nil {
		return nil, err
	}
	if asked.Units <= 0 {
		return nil, wrong("units are %d, want a number above 0", asked.Units)
	}
	return h.about(r, "grant", asked.oneKey, func(ctx context.Context, q weir.Request) error {
		q.Cost = asked.Units
		_, err := h.Engine.Return(ctx, q)
		return err
	})
}

// reset clears a key, whichever of its limits it was used under.
func (h *handler) reset(r *http.Request) (any, error) {
	var c oneKey
	if err := read(r, &c, "rule", "key"); err != nil {
		return nil, err
	}
	return h.about(r, "reset", c, func(ctx context.Context, q weir.Request) error {
		for i, one := range h.left(q) {
			if err := h.Engine.Reset(ctx, one); err != nil && i > 0 {
				return fmt.Errorf("a part of the key's units is cleared, and then: %v", err) // not CountedNo
			} else if err != nil {
				return err
			}
		}
		return nil
	})
}

// left returns requests whose states are all that requests like one may have left.
func (h *handler) left(q weir.Request) []weir.Request {
	all := []weir.Request{q}
	if in := h.inForce(q); in != q {
		all = append(all, in)
	}
	if _, config := h.Rules(); config != nil {
		for _, limit := range config.StatesOf(q.Rule.Name(), q.Key) {
			all = append(all, limit.For(q.Key, 1))
		}
	}
	return all
}

// about changes the state of a key, and answers with how it was and is.
func (h *handler) about(r *http.Request, what string, c oneKey, do func(context.Context, weir.Request) error) (any, error) {
	rule, err := h.rule(c.Rule)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	q, _ := h.request(rule, c.Key)
	since := h.answered()
	before, err := h.Engine.Peek(ctx, q)
	if err != nil {
		return nil, err
	}
	if err = do(ctx, q); err != nil && weir.WasCounted(err) == weir.CountedNo {
		return nil, err
	}
	done := answer{Before: stateOf(before), After: "unknown", Warnings: h.caveats(rule, c.Key)} // unless the engine fails meanwhile
	if err == nil {
		var after weir.Decision
		if after, err = h.Engine.Peek(ctx, q); err == nil {
			done.After = stateOf(after)
		}
	}
	if away := h.away(since); away != nil {
		done = answer{Before: "unknown", After: "unknown", Warnings: append(done.Warnings, away...)}
	}
	return h.audit(r, what, target{oneKey: c}, done), err
}

// answered returns how often the policy has answered in place of the engine.
func (h *handler) answered() (times uint64) {
	if h.Policy != nil {
		times, _ = h.Policy()
	}
	return times
}

// away warns that the engine is away, or that the policy has answered since it had done so a number of times. Then figures are
// those of the policy, and say nothing about a key.
func (h *handler) away(since uint64) []string {
	if h.Policy == nil {
		return nil
	}
	times, why := h.Policy()
	if why == "" && times != since {
		why = "the engine has just failed"
	}
	if why == "" {
		return nil
	}
	return []string{"the used units of the key are unknown, because the policy of this daemon answers: " + why}
}

// caveats warns of a key that no request has under a rule, and of other limits that may decide it.
func (h *handler) caveats(rule *weir.Rule, key string) []string {
	_, config := h.Rules()
	warnings := misses(&override.Entry{Key: key}, []*weir.Rule{rule}, config).warnings()
	switch q, plans := h.request(rule, key); {
	case h.inForce(q) != q: // it stands in for every limit
	case q.Rule.String() != rule.String():
		warnings = append(warnings, fmt.Sprintf("keys gives it the limit %s; a request that names rule and key has %s", rules.LimitText(q.Rule), rules.LimitText(rule)))
	case plans:
		warnings = append(warnings, fmt.Sprintf("a plan may give it another limit than %s; weir explain shows that of a request", rules.LimitText(rule)))
	}
	return warnings
}

// state is how full a key is.
type state struct {
	Limit     int64 `json:"limit"`
	Remaining int64 `json:"remaining"`
}

func stateOf(d weir.Decision) state { return state{d.Limit, d.Remaining} }

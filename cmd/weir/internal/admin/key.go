package admin

import (
	"context"
	"net/http"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// keyState is how full a key is under a rule.
type keyState struct {
	Rule       string   `json:"rule"`
	Shadow     bool     `json:"shadow,omitempty"` // the rule refuses nothing
	Text       string   `json:"text"`             // of the limit that decides
	Limit      int64    `json:"limit"`
	Remaining  int64    `json:"remaining"`
	RetryAfter *float64 `json:"retry_after"`     // seconds until a unit is admitted; null for never
	ResetAfter float64  `json:"reset_after"`     // seconds until the key is like a new one
	Cause      string   `json:"cause,omitempty"` // of a refusal: count, gap or ban
}

// The bounds of a search.
const (
	mostShown  = 200
	mostSought = 2000 // rules under which the engine is asked
)

// key says under which rules a key has used something, and which overrides concern it. Rules that no request with the key
// reaches are left out; of the others, those under which the key is unused come last.
func (h *handler) key(r *http.Request) (any, error) {
	var asked struct {
		Key string `json:"key"`
	}
	if err := read(r, &asked, "key"); err != nil {
		return nil, err
	}
	if len(asked.Key) > weir.MaxKey {
		return nil, wrong("the key has %d bytes, more than %d", len(asked.Key), weir.MaxKey)
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	var reached []weir.Request
	var plans []bool // whether one may put another limit in place of each
	named, config := h.Rules()
	more := 0
	for _, rule := range named {
		if _, _, missed := miss(&override.Entry{Key: asked.Key}, rule, config); missed {
			continue
		}
		if len(reached) == mostSought {
			more++
			continue
		}
		q, planned := h.request(rule, asked.Key)
		reached, plans = append(reached, q), append(plans, planned)
	}
	since := h.answered()
	used, unused, err := h.states(ctx, reached, plans)
	if err != nil {
		return nil, err
	}
	all := append(used, unused...)
	more += max(len(all)-mostShown, 0)
	return struct {
		Key       string           `json:"key"`
		Rules     []keyState       `json:"rules"`
		More      int              `json:"more"`
		Overrides []override.Entry `json:"overrides"`
		Warnings  []string         `json:"warnings,omitempty"`
	}{asked.Key, all[:min(len(all), mostShown)], more, h.concerning(asked.Key), h.away(since)}, nil
}

// states asks how full a key is under rules, in one call of the engine.
func (h *handler) states(ctx context.Context, requests []weir.Request, plans []bool) (used, unused []keyState, err error) {
	used = []keyState{}
	by := h.Overrides.Requests(append([]weir.Request(nil), requests...))
	calls, results := make([]weir.Call, len(requests)), make([]weir.Result, len(requests))
	for i := range requests {
		calls[i] = weir.Call{Op: weir.OpPeek, Requests: requests[i : i+1 : i+1]}
	}
	if len(calls) > 0 {
		if err := h.Engine.Each(ctx, calls, results); err != nil {
			return nil, nil, err
		}
	}
	for i, result := range results {
		if result.Err != nil {
			return nil, nil, result.Err
		}
		d, s := result.Decision, keyStateOf(by[i], result.Decision)
		s.Shadow = h.isShadow(s.Rule)
		if plans[i] && by[i] == requests[i] {
			s.Text += ", unless a plan gives another"
		}
		if d.Allowed && d.Remaining >= d.Limit {
			unused = append(unused, s)
		} else {
			used = append(used, s)
		}
	}
	return used, unused, nil
}

// keyStateOf returns how full the key of a request is, by the answer to a peek.
func keyStateOf(q weir.Request, d weir.Decision) keyState {
	s := keyState{Rule: q.Rule.Name(), Text: rules.LimitText(q.Rule), Limit: d.Limit, Remaining: d.Remaining, ResetAfter: d.ResetAfter.Seconds(), Cause: d.Cause.String()}
	if wait := d.RetryAfter.Seconds(); d.RetryAfter != weir.Never {
		s.RetryAfter = &wait
	}
	return s
}

// concerning returns the overrides that concern a key.
func (h *handler) concerning(key string) []override.Entry {
	entries := []override.Entry{}
	for _, e := range h.Overrides.Entries() {
		if e.Key == key || e.Prefix && strings.HasPrefix(key, e.Key) {
			entries = append(entries, e)
		}
	}
	return entries
}

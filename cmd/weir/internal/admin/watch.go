package admin

import "net/http"

// whatIf tries another limit on the requests of the last minutes.
func (h *handler) whatIf(r *http.Request) (any, error) {
	var asked struct {
		Rule  string `json:"rule"`
		Limit string `json:"limit"`
	}
	if err := read(r, &asked, "rule", "limit"); err != nil {
		return nil, err
	}
	if _, err := h.rule(asked.Rule); err != nil {
		return nil, err
	}
	w, err := h.Live.WhatIf(asked.Rule, asked.Limit)
	if err != nil {
		return nil, errWrong{err}
	}
	return w, nil
}

// refusals returns the last refused requests of a rule.
func (h *handler) refusals(r *http.Request) (any, error) {
	var asked struct {
		Rule string `json:"rule"`
	}
	if err := read(r, &asked, "rule"); err != nil {
		return nil, err
	}
	if _, err := h.rule(asked.Rule); err != nil {
		return nil, err
	}
	return map[string]any{"requests": h.Live.Refusals(asked.Rule)}, nil
}

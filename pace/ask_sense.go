package pace

import (
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// An engine is the code of a stranger: what it says is looked at before the queue relies on it.

// keeps asks the lines whether they decide callers of the requests.
func (a *asking) keeps(requests []weir.Request) (lane int, kept bool, err error) {
	err = guarded(func() error {
		lane, kept = a.lines.Keeps(requests...)
		return nil
	})
	return lane, kept && err == nil, err
}

// hears reports whether signals reach the process.
func (a *asking) hears() (hears bool) {
	_ = guarded(func() error { hears = a.lines.Hears(); return nil })
	return hears
}

// askLines asks the lines.
func (f *flight) askLines() error {
	callers, keys := f.ask.Callers, f.ask.Keys
	err := f.asking.lines.Ask(f.ctx, &f.ask)
	if len(f.ask.Callers) != len(callers) || len(f.ask.Keys) != len(keys) {
		f.ask.Callers, f.ask.Keys = callers, keys
		return errNonsense
	}
	if err != nil {
		return err
	}
	for i, c := range f.callers {
		answer := &f.ask.Callers[i]
		answer.Requests = c.requests
		if answer.Err == nil && !sensible(answer) {
			*answer = enginekit.LineCaller{Requests: c.requests, Err: errNonsense}
		}
	}
	return nil
}

// sensible reports whether a caller goes, or is told what refuses it.
func sensible(answer *enginekit.LineCaller) bool {
	if answer.Decision.Allowed {
		answer.Stands = nil
		return true
	}
	if slices.ContainsFunc(answer.Stands, func(i int) bool { return i < 0 || i >= len(answer.Requests) || !asksForSlots(&answer.Requests[i]) }) {
		return false
	}
	return len(answer.Stands) > 0 || answer.Decision.RetryAfter > 0
}

// answered notes the answer of an engine without lines.
func (f *flight) answered(d weir.Decision, times int64) {
	first := &f.ask.Callers[0]
	switch {
	case d.Allowed && times >= 1 && times <= int64(len(f.callers)):
		f.decision, f.times = d, times
	case d.Allowed || d.RetryAfter <= 0:
		first.Err = errNonsense
	default:
		first.Decision = d
		for i, r := range first.Requests {
			if r.Rule.Name() == d.Rule && r.Key == d.Key && asksForSlots(&r) {
				first.Stands = append(first.Stands, i)
			}
		}
	}
}

package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Suggestions are limits that just meet a target on a log: token buckets of several rates, windows, and a quota a day.
// `weir replay --suggest` prints them as JSON.
//
// A suggestion has the tightest number of its form: the smallest burst or count that meets the target, or the largest one
// if the target bounds what all clients get together.
type Suggestions struct {
	Reading
	Target   string `json:"target"`
	Meaning  string `json:"meaning"` // the target in words
	Requests int64  `json:"requests"`
	Units    int64  `json:"units"`
	Keys     int    `json:"keys"`
	Peak     int64  `json:"peak"`     // the most units within a window of the clock, without a limit
	PeakIn   string `json:"peak_in"`  // that window: second, unless the target names another
	Of       string `json:"bound_of"` // the figure of a trade-off that the target bounds: refused, keys_refused or peak
	Bound    int64  `json:"bound"`    // the most that this figure may be
	// Notes say what the figures do not: that the target allows no refusal, and which limits were not tried.
	Notes    []string     `json:"notes,omitempty"`
	Proposed *Proposal    `json:"proposed,omitempty"` // nil if no limit meets the target
	Together *Together    `json:"together,omitempty"` // under a target in all
	Limits   []Suggestion `json:"suggestions"`
	Curves   []Curve      `json:"curves"` // curves of the suggested forms, or of all forms if none is
}

// Suggestion is a limit that just meets the target.
type Suggestion struct {
	Limit string `json:"limit"`
	Form  string `json:"form"` // with N for the number: fixed window N/h
	TradeOff
	Worst *KeyReport `json:"worst_key,omitempty"` // the most refused one; nil without refusals
	// Next is what the next number would have done: the smaller one, or the larger one under a target in all. It misses
	// the target. It is nil if there is none, or if it would change nothing.
	Next *TradeOff `json:"next,omitempty"`
	In1s int64     `json:"most_in_1s"` // the most that one key may take
	In1m int64     `json:"most_in_1m"`
	In1h int64     `json:"most_in_1h"`
}

// Together is what one limit for all keys together would have done. It keeps a target in all exactly.
type Together struct {
	Limit   string `json:"limit"`
	Refused int64  `json:"refused"` // requests
}

// TradeOff is what a limit of some form with this number would have done.
type TradeOff struct {
	Number      int64 `json:"number"`       // the burst of a token bucket, or the count of a window or quota
	Refused     int64 `json:"refused"`      // requests
	KeysRefused int   `json:"keys_refused"` // keys that are refused at least once
	Peak        int64 `json:"peak"`         // the most units admitted within a window of the clock, of all keys
}

// Curve shows what a larger number buys in one form.
type Curve struct {
	Form   string     `json:"form"`
	Points []TradeOff `json:"points"` // in order of number; the last one refuses nothing, unless no valid number does
}

// Suggest finds limits for a target. A target that no limit can meet has no suggestions. tell, if not nil, receives the
// progress.
func (t *Traffic) Suggest(target Target, tell func(done, of int64)) (Suggestions, error) {
	if target.text == "" {
		return Suggestions{}, errors.New("replay: suggest: the target is empty: make it with ParseTarget")
	}
	t.group()
	s := newSearch(t, target)
	result, err := s.suggest(tell)
	if err != nil {
		return Suggestions{}, fmt.Errorf("replay: suggest: %w", err)
	}
	return result, nil
}

// suggest finds the number of each form first, and then the curves of those that remain.
func (s *search) suggest(tell func(done, of int64)) (Suggestions, error) {
	result := s.result()
	buckets := s.buckets()
	windows, leftOut := s.windows()
	done, all := int64(0), int64(len(buckets)+len(windows))
	step := func() {
		if done++; tell != nil {
			tell(done, all)
		}
	}
	works, found, err := s.tryAll(buckets, step)
	if err != nil {
		return result, err
	}
	others, counts, err := s.tryAll(windows, step)
	if err != nil {
		return result, err
	}
	result.Limits = append(frontier(found), counts...)
	if result.Together, err = s.together(); err != nil {
		return result, err
	}
	result.Notes, result.Proposed = s.notes(result, leftOut), s.propose(result)
	result.Curves, err = s.curves(append(works, others...), result.Limits)
	return result, err
}

// tryAll finds the number of each form. A form that cannot meet the target has no suggestion.
func (s *search) tryAll(families []family, step func()) (works []*work, found []Suggestion, err error) {
	for _, f := range families {
		w, err := s.work(f)
		if err != nil {
			return nil, nil, err
		}
		works = append(works, w)
		suggestion, ok, err := w.suggestion()
		if err != nil {
			return nil, nil, err
		}
		if ok {
			found = append(found, suggestion)
		}
		step()
	}
	return works, found, nil
}

// result returns the figures of the log and of the target.
func (s *search) result() Suggestions {
	return Suggestions{
		Reading: s.traffic.reading(),
		Target:  s.target.text, Meaning: s.target.Meaning(), Requests: s.requests, Units: s.units, Keys: len(s.totals),
		Peak: s.peak, PeakIn: s.target.span(), Of: s.target.bounds(), Bound: s.bound, Limits: []Suggestion{}, Curves: []Curve{},
	}
}

// frontier removes every suggestion that another one beats: it refuses no more, gives one key no more within a second, a
// minute and an hour, and is better in one of them.
func frontier(all []Suggestion) []Suggestion {
	kept := []Suggestion{}
	for _, a := range all {
		if !slices.ContainsFunc(all, func(b Suggestion) bool { return b.beats(a) }) {
			kept = append(kept, a)
		}
	}
	slices.SortStableFunc(kept, func(a, b Suggestion) int { return cmp.Compare(a.In1s, b.In1s) })
	return kept
}

func (s Suggestion) beats(other Suggestion) bool {
	noWorse := s.Refused <= other.Refused && s.In1s <= other.In1s && s.In1m <= other.In1m && s.In1h <= other.In1h
	better := s.Refused < other.Refused || s.In1s < other.In1s || s.In1m < other.In1m || s.In1h < other.In1h
	return noWorse && better
}

// Name names the keys of the suggestions that name knows.
func (s *Suggestions) Name(name func(key string) string) {
	for i := range s.Limits {
		if k := s.Limits[i].Worst; k != nil {
			k.Name = name(k.Key)
		}
	}
}

// DrawnCurves returns the curves for a picture. It leaves out token buckets between the one of the lowest rate, the one of
// the highest, and the proposed one.
func (s Suggestions) DrawnCurves() (drawn []Curve) {
	bucket := func(c Curve) bool { return strings.HasPrefix(c.Form, "token bucket") }
	for i, c := range s.Curves {
		first, last := i == 0, i+1 == len(s.Curves) || !bucket(s.Curves[i+1])
		if !bucket(c) || first || last || s.Proposed != nil && c.Form == s.Proposed.Form {
			drawn = append(drawn, c)
		}
	}
	return drawn
}

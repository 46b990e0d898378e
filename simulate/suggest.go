package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// Suggestions are the token buckets that meet a target on a log: for each of several rates the burst that just does.
// `weir replay --suggest` prints them as JSON.
type Suggestions struct {
	Target   string       `json:"target"`
	Requests int64        `json:"requests"`
	Units    int64        `json:"units"`
	Keys     int          `json:"keys"`
	Peak     int64        `json:"peak"` // the most units within a second of the clock, without a limit
	Limits   []Suggestion `json:"suggestions"`
	Curves   []Curve      `json:"curves"`
}

// Suggestion is a limit on the frontier: no other suggestion refuses as few requests and gives one key as little within
// a second, a minute and an hour.
type Suggestion struct {
	Limit string `json:"limit"`
	TradeOff
	In1s int64 `json:"most_in_1s"` // the most that one key may take: burst + rate × time
	In1m int64 `json:"most_in_1m"`
	In1h int64 `json:"most_in_1h"`
}

// TradeOff is what a token bucket of some rate and this burst would have done.
type TradeOff struct {
	Burst       int64 `json:"burst"`
	Refused     int64 `json:"refused"`      // requests
	KeysRefused int   `json:"keys_refused"` // keys that are refused at least once
	Peak        int64 `json:"peak"`         // the most units admitted within a second of the clock, of all keys
}

// Curve shows what a larger burst buys at one rate.
type Curve struct {
	Rate   string     `json:"rate"`
	Points []TradeOff `json:"points"` // in order of burst
}

// Suggest finds token buckets for a target. A target that no limit can miss, or that none can meet, has no suggestions.
func (t *Traffic) Suggest(target Target, tell func(done, of int64)) (Suggestions, error) {
	if target.text == "" {
		return Suggestions{}, errors.New("simulate: suggest: the target is empty: make it with ParseTarget")
	}
	t.events.group(len(t.keys))
	s := newSearch(t, target)
	result := Suggestions{Target: target.text, Requests: int64(t.events.count), Units: s.units, Keys: len(t.keys), Peak: s.peak, Limits: []Suggestion{}, Curves: []Curve{}}
	rates := s.rates()
	for i, rate := range rates {
		found, curve, ok, err := s.at(rate)
		if err != nil {
			return Suggestions{}, fmt.Errorf("simulate: suggest: %w", err)
		}
		if len(curve.Points) > 0 {
			result.Curves = append(result.Curves, curve)
		}
		if ok {
			result.Limits = append(result.Limits, found)
		}
		if tell != nil {
			tell(int64(i+1), int64(len(rates)))
		}
	}
	result.Limits = frontier(result.Limits)
	return result, nil
}

// frontier removes every suggestion that another one beats, or equals, in all respects.
func frontier(all []Suggestion) []Suggestion {
	kept := []Suggestion{}
	for i, a := range all {
		beaten := slices.ContainsFunc(all, func(b Suggestion) bool { return b.beats(a) })
		if !beaten && !slices.ContainsFunc(all[:i], func(b Suggestion) bool { return b == a }) {
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

// suggestion describes a token bucket.
func suggestion(rate weir.Rate, found TradeOff) Suggestion {
	within := func(d time.Duration) int64 { return found.Burst + unitsIn(rate, d) }
	return Suggestion{
		Limit: weir.TokenBucket{Rate: rate, Burst: found.Burst}.String(), TradeOff: found,
		In1s: within(time.Second), In1m: within(time.Minute), In1h: within(time.Hour),
	}
}

package replay

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
)

// Candidate is a limit to try, or several limits that one decision combines.
type Candidate struct {
	Text   string // as given
	Limits []weir.Limit
}

// ParseCandidate reads the text form of one limit, or of several joined by "and". It accepts a limit that rules
// refuse, which must stand alone; the replay then uses one limiter for each key. The error is that of
// [weir.ParseLimits] or of [weir.NewRule].
func ParseCandidate(text string) (Candidate, error) {
	limits, err := weir.ParseLimits(text)
	if err != nil {
		return Candidate{}, err
	}
	c := Candidate{Text: text, Limits: limits}
	_, err = tape.Of(limits...)
	return c, err
}

// Rate returns the rate of the first limit that has one, or a rate of 0.
func (c Candidate) Rate() weir.Rate {
	for _, limit := range c.Limits {
		if rate := weir.Describe(limit).Rate; rate.Period > 0 {
			return rate
		}
	}
	return weir.Rate{}
}

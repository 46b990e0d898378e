package playground

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/explain"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/replay"
)

// Explained is a limit in plain words, as weir check has them.
type Explained struct {
	Limit    string `json:"limit"`
	Capacity string `json:"capacity"`
	Burst    string `json:"burst"`
	Worst    string `json:"worst"`
	Memory   string `json:"memory"`
}

// check explains the limits of a text.
func check(text string) ([]Explained, error) {
	limits, err := limitsOf(text)
	if err != nil {
		return nil, err
	}
	all := []Explained{}
	for _, limit := range limits {
		e := explain.Of(limit)
		all = append(all, Explained{limit.String(), e.Capacity, e.Burst, e.Worst, e.Memory})
	}
	return all, nil
}

// limitsOf reads a text with the errors and hints of weir check.
func limitsOf(text string) ([]weir.Limit, error) {
	candidate, err := replay.ParseCandidate(text)
	if err != nil {
		return nil, plain.LimitError("check", err, plain.LimitForms)
	}
	return candidate.Limits, nil
}

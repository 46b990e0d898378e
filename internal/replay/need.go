package replay

import (
	"fmt"
	"math"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
)

// numbered is a limit by its one number: the burst of a token bucket, or the count of a window.
type numbered struct {
	what   string
	number int64
	most   int64 // the largest that is valid
	with   func(n int64) weir.Limit
}

func numberOf(limit weir.Limit) (of numbered, ok bool) {
	counted := func(what string, r weir.Rate, with func(weir.Rate) weir.Limit) (numbered, bool) {
		return numbered{what, r.Count, min(weir.MaxCount, int64(r.Period)), func(n int64) weir.Limit { return with(weir.Per(n, r.Period)) }}, true
	}
	switch l := limit.(type) {
	case weir.TokenBucket:
		return numbered{"burst", l.Burst, weir.MaxCount, func(n int64) weir.Limit { l.Burst = n; return l }}, true
	case weir.FixedWindow:
		return counted("count", l.Rate, func(r weir.Rate) weir.Limit { l.Rate = r; return l })
	case weir.FirstWindow:
		return counted("count", l.Rate, func(r weir.Rate) weir.Limit { l.Rate = r; return l })
	case weir.SlidingWindow:
		return counted("count", l.Rate, func(r weir.Rate) weir.Limit { l.Rate = r; return l })
	case weir.Quota:
		return numbered{"count", l.Count, weir.MaxCount, func(n int64) weir.Limit { l.Count = n; return l }}, true
	}
	return numbered{}, false
}

// WithNumber returns a limit with another burst or count, as text, and the name of the number. It returns "" for a limit
// that has no such number.
func WithNumber(limit weir.Limit, number int64) (text, what string) {
	of, ok := numberOf(limit)
	if !ok {
		return "", ""
	}
	return fmt.Sprint(of.with(number)), of.what
}

// Enlarged returns a limit whose burst or count is a factor, of 1 or more, times as large, rounded up. ok is false for a limit
// without such a number.
func Enlarged(limit weir.Limit, factor float64) (number int64, ok bool) {
	of, ok := numberOf(limit)
	if !ok {
		return 0, false
	}
	if larger := math.Ceil(float64(of.number)*factor - 1e-9); larger < float64(of.most) {
		return max(of.number, int64(larger)), true
	}
	return of.most, true
}

// Need returns the smallest burst or count that would have made a limit refuse none of the events of a key, which are in
// order of time. ok is false for a limit without such a number, and if none is large enough.
//
// As long as everything is admitted, the used units of a key do not depend on the number. So Need takes everything from a limit that is large
// enough, and looks how much of it was ever missing.
func Need(limit weir.Limit, events []Event) (number int64, ok bool) {
	of, ok := numberOf(limit)
	if !ok || len(events) == 0 {
		return 0, false
	}
	ample := int64(1)
	for _, e := range events {
		if ample += int64(e.Cost); ample > of.most {
			ample = of.most
			break
		}
	}
	limits, err := tape.Of(of.with(ample))
	if err != nil {
		return 0, false
	}
	least := ample
	for _, e := range events {
		d, err := limits.Take(e.At, "", int64(e.Cost))
		if err != nil || !d.Allowed {
			return 0, false
		}
		least = min(least, d.Remaining)
	}
	return max(1, ample-least), true
}

package weir

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/line"
)

// Decision is the answer to a call about one key or several. It describes the key after the operation.
type Decision struct {
	// Allowed reports whether the cost was admitted, or after Peek whether it would be.
	Allowed bool
	// Unrecorded reports that a Record counted nothing, because a log or gate would have too many entries.
	Unrecorded bool
	// LimitIndex is the index in Rule.Limits of the binding limit, in the rule of the binding request: the one that
	// refuses, or otherwise the one with the least remaining. Limit and Remaining describe it. If a Ban refuses, it is the
	// tightest of the other limits.
	LimitIndex uint8
	// RefusedBy is the index in Rule.Limits of the limit that refuses: the first limit in the binding request's rule with
	// the longest wait, a Ban before others. Cause says whether its count, its gap or a ban refuses. Both are 0 if Allowed.
	RefusedBy uint8
	Cause     Cause
	// BanBegun reports that this call began the ban that refuses it.
	BanBegun bool
	// Rule and Key name the binding request. After a refusal, that is the refused request with the longest wait;
	// otherwise it is the request with the least remaining. A Limiter leaves both empty.
	Rule, Key string
	// Limit is the capacity: the largest cost that a fresh key admits. With several limits, it is that of the limit
	// with the least remaining.
	Limit int64
	// Remaining is the largest cost that the key admits at this instant.
	Remaining int64
	// RetryAfter is 0 if allowed. Otherwise it is the shortest wait after which the same call is admitted, rounded up
	// to a nanosecond, if the key is not used meanwhile. Never means that the cost can never fit, or that the wait is
	// unknown (a Concurrency without a Lease) or longer than 292 years.
	RetryAfter time.Duration
	// ResetAfter is the time until the key is indistinguishable from a new one.
	ResetAfter time.Duration
	// LimitReset is the time until the binding limit alone is indistinguishable from a new one: see LimitIndex. It is at
	// most ResetAfter.
	LimitReset time.Duration
	// Delay is the time to wait before going ahead: for the turn of a LeakyBucket, or for the instant of a
	// reservation in process. It is 0 in every other answer.
	Delay time.Duration
}

// Cause is the part of a limit that refuses a cost.
type Cause uint8

const (
	// ByCount is the cause of a refusal whose wait ends when units come back, and of a cost that can never fit.
	ByCount Cause = 1 + iota
	// ByGap is the cause of a refusal whose wait is the rest of a SlidingLog's Gap, if the units have come back by then.
	ByGap
	// ByBan is the cause of a refusal by a [Ban]. The key is banned for RetryAfter. Limit and Remaining are those of the
	// other limits of its rule; nothing remains.
	ByBan
)

var causeNames = [...]string{"", "count", "gap", "ban"}

// String returns count, gap or ban, and nothing for the zero Cause.
func (c Cause) String() string { return causeNames[min(c, ByBan)] }

// MarshalText returns the text of String.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the text of String.
func (c *Cause) UnmarshalText(text []byte) error {
	i := slices.Index(causeNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("weir: cause %q is not count, gap or ban", text)
	}
	*c = Cause(i)
	return nil
}

// invalidCost is the answer to a negative cost. Only it and a DenyAll have a Limit of 0.
var invalidCost = decision(line.Never)

func decision(a algorithm.Answer) (d Decision) {
	d.describe(&a)
	return d
}

// describe copies an answer to d, which the caller returns: one more copy would wait until all its words are in the cache.
func (d *Decision) describe(a *algorithm.Answer) {
	d.Allowed, d.Unrecorded, d.Limit, d.Remaining = a.Allowed, a.Unrecorded, a.Limit, a.Remaining
	d.RetryAfter, d.ResetAfter = time.Duration(a.RetryAfter), time.Duration(a.ResetAfter)
	d.LimitIndex, d.LimitReset, d.Delay = a.Ordinal, time.Duration(a.LimitReset), time.Duration(a.Delay)
	if !a.Allowed {
		d.RefusedBy, d.Cause = a.Ordinal, ByCount
		switch {
		case a.ByGap:
			d.Cause = ByGap
		case a.ByBan:
			d.Cause, d.BanBegun = ByBan, a.Begun
			d.LimitIndex += uint8(a.Beside)
		}
	}
}

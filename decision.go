package weir

import (
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/line"
)

// Decision answers one question about one key, or about several at once.
// It describes the key right after the operation; a Peek, the key untouched.
type Decision struct {
	// Allowed says that the cost was admitted (after Peek: would be).
	Allowed bool
	// Rule and Key name the binding request of a refusal: of those that
	// refused, the one that frees last. If allowed, the tightest: the one with
	// the least remaining. Both are empty in the answers of a Limiter.
	Rule, Key string
	// Limit is the capacity: the largest cost that a fresh key admits. Of
	// several limits, that of the one with the least remaining.
	Limit int64
	// Remaining is the largest cost that would be admitted at this instant.
	Remaining int64
	// RetryAfter is 0 if allowed, else the shortest wait after which the same
	// cost is admitted if nothing else happens to the key, rounded up to a
	// nanosecond. Never means that the cost can never fit, or that the end of
	// the wait is unknown (a Concurrency without a Lease) or over 292 years away.
	RetryAfter time.Duration
	// ResetAfter is the wait until the key is as good as never seen.
	ResetAfter time.Duration
	// Delay is how long the caller must hold before going ahead: for the turn
	// of a LeakyBucket, or until the instant of a reservation in process. It is 0
	// in every other answer.
	Delay time.Duration
}

// invalidCost is the answer to a negative cost. No real decision has a Limit of
// 0.
var invalidCost = decision(line.Never)

func decision(a algorithm.Answer) (d Decision) {
	d.describe(&a)
	return d
}

// describe writes what a says into d.
func (d *Decision) describe(a *algorithm.Answer) {
	d.Allowed, d.Limit, d.Remaining = a.Allowed, a.Limit, a.Remaining
	d.RetryAfter, d.ResetAfter = time.Duration(a.RetryAfter), time.Duration(a.ResetAfter)
	d.Delay = time.Duration(a.Delay)
}

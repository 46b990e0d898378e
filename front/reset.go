package front

import (
	"time"

	"github.com/weirflow/weir"
)

// ResetAt returns the end of the window of a quota that refuses a cost for a time, as a time of its zone. It is the
// boundary nearest to the end of that time, because the clock of an engine can differ from that of this machine. It is
// zero for other limits, and for a cost that can never fit.
func ResetAt(quota weir.Limit, retryAfter time.Duration) time.Time {
	if retryAfter == weir.Never {
		return time.Time{}
	}
	at := time.Now().Add(retryAfter)
	start, end, ok := weir.Kit.CalendarWindow(quota, at)
	if ok && at.Sub(start) < end.Sub(at) {
		return start
	}
	return end
}

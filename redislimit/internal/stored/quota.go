package stored

import (
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/enginekit"
)

// quota finds the boundaries of windows for the script, which has no zone data.
type quota struct {
	functions enginekit.Functions
	recent    atomic.Pointer[Boundaries]
}

// Boundaries are those of two windows, one behind the other, in us.
type Boundaries [3]int64

// late is how far the clock of a server may be behind the expected time without another round trip. If it is
// ahead, the second window covers that.
const late = int64(time.Minute / Tick)

// around returns the boundaries for a server that shows about an instant.
func (q *quota) around(now int64) Boundaries {
	now -= late
	if b := q.recent.Load(); b != nil && b[0] <= now && now < b[1] {
		return *b
	}
	var b Boundaries
	b[0], b[1], _ = q.functions.Window(now)
	_, b[2], _ = q.functions.Window(b[1])
	q.recent.Store(&b)
	return b
}

// Around returns the boundaries of a quota for a server that shows about an instant.
func (l *Limit) Around(now int64) Boundaries { return l.quota.around(now) }

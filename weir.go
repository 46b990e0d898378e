// Package weir limits rates, exactly.
//
// A limit is a pure state machine. Start with [New] for one subject:
//
//	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 20})
//	if lim.Allow() { … }
//
// and with a [Rule] over an [Engine] for many keys, several limits at once, or
// a limit that must hold across machines:
//
//	login, err := weir.NewRule("login", weir.TokenBucket{Rate: weir.PerMinute(5)})
//	engine := weir.NewMemory(weir.MemoryOptions{})
//	d, err := engine.Take(ctx, login.For("alice", 1))
//
// Guarantees: every decision is integer arithmetic and exact to the
// nanosecond; a retry after exactly [Decision.RetryAfter] is admitted and one
// nanosecond earlier is not, if nothing else happened to the key; what is
// refused writes nothing (save [SlidingLog] with CountDenied); several limits
// are taken all or nothing; time that runs backwards never adds budget. A
// refusal is a value; an error means that no decision could be made.
//
// Everything exported here is safe for concurrent use unless it says
// otherwise. The package imports only the standard library.
package weir

import (
	"math"
	"time"

	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
)

// Never is the wait that does not end: the RetryAfter of a cost that can never
// fit. It is the largest Duration, so a wait that is too long to be told (above
// 292 years) reads the same.
const Never time.Duration = math.MaxInt64

// The bounds of what can be limited. Whatever lies outside is refused when the
// limit is made, with a [*LimitError]. An engine may hold less: [Engine.Check].
const (
	MaxCount  = 1 << 53        // units: counts, bursts and queues
	MaxPeriod = rule.MaxPeriod // 366 days: the period of a rate
	MaxRate   = 1_000_000_000  // units per second, so one per nanosecond
)

// The bounds of what can be asked.
const (
	MaxKey      = table.MaxKey     // 4096 bytes of a key
	MaxRequests = rule.MaxRequests // 128 requests in one all-or-nothing decision
)

// Package weir limits rates, exactly.
//
// Choose the type by what you limit:
//
//   - [Limiter] holds one limit for one subject: an API you call, a queue, a worker. Allow and Take decide at once,
//     Wait blocks until the caller's turn, in order of arrival, and Reserve takes a later instant.
//   - [Keyed] holds a limit for each of many keys of any comparable type, with the same verbs.
//   - A [Rule] names one or several limits. An [Engine] decides on requests under rules, all or nothing: [Memory] in
//     this process, package redislimit across machines. Its Reserve is for a cost that is known only afterwards.
//
// One subject:
//
//	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 20})
//	if lim.Allow() { … }
//	err = lim.Wait(ctx)
//
// Many keys, several limits:
//
//	login, err := weir.ParseRule("login=token bucket 5/m and fixed window 100/d")
//	engine := weir.NewMemory(weir.MemoryOptions{})
//	d, err := engine.Take(ctx, login.For("alice", 1))
//	if !d.Allowed { … d.RetryAfter … }
//
// Package httplimit limits requests in front of net/http handlers. Package pace runs calls, sequences, channels and
// streams at the speed of a Limiter or a key. Package enginekit makes an Engine over any store, and package limittest
// tests it. Package simulate tries limits on access logs and made-up traffic.
//
// The words, here and in every package:
//
//	take           admit the cost now, or refuse it
//	take up to     take the requests as many times as they fit
//	reserve        take now, and settle the true cost later
//	reserve ahead  reserve the earliest instant within a bound; Reserve of a Limiter and a Keyed has that bound, too
//	booking        what was reserved ahead; a limit that can be reserved ahead is bookable
//	wait           take in order of arrival, as soon as the limit admits it
//	acquire        wait and reserve
//	peek           the answer of a take, which takes nothing
//	record         count a cost, whether or not it fits
//	return         give units back
//	reset          forget a key
//
// Every decision is integer arithmetic and exact to the nanosecond, except that [Bursty] and [WarmUp] compute like
// Guava. If nothing else happens to the key, a retry after exactly [Decision.RetryAfter] is admitted, and a retry one
// nanosecond earlier is not. A refusal writes nothing, except in a [SlidingLog] with CountDenied. Several limits are
// taken all or nothing. Time that runs backwards never adds units. A refusal is a value; an error means that the
// engine could not decide.
//
// Everything exported here is safe for concurrent use unless it says otherwise.
// The package imports only the standard library.
//
// # For authors of engines and fronts
//
// Package enginekit is for them. This package has the parts that it uses itself: [EngineKit], [Batch], [Next],
// [SlotKeeper], [Memory.OnReturn], [Memory.PeekAfter] and [Memory.Renew]. No other program needs these.
package weir

import (
	"math"
	"time"

	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/table"
)

// Never is the RetryAfter of a cost that can never fit. It is the largest Duration, so a wait of more than 292 years
// reads the same.
const Never time.Duration = math.MaxInt64

// The bounds of a limit. A limit outside them is a [*LimitError]. An engine may hold less: see [Engine.Check].
const (
	MaxCount  = 1 << 53            // units: counts, bursts and queues
	MaxPeriod = compiled.MaxPeriod // 366 days: the period of a rate
	MaxRate   = 1_000_000_000      // units per second: one per nanosecond
)

// The bounds of a request.
const (
	MaxKey      = table.MaxKey         // bytes of a key: 4096
	MaxRequests = compiled.MaxRequests // requests in one all-or-none decision: 128
)

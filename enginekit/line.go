package enginekit

import (
	"context"
	"time"

	"github.com/weirflow/weir"
)

// LineKeeper is an optional ability of an engine that several processes share. It keeps a line for each key that
// callers of several processes wait for, so that they go in order of arrival. [github.com/weirflow/weir/pace.Queue]
// calls it; docs/why/queues.md has the rules of a line.
type LineKeeper interface {
	// EnterLines returns the lines for one process, such as a queue. It calls hear with every signal that reaches the
	// process. hear must not block.
	EnterLines(hear func(LineSignal)) Lines
}

// Lines are what a process knows of the lines of an engine. A line has at most one entry for each process: the age of
// its oldest waiting caller, and how many units its callers want. All methods are safe for concurrent use.
type Lines interface {
	// Keeps reports whether one call can decide callers with these requests, and on which lane: all callers and keys of an
	// ask have one lane, so that it has one answer.
	Keeps(requests ...weir.Request) (lane int, kept bool)

	// Ask decides the callers of ask, the oldest first, and writes the answers into it. A caller is admitted if all its
	// requests are, and if no older caller of another process wants the slots. It also tells the lines what the other
	// callers of the process want.
	//
	// After an error, each caller may have been admitted. The process repeats the ask with the same leases until it has
	// an answer: Ask recognises callers that it has admitted before.
	Ask(ctx context.Context, ask *LineAsk) error

	// Book books instants for the callers of book, the oldest first, and writes the answers into it. An error means that
	// some may have been booked, and that their units stay spent.
	Book(ctx context.Context, book *LineBook) error

	// Hears reports whether signals reach the process now.
	Hears() bool
}

// LineCaller is a waiting caller of a process.
type LineCaller struct {
	Requests []weir.Request
	Lease    uint64    // that holds its slots
	Since    time.Time // when it came
	Stays    bool      // it keeps the units of the keys that admit it while another key refuses it

	// The answer.

	Decision weir.Decision // for a refusal by a rate alone, RetryAfter is the time until that rate admits it
	Taken    []int64       // of an admission: weir.Answer.Taken
	Stands   []int         // the requests whose slots refuse it; none if a rate does
	Err      error         // the engine cannot decide these requests; nothing was taken
	// Next is the time until the rates admit the same requests again after a grant. It is 0 if the engine does not know
	// that, or if others wait for the rates: then the next caller asks at once, to have its place among them.
	Next time.Duration
	// Withdraw gives n units of a booking back.
	Withdraw func(ctx context.Context, n int64) error
}

// LineAsk is one question of a process: see [Lines.Ask].
type LineAsk struct {
	Callers []LineCaller // at most MaxLineCallers, the oldest first; may be empty
	Repeats bool         // the answer to the same ask was lost
	Keys    []LineKey    // every key of which a caller takes slots, and others; none twice
}

// MaxLineCallers bounds the callers of one ask or booking.
const MaxLineCallers = 128

// LineKey is what a process says of the slots of one key in an ask: the callers that stand for it and are not in the ask.
type LineKey struct {
	Slots weir.Request // the rule and key; Cost is that of the oldest caller
	Token uint64       // returns in signals of this key
	Since time.Time    // when the oldest came
	Want  int64        // the units that they all want; 0 if there are none

	// Keep is a caller that stays, although the slots of this key admit it, because another key refuses it: see
	// [LineCaller.Stays]. It is the oldest of the process that is not in the ask; Units is 0 if there is none.
	Keep struct {
		Lease uint64
		Since time.Time
		Units int64
	}

	LineNews // the answer
}

// LineNews is what a line tells a process.
type LineNews struct {
	Units  int64         // that are free for its callers
	MinAge time.Duration // only for callers that have waited for so long; 0 means for all
	Look   time.Duration // when to ask again without a signal; 0 means that the line names no time
	Passed bool          // it was called and did not ask in time: others went before
}

// LineSignal tells a process that units of a key are free for it.
type LineSignal struct {
	Err error // the engine was closed: all callers of the process fail with this error, and the rest means nothing

	Token  uint64
	Units  int64 // 0 means that it should ask for its oldest caller
	MinAge time.Duration
}

// LineBook is one booking of a process: see [Lines.Book].
type LineBook struct {
	// Callers have one request each, of the same rule and key. Decision.Delay is the time until a booked instant, and
	// RetryAfter the time until the instant of a refused caller, at least.
	Callers []LineCaller
	Horizon time.Duration // no instant is booked that is further ahead

	Retry time.Duration // the answer: when to book for the callers that were refused; 0 if none was
}

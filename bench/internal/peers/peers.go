// Package peers makes every compared limiter a function that decides on a key. Start with Singles and Keyeds, which list
// them.
//
// A peer does what a user of that library would write to decide on one request, and nothing else.
package peers

import "time"

// Limiter is a limiter under measurement.
type Limiter struct {
	Take  func(key string) (admitted bool, err error) // a limiter of one subject ignores the key
	Len   func() int                                  // the number of keys; nil if it does not tell
	Close func()                                      // nil if there is nothing to stop
}

// Stop stops a limiter that has something to stop.
func (l Limiter) Stop() {
	if l.Close != nil {
		l.Close()
	}
}

// Limit is the limit of a peer, in the terms of every family of algorithms, so that all peers admit or refuse the
// same calls of a mix.
type Limit struct {
	Burst  int64         // capacity of a bucket or a window
	Refill time.Duration // time in which a bucket refills one unit
	Window time.Duration // of peers that count in windows
	// Logs store each unit, so a limit that admits all units for long would measure the growth of memory. Logs use
	// these values instead.
	LogCount  int64
	LogPeriod time.Duration
}

// Kind is the role of a peer in the comparison.
type Kind int

const (
	Harness Kind = iota // the loop itself
	Floor               // the least work of such a limiter
	Ours
	Exact       // a rival that enforces its limit exactly
	Approximate // a rival that weighs two windows
)

// Peer makes limiters.
type Peer struct {
	Name string
	Kind Kind
	New  func(Limit) (Limiter, error)
	// Brief marks a peer that runs with few keys only, because another of Weir's peers represents it with many. A run
	// may override this.
	Brief bool
	// AllowedOnly marks a peer that cannot refuse.
	AllowedOnly bool
	// Tolerated is the share of calls that may have an unexpected result, because of the known flaw Flaw.
	Tolerated float64
	Flaw      string
}

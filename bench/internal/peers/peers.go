// Package peers puts every compared limiter behind one of two small interfaces, Single and Keyed. Start with Singles
// and Keyeds, which list them.
//
// An adapter does what a user of that library would write to decide on one request, and nothing else.
package peers

import "time"

// Single is a limiter of one subject.
type Single interface {
	Take() (admitted bool, err error)
}

// Keyed is a limiter of many subjects.
type Keyed interface {
	Take(key string) (admitted bool, err error)
}

// Counter is a Keyed that reports its number of keys.
type Counter interface{ Len() int }

// Closer is a peer with something to stop.
type Closer interface{ Close() }

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
	// Idle is the time after which a peer that sweeps idle keys should remove them. Default: the peer's own default.
	Idle time.Duration
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

// Info describes a peer.
type Info struct {
	Name   string
	Kind   Kind
	Module string // the module of a rival
	// Compact marks a peer that stores so little per key that ten million keys are cheap.
	Compact bool
	// Brief marks a peer that runs with few keys only, because another of Weir's peers represents it with many. A run
	// may override this.
	Brief bool
	// AllowedOnly marks a peer that cannot refuse.
	AllowedOnly bool
	// Tolerated is the share of calls that may have an unexpected result, because of the known flaw Flaw.
	Tolerated float64
	Flaw      string
}

// SinglePeer makes limiters of one subject.
type SinglePeer struct {
	Info
	New func(Limit) (Single, error)
}

// KeyedPeer makes limiters of many subjects.
type KeyedPeer struct {
	Info
	New func(Limit) (Keyed, error)
}

// Close stops a peer that has something to stop.
func Close(peer any) {
	if c, ok := peer.(Closer); ok {
		c.Close()
	}
}

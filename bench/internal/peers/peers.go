// Package peers puts every limiter that is compared behind one of two small
// interfaces, Single and Keyed. Start with Singles and Keyeds, which list them.
//
// An adapter does what a user of that library would write for "may this one go
// ahead?", and nothing else.
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

// Counter is a Keyed that can say how many keys it remembers.
type Counter interface{ Len() int }

// Closer is a peer that has something to stop.
type Closer interface{ Close() }

// Limit is what a peer is asked to hold, in the words of every family of
// algorithms, so that all of them admit or refuse the same calls of a mix.
type Limit struct {
	Burst  int64         // units at once: of a bucket, and of a window
	Refill time.Duration // a bucket gets one unit back in it
	Window time.Duration // of the peers that count in windows
	// Logs remember each unit, so a limit that admits all of them for long
	// would measure how memory grows. Theirs is this.
	LogCount  int64
	LogPeriod time.Duration
	// Idle is after how long a peer that removes idle keys by a sweep should
	// do so. Default: what the peer does by itself.
	Idle time.Duration
}

// Kind says what a peer is in the comparison.
type Kind int

const (
	Harness Kind = iota // the loop itself
	Floor               // the least that such a limiter has to do
	Ours
	Exact       // a rival that holds its limit exactly
	Approximate // a rival that weighs two windows
)

// Info names a peer and says what is known of it.
type Info struct {
	Name   string
	Kind   Kind
	Module string // the module it comes from, if it is a rival
	// Compact says that it keeps so little of a key that ten million are few.
	Compact bool
	// Brief says that it is asked about few keys alone, because with many of
	// them another of ours stands for it. A run may ask all the same.
	Brief bool
	// AllowedOnly says that it cannot refuse.
	AllowedOnly bool
	// Tolerated is the share of calls that may end otherwise than they must,
	// because of a known flaw of the peer. Flaw says which.
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

// Close stops what a peer has running.
func Close(peer any) {
	if c, ok := peer.(Closer); ok {
		c.Close()
	}
}

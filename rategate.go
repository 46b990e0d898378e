package weir

import "github.com/weirflow/weir/internal/algorithm"

// RateGate lets at most Rate.Count units go ahead in any interval of Rate.Period, in order of arrival. A waiting
// caller waits for its release, and no caller overtakes it. It works like .NET's RateGate, for any period up to
// MaxPeriod.
//
// It is exact and stores up to Rate.Count entries of 16 bytes for each busy key, or three times as many with
// bookings. At most twice Rate.Count units can be booked in advance.
type RateGate struct {
	Rate Rate
}

var _ Limit = RateGate{}

// Validate reports every field that is out of bounds.
func (l RateGate) Validate() error { return joinErrors(l.Rate.check(l.String())) }

// String prints the limit as text: rate gate 2/s.
func (l RateGate) String() string { return "rate gate " + l.Rate.String() }

// MarshalText returns the text of String.
func (l RateGate) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l RateGate) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewRateGate(l.Rate.Count, t.count("period", l.Rate.Period))
}

var rateGateKind = kind{
	name:   "rate gate",
	read:   rated(func(_ *scanner, r Rate) (Limit, error) { return RateGate{r}, nil }),
	revive: func(window string, capacity int64) Limit { return RateGate{revivedRate(window, capacity)} },
	plans:  no, delays: no, leases: no, alone: no, oneSubject: no,
}

func (RateGate) kind() *kind { return &rateGateKind }

func (l RateGate) window() string { return periodText(l.Rate.Period) }

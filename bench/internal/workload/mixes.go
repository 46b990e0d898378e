package workload

import (
	"sync"
	"time"

	"github.com/weirflow/weir/bench/internal/peers"
)

// Mix is one way to ask: about how many keys, and which of them how often.
type Mix struct {
	Name string
	Keys int     // how many there are; the peer knows all of them before
	Skew float64 // the exponent of a Zipf distribution; 0 is uniform
	// Fresh says that no key ever repeats and the peer knows none before.
	Fresh bool
	// LogPeriod keeps a log or a gate to a handful of entries for each key.
	LogPeriod time.Duration

	once      sync.Once
	sequences []*Sequence
}

// Workers is how many sequences each mix has.
const Workers = 2

const (
	window    = 30 * 24 * time.Hour
	logCount  = 1 << 20 // never reached within a LogPeriod, nor is one each ns
	zipfSkew  = 1.01
	drawsMost = 1 << 20
)

// Mixes are those of keyed limiters; the last asks about so many fresh keys.
func Mixes(fresh int) []*Mix {
	return []*Mix{
		{Name: "one key", Keys: 1, LogPeriod: time.Microsecond},
		{Name: "10k uniform", Keys: 10_000, LogPeriod: 10 * time.Millisecond},
		{Name: "1M uniform", Keys: 1_000_000, LogPeriod: time.Second},
		{Name: "1M zipf", Keys: 1_000_000, Skew: zipfSkew, LogPeriod: time.Second},
		{Name: "never seen", Keys: fresh, Fresh: true, LogPeriod: time.Second},
	}
}

// Allowed is a limit that admits every call of the mix, with states that stay
// alive for seconds after a single call. The budget of a bucket is what is
// left of nine years, which is as far as words of 64 bits commonly reach.
func (m *Mix) Allowed() peers.Limit {
	l := peers.Limit{Burst: 1e7, Refill: 10 * time.Second, Window: window, LogCount: min(logCount, int64(m.LogPeriod)), LogPeriod: m.LogPeriod}
	if m.Keys == 1 {
		l.Burst, l.Refill = 1e9, 100*time.Millisecond
	}
	return l
}

// Denied is a limit that refuses every call to a key but its first.
func (m *Mix) Denied() peers.Limit {
	return peers.Limit{Burst: 1, Refill: window, Window: window, LogCount: 1, LogPeriod: window}
}

// Sequences are the keys for each worker. Fresh keys are one sequence, to be
// divided.
func (m *Mix) Sequences() []*Sequence {
	m.once.Do(func() {
		if m.Fresh {
			m.sequences = []*Sequence{Fresh(0, m.Keys)}
			return
		}
		for worker := range uint64(Workers) {
			m.sequences = append(m.sequences, m.sequence(worker))
		}
	})
	return m.sequences
}

func (m *Mix) sequence(worker uint64) *Sequence {
	draws := min(max(16*m.Keys, 1<<12), drawsMost)
	if m.Skew > 0 {
		return Zipf(m.Keys, draws, m.Skew, worker)
	}
	return Uniform(m.Keys, draws, worker)
}

// Distinct is how many keys are expected to be asked about in so many draws,
// where keys are not fresh and the sequences do not begin anew.
func (m *Mix) Distinct(draws int) float64 {
	if m.Skew > 0 {
		return zipfDistinct(m.Keys, draws, m.Skew)
	}
	return uniformDistinct(m.Keys, draws)
}

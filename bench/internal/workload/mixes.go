package workload

import (
	"sync"
	"time"

	"github.com/weirflow/weir/bench/internal/peers"
)

// Mix is a distribution of calls over keys.
type Mix struct {
	Name string
	Keys int     // the number of keys, which the peer knows beforehand
	Skew float64 // the exponent of a Zipf distribution; 0 is uniform
	// Fresh means that no key repeats and the peer knows none beforehand.
	Fresh bool
	// LogPeriod keeps the entries of a log or a gate to a few per key.
	LogPeriod time.Duration

	once      sync.Once
	sequences []*Sequence
}

// Workers is the number of sequences of a mix.
const Workers = 2

const (
	window    = 30 * 24 * time.Hour
	logCount  = 1 << 20 // never reached within a LogPeriod, even at one per ns
	zipfSkew  = 1.01
	drawsMost = 1 << 20
)

// OneKey is the name of the mix with a single key.
const OneKey = "one key"

// Mixes returns the mixes of keyed limiters. The last has fresh new keys.
func Mixes(fresh int) []*Mix {
	return []*Mix{
		{Name: OneKey, Keys: 1, LogPeriod: time.Microsecond},
		{Name: "10k uniform", Keys: 10_000, LogPeriod: 10 * time.Millisecond},
		{Name: "1M uniform", Keys: 1_000_000, LogPeriod: time.Second},
		{Name: "1M zipf", Keys: 1_000_000, Skew: zipfSkew, LogPeriod: time.Second},
		{Name: "never seen", Keys: fresh, Fresh: true, LogPeriod: time.Second},
	}
}

// Allowed returns a limit that admits every call of the mix. Its states stay alive for seconds after a single call.
// The capacity of a bucket is limited to nine years, as far as the 64-bit words of many peers reach.
func (m *Mix) Allowed() peers.Limit {
	l := peers.Limit{Burst: 1e7, Refill: 10 * time.Second, Window: window, LogCount: min(logCount, int64(m.LogPeriod)), LogPeriod: m.LogPeriod}
	if m.Keys == 1 {
		l.Burst, l.Refill = 1e9, 100*time.Millisecond
	}
	return l
}

// Denied returns a limit that refuses every call on a key except the first.
func (m *Mix) Denied() peers.Limit {
	return peers.Limit{Burst: 1, Refill: window, Window: window, LogCount: 1, LogPeriod: window}
}

// Sequences returns the keys of each worker. Fresh keys are one sequence, which the workers divide.
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

// Distinct returns the expected number of distinct keys, for keys that are not fresh and sequences that do not
// repeat.
func (m *Mix) Distinct(draws int) float64 {
	if m.Skew > 0 {
		return zipfDistinct(m.Keys, draws, m.Skew)
	}
	return uniformDistinct(m.Keys, draws)
}

package weir

import "github.com/weirflow/weir/internal/memory"

// MemoryStats describe the contents and the history of a Memory. They are not a snapshot of one instant, because
// decisions continue meanwhile.
type MemoryStats struct {
	Keys    int    // states of keys, including idle ones that are not yet evicted
	Shared  int    // states that keys share for lack of room
	MaxKeys int    // the bound on the keys of each limit
	Bytes   int    // memory of the states, without the entries of logs
	Evicted uint64 // evicted idle states
	// Overflow counts the requests decided on shared states.
	Overflow uint64
	Rules    []RuleStats // by name
}

// RuleStats are the statistics of the rules with one name.
type RuleStats struct {
	Rule string
	// Decisions count each request to take, including reservations. Refusals
	// count the requests among them that the rule refused. A refused call of
	// several requests names one rule, and counts as a refusal of that rule only.
	Decisions, Refusals uint64
	Overflow            uint64 // as in MemoryStats
}

// Stats returns the statistics of the engine.
func (m *Memory) Stats() MemoryStats {
	if m.engine == nil {
		return MemoryStats{}
	}
	s := m.engine.Stats()
	rules := make([]RuleStats, len(s.Rules))
	for i, r := range s.Rules {
		rules[i] = RuleStats(r)
	}
	return MemoryStats{Keys: s.Keys, Shared: s.Shared, MaxKeys: m.maxKeys, Bytes: s.Bytes, Evicted: s.Evicted, Overflow: s.Overflow, Rules: rules}
}

// KeyCount is a key with many decisions.
type KeyCount struct {
	Rule, Key string
	// Count is an estimate of the key's decisions. Counts halve every ten minutes,
	// so that they describe recent traffic.
	//
	// Overcount bounds how much of Count may belong to keys that the list has
	// dropped. In addition, Count comes from samples, on average one decision of
	// 128 and more of the first ones: in two cases of three it is off by less than
	// 12√Count either way.
	Count, Overcount uint64
}

// Top returns the n keys with the most decisions, and the n with the most
// refusals, at most 128 of each. Decisions are those of MemoryStats.
func (m *Memory) Top(n int) (busiest, refused []KeyCount) {
	if m.engine == nil {
		return nil, nil
	}
	most, mostRefused := m.engine.Top(n)
	return keyCounts(most), keyCounts(mostRefused)
}

func keyCounts(from []memory.KeyCount) []KeyCount {
	counts := make([]KeyCount, len(from))
	for i, c := range from {
		counts[i] = KeyCount(c)
	}
	return counts
}

package algorithm_test

import (
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
)

// A smaller limit, and what is recorded or refused under it, drops nothing that
// counts under the limit before.
func TestALogKeepsItsEntriesUnderASmallerLimit(t *testing.T) {
	logs := func(limit int64) algorithm.Algorithm { return algorithm.NewSlidingLog(limit, second, 0, false) }
	denied := func(limit int64) algorithm.Algorithm { return algorithm.NewSlidingLog(limit, second, 0, true) }
	begins := func(limit int64) algorithm.Algorithm { return algorithm.NewSlidingLog(limit, second, 0, limit == 10) }
	gates := func(limit int64) algorithm.Algorithm { return algorithm.NewRateGate(limit, second) }
	for name, of := range map[string]func(limit int64) algorithm.Algorithm{"log": logs, "log with refusals": denied, "log that begins to count refusals": begins, "gate": gates} {
		large, small := of(100), of(10)
		state := large.Fresh()
		ask := func(verb func([]algorithm.Part, int64) algorithm.Answer, a algorithm.Algorithm, now, n int64) algorithm.Answer {
			parts := []algorithm.Part{{Algorithm: a, State: state, Cost: n}}
			answer := verb(parts, now)
			state = parts[0].State
			return answer
		}
		for now := range int64(100) {
			ask(algorithm.Take, large, now, 1)
		}
		for now := range int64(30) {
			ask(algorithm.Take, small, 100+now, 1)
			ask(algorithm.Record, small, 100+now, 1)
		}
		if a := ask(algorithm.Peek, large, 200, 1); a.Allowed || a.Remaining != 0 {
			t.Errorf("%s: 100 of 100 taken, then the limit was 10 for a while: %+v, want nothing left", name, a)
		}
		if a := ask(algorithm.Peek, large, second+129, 100); !a.Allowed {
			t.Errorf("%s: a period later: %+v, want all of it", name, a)
		}
	}
}

// A record over the limit counts under a larger limit. It is refused when a state
// would get too many entries.
func TestARecordOverTheLimitCountsAndIsBounded(t *testing.T) {
	const limit, most = 10, 10 + 1<<16
	for name, of := range map[string]func(limit int64) algorithm.Algorithm{
		"log":  func(limit int64) algorithm.Algorithm { return algorithm.NewSlidingLog(limit, second, 0, false) },
		"gate": func(limit int64) algorithm.Algorithm { return algorithm.NewRateGate(limit, second) },
	} {
		a := of(limit)
		parts := []algorithm.Part{{Algorithm: a, State: a.Fresh(), Cost: 2}}
		for now := range int64(most) {
			if d := algorithm.Record(parts, now); !d.Changed {
				t.Fatalf("%s: record %d of %d is refused", name, now+1, most)
			}
		}
		if d := algorithm.Record(parts, most); d.Changed || d.Allowed || d.RetryAfter != algorithm.Never {
			t.Errorf("%s: a record above the bound: %+v, want a refusal", name, d)
		}
		if d := algorithm.Record(parts, most-1); !d.Changed {
			t.Errorf("%s: a record at the newest instant needs no entry, and is refused", name)
		}
		larger := []algorithm.Part{{Algorithm: of(4 * most), State: parts[0].State.Clone()}}
		if d := algorithm.Peek(larger, most); d.Remaining != 4*most-2*most-2 {
			t.Errorf("%s: %d left under a limit of %d, want %d", name, d.Remaining, 4*most, 4*most-2*most-2)
		}
		if d := algorithm.Record(parts, second); !d.Changed {
			t.Errorf("%s: a record is refused after the oldest entry has left", name)
		}
	}
}

package word

import (
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// A refusal that the first word tells holds no entry, so that callers of an exhausted key do not wait for each other.
func TestTheFirstWordTellsARefusalUnderEachOfManyRates(t *testing.T) {
	const now, rates = int64(1_700_000_000_000_000_000), 1000
	tab := NewTable(0)
	column := tab.AddColumn(algorithm.NewTokenBucket(10, 1_000_000_000, 1), now)
	limits := make([]*Limit, rates)
	for i := range limits {
		limits[i] = column.Limit(algorithm.NewTokenBucket(10+int64(i), 1_000_000_000, 1))
	}
	for i, l := range limits {
		h := table.Hash(uint64(i+1) * 0x9e3779b97f4a7c15)
		if allowed, done := l.AllowIn(tab.Table, h, now, 1); !allowed || !done {
			t.Fatalf("rate %d: the first unit: allowed %v, done %v", i, allowed, done)
		}
		first := tab.Find(h).First()
		if l.tokens.Excess(first, uint64(l.number), l.base, now, 1) <= 0 {
			t.Errorf("rate %d: the first word does not tell that the second unit is refused", i)
		}
		if other := limits[(i+1)%rates]; other.tokens.Excess(first, uint64(other.number), other.base, now, 1) > -algorithm.PairStep {
			t.Errorf("rate %d: the first word tells a refusal under another rate, whose units are converted", i)
		}
	}
}

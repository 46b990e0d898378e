package word

import (
	"sync"
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
)

// A Use keeps the limits on the first column and on the last, whichever of its callers began first.
func TestUseFindsTheLimitsOnItsFirstAndLastColumns(t *testing.T) {
	bucket := algorithm.NewTokenBucket(10, 1_000_000_000, 5)
	var u Use
	first := NewTable(0).AddColumn(bucket, 1)
	for i, column := range []*Column{first, NewTable(0).AddColumn(bucket, 1), NewTable(0).AddColumn(bucket, 1)} {
		if l := u.OnFirst(column); l != nil {
			t.Fatalf("column %d: OnFirst found a limit before any decision", i)
		}
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				l := u.On(column, bucket)
				if l.Column != column || l.Words().Capacity() != 5 {
					t.Errorf("column %d: got a limit on another column, or of capacity %d", i, l.Words().Capacity())
				}
			})
		}
		callers.Wait()
		if l := u.On(column, bucket); l.Column != column || l != u.On(column, bucket) {
			t.Errorf("column %d: On returns another limit at each call", i)
		}
		if l := u.OnFirst(first); l == nil || l != u.On(first, bucket) || l.Column != first {
			t.Errorf("column %d: the limit on the first column is lost", i)
		}
		if l := u.OnFirst(column); (l != nil) != (i == 0) {
			t.Errorf("column %d: OnFirst found a limit: %v", i, l != nil)
		}
	}
}

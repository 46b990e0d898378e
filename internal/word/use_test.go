package word

import (
	"sync"
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
)

// A Use answers for the column that it decided on last, whichever of its callers began first.
func TestUseFindsTheLimitOnItsLastColumn(t *testing.T) {
	bucket := algorithm.NewTokenBucket(10, 1_000_000_000, 5)
	var u Use
	for range 3 { // the first column has the Limit that is in the Use
		column := NewTable(0).AddColumn(bucket, 1)
		if l := u.On(column); l != nil {
			t.Fatalf("found a limit on column %p for a new column", l.Column)
		}
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				l := u.On(column)
				if l == nil {
					l = u.Begin(column, bucket)
				}
				if l.Column != column || l.Words().Capacity() != 5 {
					t.Errorf("got a limit on another column, or of capacity %d", l.Words().Capacity())
				}
			})
		}
		callers.Wait()
		if l := u.On(column); l == nil || l.Column != column {
			t.Fatal("On does not find the limit of the last column")
		}
	}
}

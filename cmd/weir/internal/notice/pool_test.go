package notice

import (
	"testing"
	"testing/synctest"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// What a pool pays nears the quota of the pool, and not that of the rule that refused.
func TestAPoolNearsItsOwnQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chains, err := layer.Otherwise(weir.NewMemory(weir.MemoryOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		c := collect(t, chains, Options{})
		floor, pool := rule(t, "floor=quota 10/day"), rule(t, "pool=quota 20/day")
		for n := 1; n <= 31; n++ {
			q, instead := floor.For("k", 1), pool.For("", 1)
			q.Otherwise = &instead
			if d, err := c.engine.Take(t.Context(), q); err != nil || d.Allowed != (n <= 30) {
				t.Fatalf("take %d: %+v, %v", n, d, err)
			}
			floors, pools := []int64{80, 95, 100}, []int64{80, 95, 100}
			switch {
			case n < 8:
				floors = nil
			case n < 10:
				floors = floors[:1]
			}
			switch {
			case n < 26:
				pools = nil
			case n < 29:
				pools = pools[:1]
			case n < 30:
				pools = pools[:2]
			}
			check(t, "the floor", c.settle("floor", "k"), floors...)
			check(t, "the pool", c.settle("pool", ""), pools...)
		}
	})
}

package redistest

import (
	"fmt"
	"testing"
)

// A slot on its way to a node whose replica becomes the master arrives there.
func TestAMoveGoesOnAfterAFailover(t *testing.T) {
	c := StartCluster(t)
	slot := c.Slot("{a}")
	from := c.Master(slot)
	for i := range 5 {
		from.Do("SET", fmt.Sprintf("{a}%d", i), "1")
	}
	to := c.Master((slot + 1<<13) % (1 << 14))
	for s := 0; to == from; s += 1 << 10 {
		to = c.Master(s)
	}
	m := c.BeginMove(slot, to)
	m.Keys(2)
	replica := c.ReplicaOf(to)
	replica.Do("CLUSTER", "FAILOVER")
	c.await("the replica is the master", func() error { return replica.says("role:master") })
	c.await("the old master is a replica", func() error { return to.says("role:slave") })
	c.AwaitHealth()
	m.Resume()
	m.Finish()
	c.AwaitHealth()
	if got := c.Master(slot); got != replica {
		t.Errorf("the slot is on %s, want %s", got.Addr, replica.Addr)
	}
	if n := replica.Do("CLUSTER", "COUNTKEYSINSLOT", fmt.Sprint(slot)); n != int64(5) {
		t.Errorf("%v keys arrived, want 5", n)
	}
}

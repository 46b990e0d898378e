package main

import (
	"fmt"
	"github.com/weirflow/weir/bench/internal/localredis"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

// The faults of servers: of a single one, of those of Sentinels, and of a cluster.

func (b *breaker) restart(*fault) {
	b.server.Kill()
	b.wait(b.between(0, time.Second))
	b.server.Restart()
}

func (b *breaker) restartEmpty(*fault) {
	b.server.Do("FLUSHALL", "SYNC")
	b.server.Kill()
	b.wait(b.between(0, time.Second))
	b.server.Restart()
}

func (b *breaker) hang(f *fault, server *redistest.Server) {
	long := b.between(50*time.Millisecond, 2500*time.Millisecond)
	f.Detail = long.String()
	server.Stop()
	b.wait(long)
	server.Cont()
}

func (b *breaker) sentinelPause(f *fault) {
	server := b.sentinel.Master
	long := b.between(20*time.Millisecond, 250*time.Millisecond) // no reason for a failover
	f.Detail = long.String()
	server.Stop()
	b.wait(long)
	server.Cont()
}

// settled lets the time between two failovers pass.
func (b *breaker) settled(f *fault) {
	b.wait(time.Until(b.failover.Add(betweenFailovers)))
	b.unasked(0)
	f.From = now()
}

func (b *breaker) sentinelKill(f *fault) {
	b.settled(f)
	b.sentinel.Master.Kill()
	b.sentinel.AwaitFailover()
	b.wait(b.between(0, time.Second))
	since := now()
	b.sentinel.Master.Restart()
	b.follow()
	f.Both = now() - since
}

func (b *breaker) sentinelHang(f *fault) {
	b.settled(f)
	b.sentinel.Master.Stop()
	b.sentinel.AwaitFailover()
	b.wait(b.between(0, time.Second))
	since := now()
	b.sentinel.Master.Cont()
	b.follow()
	f.Both = now() - since
}

func (b *breaker) sentinelCommand(f *fault) {
	b.settled(f)
	if _, err := b.sentinel.Sentinels[0].Ask("SENTINEL", "FAILOVER", redistest.MasterSet); err != nil {
		f.Detail = "refused: " + err.Error()
		return
	}
	since := b.sentinel.AwaitPromotion().UnixMicro()
	b.sentinel.AwaitFailover()
	b.follow()
	f.Both = now() - since
}

// follow makes the old master the replica of the new one, and exchanges their names.
func (b *breaker) follow() {
	s := b.sentinel
	s.Master, s.Replica = s.Replica, s.Master
	b.rejoin()
}

// rejoin makes the replica follow the master.
func (b *breaker) rejoin() {
	s := b.sentinel
	s.Replica.Do("REPLICAOF", "127.0.0.1", fmt.Sprint(s.Master.Port))
	s.AwaitReady()
	b.failover = time.Now()
}

// victim returns the master of a random lane, and notes the lanes that it serves.
func (b *breaker) victim(f *fault) *redistest.Server {
	node := b.cluster.Master(b.slots[b.random.IntN(lanes)])
	if f.Loses {
		f.Lanes = b.lanesOn(node)
	}
	f.Detail = node.Addr
	return node
}

func (b *breaker) clusterKill(f *fault) {
	node := b.victim(f)
	node.Kill()
	b.cluster.AwaitFailover(node)
	b.wait(b.between(0, time.Second))
	node.Restart()
	b.cluster.AwaitHealth()
}

func (b *breaker) clusterHang(f *fault) {
	node := b.victim(f)
	node.Stop()
	b.wait(b.between(500*time.Millisecond, 4*time.Second))
	node.Cont()
	b.cluster.AwaitHealth()
}

// clusterCommand exchanges a master and its replica without a loss: the master waits until the replica has everything.
func (b *breaker) clusterCommand(f *fault) {
	node := b.victim(f)
	f.moves = b.lanesOn(node)
	replica := b.cluster.ReplicaOf(node)
	if replica == nil {
		f.Detail += " has no replica"
		return
	}
	if _, err := replica.Ask("CLUSTER", "FAILOVER"); err != nil {
		f.Detail += " refused: " + err.Error()
	}
	b.wait(time.Second)
	b.cluster.AwaitHealth()
}

func (b *breaker) reshard(f *fault) {
	lane := b.random.IntN(lanes)
	slot := b.slots[lane]
	from := b.cluster.Master(slot)
	to := from
	for to == from {
		to = b.cluster.Master(b.random.IntN(1 << 14))
	}
	f.moves = 1 << lane
	f.Detail = fmt.Sprintf("lane %d from %s to %s", lane, from.Addr, to.Addr)
	move := b.cluster.BeginMove(slot, to)
	b.move = move
	slowly := func() {
		for move.Keys(1+b.random.IntN(3)) > 0 && b.wait(b.between(0, 20*time.Millisecond)) {
		}
		move.Finish()
	}
	err := localredis.Recovered(slowly)
	for tries := 0; err != nil && tries < 20; tries++ { // a node may think for a moment that the cluster is down
		f.Detail += ", interrupted"
		b.wait(500 * time.Millisecond)
		b.cluster.AwaitHealth()
		err = localredis.Recovered(func() { move.Resume(); move.Finish() })
	}
	if err != nil {
		localredis.Fail(err)
	}
	b.move = nil
	b.cluster.AwaitHealth()
}

func (b *breaker) clusterFlush(f *fault) {
	node := b.victim(f)
	node.FlushScripts()
}

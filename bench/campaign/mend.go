package main

import (
	"time"

	"github.com/weirflow/weir/bench/internal/localredis"
)

// busyPatience is long, because a busy machine delays elections: a sentinel whose timer is late by two seconds takes part
// in none for 30 seconds.
const busyPatience = 90 * time.Second

// mostMends bounds how often a breaker tries to mend its servers. Each try takes at most the patience of the host.
const mostMends = 8

// unwell is the fault of servers that were not well in time after another fault. Nothing is known of what they lost
// meanwhile, so the table's grant for a loss applies.
const unwell = "servers not well in time"

// guard does something with the servers, and mends them if they do not get well in time. If they cannot be mended, the
// campaign continues without them.
func (b *breaker) guard(what string, do func()) {
	if b.given {
		return
	}
	f := fault{Kind: unwell, From: now(), Loses: true, Lanes: allLanes}
	failed := localredis.Recovered(do)
	if failed == nil {
		return
	}
	f.Detail = what + ": " + failed.Error()
	b.say("%s; mending", f.Detail)
	for tries := 1; failed != nil && !b.given; tries++ {
		failed = localredis.Recovered(b.revive)
		b.given = failed != nil && (tries == mostMends || b.ctx.Err() != nil)
	}
	f.To = now()
	f.Both = f.To - f.From
	if b.given {
		f.To = never
		f.Detail += "; given up: " + failed.Error()
		b.say("given up: %v", failed)
	}
	b.faults = append(b.faults, f)
}

// revive has all servers run, and waits until they are well. It ends the move of a slot that was interrupted.
func (b *breaker) revive() {
	switch b.number {
	case worldServer:
		b.server.Revive()
	case worldSentinel:
		s := b.sentinel
		s.Master.Revive()
		s.Replica.Revive()
		if s.Now() == s.Replica {
			s.Master, s.Replica = s.Replica, s.Master
		}
		b.rejoin()
	case worldCluster:
		for _, node := range b.cluster.Nodes {
			node.Revive()
		}
		b.cluster.AwaitHealth()
		if b.move != nil {
			b.move.Resume()
			b.move.Finish()
			b.move = nil
			b.cluster.AwaitHealth()
		}
	}
	b.look()
}

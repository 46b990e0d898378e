package main

import (
	"math/rand/v2"
	"sync/atomic"
)

// Slots that honest clients take and release. The leases outlast a run.
const (
	poolSlots = 3
	poolRule  = "pool=concurrency 3 lease 12h"
)

// pool is a key whose slots all its clients share.
type pool struct{ inside, lost atomic.Int64 }

var poolKey = request{"pool", "shared", 1}

// step takes a slot, checks that there are no more holders than slots, and releases it.
func (p *pool) step(k *worker) {
	e, known := k.ask(takePath, poolKey)
	if !known {
		p.lost.Add(1) // its slot may be held until its lease expires
		return
	}
	if !e.answer.Allowed {
		return
	}
	if n := p.inside.Add(1); n > poolSlots {
		k.world.Break(promiseBounds, "the pool has %d slots, and %d clients hold one", poolSlots, n)
	}
	pause(k.ctx, honestPace)
	p.inside.Add(-1)
	if _, known := k.ask(returnPath, poolKey); !known {
		p.lost.Add(1)
	}
}

// audit checks at the end of the run that only slots of requests without an answer are held.
func (p *pool) audit(w *world) {
	k := &worker{world: w, random: fixedRandom()}
	defer k.http.close()
	defer k.idle.close()
	ask := poolKey
	ask.Cost = 0
	e, known := k.ask(peekPath, ask)
	if held := poolSlots - e.answer.Remaining; known && (held < 0 || held > p.lost.Load()) {
		w.Break(promiseCounted, "the pool has %d slots held after all were given back, and %d requests without an answer", held, p.lost.Load())
	}
}

// fixedRandom returns the source of styles for audits.
func fixedRandom() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

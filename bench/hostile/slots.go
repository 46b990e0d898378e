package main

import (
	"math/rand/v2"
	"sync/atomic"
)

// Slots that honest clients take and release. The leases outlast a run.
const (
	ownSlots  = 4
	poolSlots = 3
	slotRule  = "slots=concurrency 4 lease 12h"
	poolRule  = "pool=concurrency 3 lease 12h"
)

// slots checks the slots of a key that a single client uses.
type slots struct {
	key  string
	held int64
}

func (s *slots) step(k *worker) {
	path, cost := takePath, 1+k.random.Int64N(2)
	if s.held > 0 && k.random.IntN(2) == 0 {
		path, cost = recordPath, -(1 + k.random.Int64N(s.held))
	}
	e, known := k.ask(path, request{"slots", s.key, cost})
	if !known {
		s.look(k, cost)
		return
	}
	if fits := s.held+cost <= ownSlots; path == takePath && e.answer.Allowed != fits {
		k.world.Break(promiseBounds, "slots, key %q: %d of %d are held, and allowed is %v for %d more", s.key, s.held, ownSlots, e.answer.Allowed, cost)
	}
	if path == recordPath || e.answer.Allowed {
		s.held += cost
	}
	if left := ownSlots - s.held; e.answer.Remaining != left {
		k.world.Break(promiseCounted, "slots, key %q: %d are left after %s of %d, and the daemon says %d", s.key, left, path, cost, e.answer.Remaining)
		s.held = ownSlots - e.answer.Remaining
	}
}

// look finds out whether a request without an answer was counted.
func (s *slots) look(k *worker, cost int64) {
	for range 10 {
		e, known := k.ask(peekPath, request{"slots", s.key, 0})
		if !known {
			continue
		}
		held := ownSlots - e.answer.Remaining
		if held != s.held && held != s.held+cost {
			k.world.Break(promiseCounted, "slots, key %q: %d were held before a request for %d without an answer, and the daemon says %d", s.key, s.held, cost, held)
		}
		s.held = held
		return
	}
}

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
	back := poolKey
	back.Cost = -1
	if _, known := k.ask(recordPath, back); !known {
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

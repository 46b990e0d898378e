package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weirflow/weir"
)

// worker makes the calls of one goroutine in a phase.
type worker struct {
	world  *world
	phase  *phase
	random *rand.Rand
	noise  []*rule
}

// work makes a number of calls.
func (k *worker) work(calls int, twins []*twin) {
	if k.phase.burst != nil {
		k.phase.burst.pour(k.world)
	}
	for range calls {
		if k.world.broken.Load() {
			return
		}
		switch pick := k.random.IntN(10); {
		case pick < 4:
			k.shared()
		case pick < 8 && k.phase.exact():
			twins[k.random.IntN(len(twins))].ask(k.world, k.random)
		default:
			k.stranger()
		}
	}
}

// shared takes of one or a few accounts, all or nothing, or each on its own.
func (k *worker) shared() {
	var picked []*account
	var requests []weir.Request
	each := k.random.IntN(3) == 0
	for range 1 + k.random.IntN(4) {
		a := k.phase.accounts[k.random.IntN(len(k.phase.accounts))]
		alone := !each && (k.phase.behind || !a.rule.plain)
		if slices.Contains(picked, a) || alone && len(picked) > 0 {
			continue
		}
		picked, requests = append(picked, a), append(requests, a.request(k.random.Int64N(4)))
		if alone {
			break
		}
	}
	if each {
		results, ok := k.world.takeEach(requests)
		for n, a := range picked {
			if ok {
				a.took(results[n].Decision.Allowed, requests[n].Cost)
			}
		}
		return
	}
	if d, ok := k.world.take(requests...); ok {
		for n, a := range picked {
			a.took(d.Allowed, requests[n].Cost)
		}
	}
}

// stranger makes any call on keys without an account.
func (k *worker) stranger() {
	r := k.noise[k.random.IntN(len(k.noise))]
	q := r.For(fmt.Sprint("stranger ", k.random.ExpFloat64()*20), k.random.Int64N(5))
	if k.random.IntN(2) == 0 {
		q.Key = fmt.Sprint("regular ", k.random.IntN(20))
	}
	switch other := k.noise[k.random.IntN(len(k.noise))]; k.random.IntN(6) {
	case 0:
		k.world.peek(q)
	case 1:
		q.Cost = k.random.Int64N(200) - 100
		k.world.record(q)
	case 2:
		k.world.reset(q)
	case 3:
		if r.plain {
			k.world.reserve(q, k.random.Int64N(10))
		}
	case 4:
		if other != r && other.plain && r.plain {
			k.world.take(q, other.For(q.Key, 1))
		}
	default:
		k.world.take(q)
	}
}

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
	own    []int64 // units that it took of each account and may give back
}

// work makes a number of calls.
func (k *worker) work(calls int, twins []*twin) {
	k.own = make([]int64, len(k.phase.accounts))
	if k.phase.burst != nil {
		k.phase.burst.pour(k.world)
	}
	for range calls {
		if k.world.broken.Load() {
			return
		}
		switch pick := k.random.IntN(10); {
		case pick < 6:
			k.one(k.random.IntN(len(k.phase.accounts)))
		case pick < 7:
			k.several()
		case pick < 8 && k.phase.exact():
			twins[k.random.IntN(len(twins))].ask(k.world, k.random)
		default:
			k.stranger()
		}
	}
}

// one makes a call on one account.
func (k *worker) one(i int) {
	a, w := k.phase.accounts[i], k.world
	can, cost := a.rule.can, k.random.Int64N(4)
	pick := k.random.IntN(10)
	if a.takesOnly {
		pick = k.random.IntN(5)
	}
	switch {
	case pick == 4:
		w.peek(a.request(cost))
	case pick == 5 && can.record && !k.phase.running:
		if _, ok := w.record(a.request(cost)); ok {
			a.net.Add(cost)
		}
	case pick <= 7 && pick > 5 && can.give && k.own[i] > 0:
		back := 1 + k.random.Int64N(k.own[i])
		if _, ok := w.record(a.request(-back)); ok {
			a.net.Add(-back)
			k.own[i] -= back
		}
	case pick == 8 && can.reserve:
		k.reserve(a, cost)
	default:
		if d, ok := w.take(a.request(cost)); ok {
			k.took(i, d.Allowed, cost)
		}
	}
}

func (k *worker) took(i int, allowed bool, cost int64) {
	k.phase.accounts[i].took(allowed, cost)
	if allowed {
		k.own[i] += cost
	}
}

// reserve settles for less, or for more where that can be recorded.
func (k *worker) reserve(a *account, cost int64) {
	actual := k.random.Int64N(cost + 1)
	if a.rule.can.record && !k.phase.running {
		actual = k.random.Int64N(2*cost + 1)
	}
	if a.rule.slots && len(a.rule.limits) > 1 {
		actual = 0 // otherwise its limits would have different uses
	}
	if allowed, ok := k.world.reserve(a.request(cost), actual); ok && allowed && !a.rule.slots {
		a.net.Add(actual)
	}
}

// several makes a call on a few accounts, all or nothing, or each on its own.
func (k *worker) several() {
	var picked []int
	var requests []weir.Request
	each := k.random.IntN(3) == 0
	for range 2 + k.random.IntN(4) {
		i := k.random.IntN(len(k.phase.accounts))
		a := k.phase.accounts[i]
		if slices.Contains(picked, i) || !each && (a.alone || !a.rule.can.together) {
			continue
		}
		picked = append(picked, i)
		requests = append(requests, a.request(k.random.Int64N(3)))
	}
	if len(requests) == 0 {
		return
	}
	if each {
		results, ok := k.world.takeEach(requests)
		for n, i := range picked {
			if ok {
				k.took(i, results[n].Decision.Allowed, requests[n].Cost)
			}
		}
		return
	}
	if d, ok := k.world.take(requests...); ok {
		for n, i := range picked {
			k.took(i, d.Allowed, requests[n].Cost)
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
	switch k.random.IntN(6) {
	case 0:
		k.world.peek(q)
	case 1:
		q.Cost = k.random.Int64N(200) - 100
		k.world.record(q)
	case 2:
		k.world.reset(q)
	case 3:
		if r.can.reserve {
			k.world.reserve(q, k.random.Int64N(10))
		}
	case 4:
		if other := k.noise[k.random.IntN(len(k.noise))]; other != r && other.can.together && r.can.together {
			k.world.take(q, other.For(q.Key, 1))
		}
	default:
		k.world.take(q)
	}
}

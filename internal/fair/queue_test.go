package fair

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
)

// waiter is a waiter of the tests.
type waiter struct {
	Node[*waiter]
	flow string
}

// line is a queue that numbers its arrivals.
type line struct {
	Queue[*waiter]
	arrived uint64
}

func (l *line) push(name string, cost, weight int64) *waiter {
	l.arrived++
	w := &waiter{Node[*waiter]{Cost: cost, Arrival: l.arrived}, name}
	l.Push(w, &w.Node, Flow{Name: name}, weight)
	return w
}

// slowOrder is start-time fair queueing on fractions, without a heap.
type slowOrder struct {
	flows   map[string]*slowFlow
	virtual *big.Rat
	arrived int
}

type slowFlow struct {
	weight        int64
	waiters       []*waiter
	start, finish *big.Rat
	headArrived   int
	arrived       map[*waiter]int
}

func (o *slowOrder) push(w *waiter, name string, weight int64) {
	f := o.flows[name]
	if f == nil {
		f = &slowFlow{weight: weight, finish: new(big.Rat), arrived: map[*waiter]int{}}
		o.flows[name] = f
	}
	o.arrived++
	f.arrived[w] = o.arrived
	if len(f.waiters) == 0 {
		f.start, f.headArrived = later(roundedUp(o.virtual, f.weight), f.finish), o.arrived
	}
	f.waiters = append(f.waiters, w)
}

// roundedUp returns the first multiple of 1/weight that is not before x.
func roundedUp(x *big.Rat, weight int64) *big.Rat {
	num := new(big.Int).Mul(x.Num(), big.NewInt(weight))
	num.Add(num, new(big.Int).Sub(x.Denom(), big.NewInt(1)))
	return new(big.Rat).SetFrac(num.Div(num, x.Denom()), big.NewInt(weight))
}

func later(x, y *big.Rat) *big.Rat {
	if x.Cmp(y) > 0 {
		return x
	}
	return y
}

func (o *slowOrder) next() *waiter {
	var first *slowFlow
	for _, f := range o.flows {
		if len(f.waiters) == 0 {
			continue
		}
		if first == nil || f.start.Cmp(first.start) < 0 || f.start.Cmp(first.start) == 0 && f.headArrived < first.headArrived {
			first = f
		}
	}
	if first == nil {
		return nil
	}
	return first.waiters[0]
}

func (o *slowOrder) serve(w *waiter) {
	f := o.flows[w.flow]
	o.virtual = f.start
	f.finish = new(big.Rat).Add(f.start, big.NewRat(w.Cost, f.weight))
	f.start = f.finish
	f.waiters = f.waiters[1:]
	if len(f.waiters) > 0 {
		f.headArrived = f.arrived[f.waiters[0]]
	}
}

func (o *slowOrder) remove(w *waiter) {
	f := o.flows[w.flow]
	for i := range f.waiters {
		if f.waiters[i] == w {
			f.waiters = append(f.waiters[:i:i], f.waiters[i+1:]...)
			return
		}
	}
}

func TestWaitersOfFlowsGoInTheOrderOfTheSlowModel(t *testing.T) {
	for seed := range randtest.Seeds(t, 60, 60) {
		r := rand.New(rand.NewPCG(seed, 3))
		o, slow := new(line), &slowOrder{flows: map[string]*slowFlow{}, virtual: new(big.Rat)}
		flows, largest := 1+r.IntN(6), []int64{1, 9, 1 << 20, fairUnits}[r.IntN(4)]
		weights := make([]int64, flows)
		for i := range weights {
			weights[i] = 1 + r.Int64N(MaxWeight)
		}
		var all []*waiter
		for op := range 2000 {
			switch pick := r.IntN(10); {
			case pick < 5:
				i := r.IntN(flows)
				name := fmt.Sprint(i)
				before := o.UnitsBefore(Flow{Name: name}, weights[i])
				w := o.push(name, 1+r.Int64N(largest), weights[i])
				slow.push(w, name, weights[i])
				if most := unitsAhead(o, w); op%16 == 0 && (before > most || before < most-int64(flows-1)*(largest-1)) {
					t.Fatalf("seed %d op %d: a newcomer has %d units before it, want %d, or less by less than a cost of each other flow", seed, op, before, most)
				}
				all = append(all, w)
			case pick == 5 && len(all) > 0:
				i := r.IntN(len(all))
				o.Withdraw(&all[i].Node)
				slow.remove(all[i])
				all = append(all[:i], all[i+1:]...)
			case len(all) > 0:
				w := o.First()
				if want := slow.next(); w != want {
					t.Fatalf("seed %d op %d: next is %+v, want %+v", seed, op, w, want)
				}
				o.Serve(&w.Node)
				slow.serve(w)
				for i := range all {
					if all[i] == w {
						all = append(all[:i], all[i+1:]...)
						break
					}
				}
			}
		}
		if got := len(slices.Collect(o.All)); got != len(all) || got != o.Len() {
			t.Fatalf("seed %d: All yields %d waiters and Len is %d, want %d", seed, got, o.Len(), len(all))
		}
	}
}

// unitsAhead returns the costs of the waiters that go before w.
func unitsAhead(o *line, w *waiter) (units int64) {
	rest := newFlows[*waiter]()
	for _, f := range o.busy() {
		own := *f
		own.place = -1
		rest.Put(&own)
	}
	for f := rest.First(); f.first.waiter != w; f = rest.First() {
		units += f.first.units()
		f.start += f.first.units()
		if f.first = f.first.next; f.first == nil {
			rest.Pop()
		} else {
			rest.Put(f)
		}
	}
	return units
}

// TestBusyFlowsKeepTheBoundOfFairQueueing checks every interval in which two flows are busy: the units served, divided
// by the weights, differ by at most the largest cost of each, divided by its weight.
func TestBusyFlowsKeepTheBoundOfFairQueueing(t *testing.T) {
	for seed := range randtest.Seeds(t, 50, 50) {
		r := rand.New(rand.NewPCG(seed, 4))
		weights, largest := [2]int64{1 + r.Int64N(20), 1 + r.Int64N(20)}, [2]int64{1 + r.Int64N(50), 1 + r.Int64N(50)}
		o := new(line)
		push := func(i int) {
			o.push(fmt.Sprint(i), 1+r.Int64N(largest[i]), weights[i])
		}
		for range 3 {
			push(0)
			push(1)
		}
		// The difference D of the normalized service, times both weights: an interval's is D(end) - D(start).
		var difference, lowest, highest int64
		bound := largest[0]*weights[1] + largest[1]*weights[0]
		for range 5000 {
			w := o.First()
			i := int(w.flow[0] - '0')
			o.Serve(&w.Node)
			push(i)
			if i == 0 {
				difference += w.Cost * weights[1]
			} else {
				difference -= w.Cost * weights[0]
			}
			lowest, highest = min(lowest, difference), max(highest, difference)
		}
		if highest-lowest > bound {
			t.Errorf("seed %d: weights %v, costs up to %v: an interval differs by %d, want at most %d", seed, weights, largest, highest-lowest, bound)
		}
	}
}

func TestFlowsThatEndedAreForgotten(t *testing.T) {
	o := new(line)
	for i := range 100_000 {
		o.push("busy", 1, 1)
		o.push(fmt.Sprint(i), 1, 1)
		for range 2 {
			o.Serve(&o.First().Node)
		}
	}
	if len(o.several.flows) > 2*firstSweep+2 {
		t.Errorf("%d flows are remembered after 100,000 that waited once", len(o.several.flows))
	}
}

func TestVirtualTimeBeginsAgainWithoutChangingTheOrder(t *testing.T) {
	o := new(line)
	served := map[string]int{}
	o.push("a", fairUnits, 1)
	o.push("b", fairUnits, 3)
	for range 8000 {
		w := o.First()
		o.Serve(&w.Node)
		served[w.flow]++
		o.push(w.flow, fairUnits, 1)
	}
	if served["a"] < 1999 || served["a"] > 2001 || o.virtual.units/o.virtual.weight > 2*farthest {
		t.Errorf("flows of weight 1 and 3 were served %v, virtual time is %v", served, o.virtual)
	}
}

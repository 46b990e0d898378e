package histories

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"
)

// asker is a limiter under test. Its clock stands at the start plus the steps of the last advance.
type asker interface {
	ask(c call) answer
	advance(step int64)
}

// script describes the making of a history.
type script struct {
	keys, workers, phases, calls int
	together                     bool // calls are about two keys at once
	seed                         uint64
}

// recorder numbers the beginnings and ends of calls. A call that ended before another began has the smaller number.
type recorder struct {
	moment     atomic.Int64
	mu         sync.Mutex
	operations []porcupine.Operation
}

// play runs all workers at once, phase by phase. The clock stands still within a phase and moves between phases.
func play(a asker, s script) []porcupine.Operation {
	var r recorder
	random := rand.New(rand.NewPCG(s.seed, 1))
	for at := int64(0); at < int64(s.phases); at++ {
		a.advance(at)
		var workers sync.WaitGroup
		for worker := range s.workers {
			calls := newCalls(random, s, at)
			workers.Go(func() { r.run(a, worker, calls) })
		}
		workers.Wait()
	}
	return r.operations
}

// newCalls returns random calls that a model with a capacity of ten can judge.
func newCalls(random *rand.Rand, s script, at int64) []call {
	calls := make([]call, s.calls)
	for i := range calls {
		c := call{verb: take, keys: []int{random.IntN(s.keys)}, cost: random.Int64N(4), at: at}
		switch n := random.IntN(10); {
		case s.together:
			c.keys = []int{0, 1}
			if n < 6 { // most calls use one key, so that the keys differ
				c.keys = []int{n % 2}
			}
		case n == 0:
			c.verb, c.cost = reset, 0
		case n == 1:
			c.verb = peek
		case n == 2:
			c.verb, c.cost = record, random.Int64N(5)-2
		case n == 3:
			c.verb, c.cost = take, 11
		}
		calls[i] = c
	}
	return calls
}

func (r *recorder) run(a asker, worker int, calls []call) {
	own := make([]porcupine.Operation, 0, len(calls))
	for i, c := range calls {
		begin := r.moment.Add(1)
		if i%4 == 0 {
			runtime.Gosched() // lets others run, even on one core
		}
		output := a.ask(c)
		own = append(own, porcupine.Operation{ClientId: worker, Input: c, Output: output, Call: begin, Return: r.moment.Add(1)})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, own...)
}

// overlapping returns the number of operations that began before an earlier operation of another worker had ended.
func overlapping(history []porcupine.Operation) (count int) {
	for _, a := range history {
		for _, b := range history {
			if a.ClientId != b.ClientId && b.Call < a.Call && a.Call < b.Return {
				count++
				break
			}
		}
	}
	return count
}

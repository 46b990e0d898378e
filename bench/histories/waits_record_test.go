package histories

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weirflow/weir"
)

// waitedOn is a line under test, on the clock of a synctest bubble.
type waitedOn interface {
	wait(ctx context.Context, c call) error
	// do makes any other call, and reports whether a Take was allowed.
	do(c call) bool
}

// waitScript describes the making of a history of waits. A worker makes some calls in each phase; only the last of them
// may begin a wait, so that few orders of arrival are possible.
type waitScript struct {
	workers, phases, calls int
	verbs                  []verb  // besides join; a record gives back what a caller took
	keys                   [][]int // of a call
	most                   int64   // cost
	flows                  int     // of the callers; 0 means none
	seed                   uint64
}

// running is a wait of a history.
type running struct {
	call    call
	ctx     context.Context
	cancel  context.CancelFunc
	begins  int64 // a moment, as of the recorder; so are ends and leaves, which are 0 before
	ends    int64
	leaves  int64 // when it was cancelled
	outcome error
	noted   bool // its leave is recorded
	back    bool // what it took is given back
}

// waitPlayer plays a script and records its history.
type waitPlayer struct {
	recorder
	waitScript
	line   waitedOn
	random *rand.Rand
	start  time.Time
	at     int64
	waits  []*running
}

// playWaits returns the history, and the number of callers that slept.
func playWaits(t *testing.T, line waitedOn, s waitScript) (history []porcupine.Operation, slept int) {
	p := &waitPlayer{waitScript: s, line: line, random: rand.New(rand.NewPCG(s.seed, 2)), start: time.Now()}
	for range s.phases {
		p.at += p.random.Int64N(3)
		time.Sleep(time.Until(p.start.Add(time.Duration(p.at) * step)))
		p.observe()
		known := len(p.waits)
		scripts := make([][]call, s.workers)
		for w := range scripts {
			scripts[w] = p.calls(t)
		}
		var workers sync.WaitGroup
		for w, calls := range scripts {
			workers.Go(func() { p.work(w, calls) })
		}
		workers.Wait()
		slept += p.settle(known)
		p.observe()
	}
	for _, w := range p.waits {
		w.cancel()
	}
	synctest.Wait()
	return p.operations, slept
}

// calls returns the calls of a worker in a phase.
func (p *waitPlayer) calls(t *testing.T) (calls []call) {
	for i := range p.waitScript.calls {
		c := call{verb: p.verbs[p.random.IntN(len(p.verbs))], keys: p.keys[p.random.IntN(len(p.keys))], cost: 1 + p.random.Int64N(p.most), at: p.at}
		if i == p.waitScript.calls-1 && p.random.IntN(4) > 0 {
			c.verb, c.id, c.flow = join, len(p.waits), p.random.IntN(max(p.flows, 1))
			ctx, cancel := context.WithCancel(t.Context())
			p.waits = append(p.waits, &running{call: c, ctx: ctx, cancel: cancel})
			return append(calls, c)
		}
		switch c.verb {
		case leave:
			if len(p.waits) == 0 {
				continue
			}
			c.id = p.random.IntN(len(p.waits))
		case record, settle:
			w := p.goneAhead()
			if w == nil {
				continue
			}
			c.id, c.keys, c.cost, w.back = w.call.id, w.call.keys, -w.call.cost, true
		case resize:
			c.cost = room - 2 + p.random.Int64N(4)
		}
		calls = append(calls, c)
	}
	return calls
}

// goneAhead returns a caller that holds what it took, or nil.
func (p *waitPlayer) goneAhead() *running {
	for _, i := range p.random.Perm(len(p.waits)) {
		if w := p.waits[i]; w.ends > 0 && w.outcome == nil && !w.back {
			return w
		}
	}
	return nil
}

// work makes the calls of a worker.
func (p *waitPlayer) work(worker int, calls []call) {
	for _, c := range calls {
		begin := p.moment.Add(1)
		switch c.verb {
		case join:
			p.waits[c.id].begins = begin
			go p.wait(p.waits[c.id])
		case leave:
			p.leave(p.waits[c.id], begin)
		default:
			p.add(worker, c, seen{allowed: p.line.do(c)}, begin)
		}
	}
}

func (p *waitPlayer) wait(w *running) {
	err := p.line.wait(w.ctx, w.call)
	p.mu.Lock()
	defer p.mu.Unlock()
	w.outcome, w.ends = err, p.moment.Add(1)
}

func (p *waitPlayer) leave(w *running, begin int64) {
	p.mu.Lock()
	if w.leaves == 0 {
		w.leaves = begin
	}
	p.mu.Unlock()
	w.cancel()
}

// add records a call that ends now.
func (p *waitPlayer) add(client int, c call, output seen, begin int64) {
	p.addUntil(client, c, output, begin, p.moment.Add(1))
}

func (p *waitPlayer) addUntil(client int, c call, output seen, begin, end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.operations = append(p.operations, porcupine.Operation{ClientId: client, Input: c, Output: output, Call: begin, Return: end})
}

// settle waits until every caller has gone or sleeps, and records the joins and leaves of the phase. A join has ended
// when its caller returned or sleeps; a leave has ended when its caller returned, and may have begun after that.
func (p *waitPlayer) settle(known int) (slept int) {
	synctest.Wait()
	asleep := p.moment.Add(1)
	for i, w := range p.waits {
		client := p.workers + 2*i // each wait has two clients, because both its calls may take time
		if i >= known {
			if w.ends == 0 {
				slept++
			}
			p.addUntil(client, w.call, seen{}, w.begins, cmp.Or(w.ends, asleep))
		}
		if w.leaves > 0 && !w.noted {
			c := w.call
			c.verb, c.at, w.noted = leave, p.at, true
			p.addUntil(client+1, c, seen{}, w.leaves, max(w.ends, w.leaves))
		}
	}
	return slept
}

// observe records the ends of all waits so far.
func (p *waitPlayer) observe() {
	synctest.Wait()
	ends := map[int]end{}
	for id, w := range p.waits {
		switch {
		case w.ends == 0:
		case w.outcome == nil:
			ends[id] = granted
		case errors.Is(w.outcome, weir.ErrNever):
			ends[id] = tooMuch
		case errors.Is(w.outcome, context.Canceled):
			ends[id] = left
		default:
			ends[id] = '?' // no model has such an end
		}
	}
	p.add(0, call{verb: observe, at: p.at}, seen{ends: ends}, p.moment.Add(1))
}

package main

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
)

// soaking is the controller's state of a run.
type soaking struct {
	config *config
	world  *world
	random *rand.Rand

	steady, flooded, noise []*rule
	twins                  [][]*twin // by worker

	number, generation int
	wasBehind          bool
	begun              []*account
}

// soak runs phases until the time is up or something is violated. It runs at least one.
func soak(c *config) error {
	s, err := newSoaking(c)
	if err != nil {
		return err
	}
	base := heap()
	for s.number == 0 || c.goesOn(s.number) && !s.world.broken.Load() {
		s.phase()
		if s.number%64 == 0 {
			s.bounded(base)
		}
	}
	s.world.swap()
	s.bounded(base)
	s.settled()
	s.report()
	return nil
}

// goesOn reports whether a run goes on after n phases.
func (c *config) goesOn(n int) bool {
	if c.phases > 0 {
		return n < c.phases
	}
	return c.Since() < c.Duration
}

func newSoaking(c *config) (*soaking, error) {
	s := &soaking{config: c, random: rand.New(rand.NewPCG(c.Seed, 0))}
	var err error
	if s.steady, err = makeRules("steady", steadyLimits(s.random)); err != nil {
		return nil, err
	}
	if s.noise, err = makeRules("noise", steadyLimits(s.random)); err != nil {
		return nil, err
	}
	if s.flooded, err = makeRules("flood", floodLimits()); err != nil {
		return nil, err
	}
	rules := append(append(append([]*rule{}, s.steady...), s.noise...), s.flooded...)
	s.world = newWorld(c, rules)
	for i := range c.workers {
		s.twins = append(s.twins, twinsOf(s.world, s.steady, i, 0))
	}
	return s, nil
}

// phase runs one phase: it steps the clock, runs the workers, saves and replaces the engine meanwhile, and compares
// the accounts.
func (s *soaking) phase() {
	p := s.plan()
	s.open(p)
	calls := 200 + s.random.IntN(3000)
	var workers sync.WaitGroup
	for i := range s.config.workers {
		k := &worker{world: s.world, phase: p, noise: s.noise, random: rand.New(rand.NewPCG(s.config.Seed, uint64(s.number)<<16|uint64(i+1)))}
		workers.Go(func() { k.work(calls, s.twins[i]) })
	}
	if p.running {
		for range 20 + s.random.IntN(100) {
			s.world.step(span(s.random, 30))
			runtime.Gosched()
		}
	}
	switch s.random.IntN(6) {
	case 0, 1:
		s.world.swap()
	case 2:
		s.world.saveBeside()
	}
	workers.Wait()
	s.settle(p)
}

// settled checks the conditions at the end of a run.
func (s *soaking) settled() {
	w := s.world
	for _, r := range s.steady {
		if n := w.earlier[r.Name()].Overflow; n > 0 {
			w.violated("%s: %d requests found no room although the keys are few", r, n)
		}
	}
}

// bounded checks the heap after a collection. A key takes 28 bytes where states fit in words, and a cell and its log
// under the flooded rule whose states do not. The other rules have few keys at a time.
func (s *soaking) bounded(base uint64) {
	const word, cell, others = 28, 512, 32 << 20
	keys := uint64(s.config.maxKeys)
	most := base + others + keys*cell
	for _, r := range s.world.rules {
		most += keys * word * uint64(len(r.limits))
	}
	if got := heap(); got > most {
		s.world.violated("the heap has %d bytes after a collection, above %d", got, most)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// report counts what has happened.
func (s *soaking) report() {
	w := s.world
	for _, r := range w.rules {
		w.config.Count(r.String(), "decisions", int64(r.decisions.Load()))
		w.config.Count(r.String(), "refusals", int64(r.refusals.Load()))
	}
	for what, n := range map[string]uint64{
		"phases": uint64(s.number), "calls": w.calls.Load(), "saves": w.saves.Load(), "loads": w.loads.Load(), "keys evicted": w.forgotten.Load(), "requests on shared budgets": w.overflow.Load(),
	} {
		w.config.Count("run", what, int64(n))
	}
	w.config.Note("the clock went %v ahead; the worst call took %v", time.Duration(w.highest-firstInstant), time.Duration(w.worst.Load()))
}

// agreement is the promise of a run.
const agreement = "the engine agrees with the accounts"

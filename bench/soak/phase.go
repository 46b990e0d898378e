package main

import (
	"fmt"
	"math/rand/v2"
)

// phase is a part of the run in which the clock stands still, or moves forward during calls. Many workers make calls;
// the run checks their results when all have finished.
type phase struct {
	number  int
	lo, hi  int64 // readings of the clock
	running bool
	// behind means that the clock is behind an earlier reading. An unknown key may have been evicted since then, and
	// the engine takes it as fresh at that later instant, for all keys of a call. Each call then uses a single
	// account, except calls with an answer for each.
	behind bool
	flood  bool

	accounts []*account
	burst    *floods
}

// exact reports whether the remaining units are known exactly.
func (p *phase) exact() bool { return !p.running && !p.behind }

// open creates the accounts of a phase. No worker is running.
func (s *soaking) open(p *phase) {
	for _, r := range s.steady {
		for i := range 1 + s.random.IntN(2) {
			p.accounts = append(p.accounts, s.fresh(p, r, i))
		}
	}
	if p.flood {
		p.burst = newFloods(s, p)
	}
}

// fresh returns an account that begins with the phase.
func (s *soaking) fresh(p *phase, r *rule, i int) *account {
	a := &account{rule: r, key: fmt.Sprintf("phase %d key %d", p.number, i)}
	s.begun = append(s.begun, a)
	return a
}

// settle ends a phase and compares all accounts. No worker is running.
func (s *soaking) settle(p *phase) {
	p.hi = s.world.now.Load()
	for _, a := range s.begun {
		a.settle(s.world, p)
	}
	s.begun = s.begun[:0]
	if p.burst != nil {
		p.burst.settle(s.world, p)
	}
}

// plan moves the clock to the start of the next phase and returns that phase.
func (s *soaking) plan() *phase {
	w := s.world
	s.number++
	switch pick := s.random.IntN(100); {
	case pick < 6: // back
		w.step(-span(s.random, 36))
	case pick < 8: // far ahead
		w.step(span(s.random, 50))
	case pick < 80:
		w.step(span(s.random, 36))
	}
	if behind := w.now.Load() < w.highest; behind && s.random.IntN(3) == 0 {
		w.step(w.highest - w.now.Load())
	}
	now := w.now.Load()
	p := &phase{number: s.number, lo: now, hi: now, behind: now < w.highest, flood: s.random.IntN(8) == 0}
	p.running = !p.behind && !p.flood && s.random.IntN(4) == 0
	if p.behind && !s.wasBehind {
		s.generation++
		for i := range s.twins {
			s.twins[i] = twinsOf(w, s.steady, i, s.generation)
		}
	}
	s.wasBehind = p.behind
	return p
}

// span returns 2 to 2^most ns, with each magnitude equally likely: 36 is a minute, 50 is thirteen days.
func span(random *rand.Rand, most int) int64 {
	return random.Int64N(1 << (1 + random.IntN(most)))
}

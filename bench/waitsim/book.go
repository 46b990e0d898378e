package main

import "math/rand/v2"

// bookRules are the rules by which processes book instants of a bucket; each can be taken away.
type bookRules struct {
	random   bool // a process that was refused looks again after a random time
	widening bool // a refusal at the told instant widens the horizon
	mark     bool // a process with an instant beyond a mark, drawn anew within the horizon, books no more
	drawn    bool // that mark is drawn; otherwise it is half the horizon
	second   bool // a process looks again after a second at the latest
	growth   bool // tried, and left out: a call books at most 2n + 1 after n
}

var allBookRules = bookRules{random: true, widening: true, mark: true, drawn: true, second: true}

// bookCase is a workload: processes of callers that always wait for one bucket.
type bookCase struct {
	name    string
	unit    instant   // the time of one unit
	burst   int64     //
	trips   []instant // of each process's calls
	costs   []int64   // of each process's callers
	callers int       // of each process
	kills   instant   // a process is killed after each such time
	raised  instant   // when the limit becomes a hundred times as fast; 0 is never
}

const (
	horizon    = 250 * ms
	mostAtOnce = 128
)

// bookServer holds the bucket as GCRA does: tat is when all units taken have come back.
type bookServer struct {
	*clock
	bookCase
	rules     bookRules
	rng       *rand.Rand
	tat       instant
	told      instant // newest
	processes []*booker
	sum       tally
}

// booker is a process.
type booker struct {
	s       *bookServer
	trip    instant
	cost    int64
	waiting int
	booked  []instant // in order
	horizon instant
	target  instant // when a refused booking fits into the horizon, as it was told; 0 is none
	last    int     // how many the last call booked
	flying  bool
	alarm   alarm
	mark    instant
	gen     int
	units   int64
	since   instant // the last grant
	gap     instant
}

func simulateBooking(w bookCase, r bookRules, seed uint64, length instant) figures {
	s := &bookServer{clock: &clock{now: 1}, bookCase: w, rules: r, rng: rand.New(rand.NewPCG(seed, 7))}
	for i := range w.trips {
		p := &booker{s: s, trip: w.trips[i], cost: w.costs[i]}
		p.alarm = alarm{c: s.clock, do: p.look}
		s.processes = append(s.processes, p)
		p.begin()
	}
	if w.kills > 0 {
		s.after(w.kills, s.kill)
	}
	if w.raised > 0 {
		s.at(w.raised, func() {
			s.tat = s.now + (s.tat-s.now)/100
			s.unit /= 100
			for _, p := range s.processes {
				p.since, p.gap = s.now, 0
			}
		})
	}
	s.runUntil(length)
	return s.figures(length)
}

func (p *booker) begin() {
	p.gen++
	p.flying, p.booked, p.waiting, p.horizon, p.target, p.last = false, nil, p.s.callers, horizon, 0, 0
	p.alarm.stop()
	p.alarm.set(p.s.now + p.s.rng.Int64N(10*ms))
}

func (s *bookServer) kill() {
	s.processes[s.rng.IntN(len(s.processes))].begin()
	s.after(s.kills, s.kill)
}

func (p *booker) look() {
	s := p.s
	if p.flying || p.waiting == 0 {
		return
	}
	if n := len(p.booked); n > 0 && s.rules.mark {
		if ahead := p.booked[n-1] - s.now; ahead > p.mark {
			p.alarm.set(s.now + ahead - p.mark)
			return
		}
	}
	most := mostAtOnce
	if s.rules.growth {
		most = min(most, 2*p.last+1)
	}
	p.flying = true
	s.sum.calls++
	gen, want, h := p.gen, min(p.waiting, most), p.horizon
	s.after(p.trip/2, func() {
		booked, due := s.book(p.cost, want, h)
		s.after(p.trip/2, func() {
			if gen == p.gen {
				p.answer(booked, due)
			}
		})
	})
}

// book takes up to want instants within h, and tells the one that lay beyond.
func (s *bookServer) book(cost int64, want int, h instant) (booked []instant, due instant) {
	for {
		at := max(s.told, s.tat+(cost-s.burst)*s.unit, s.now)
		if len(booked) == want {
			return booked, 0
		}
		if at > s.now+h {
			return booked, at
		}
		booked = append(booked, at)
		s.told, s.tat = at, max(s.tat, at)+cost*s.unit
	}
}

func (p *booker) answer(booked []instant, due instant) {
	s := p.s
	p.flying = false
	p.waiting -= len(booked)
	p.last = len(booked)
	gen := p.gen
	for _, at := range booked {
		p.booked = append(p.booked, at)
		s.at(at, func() {
			if gen == p.gen {
				p.grant()
			}
		})
	}
	own := p.cost * s.unit
	if len(booked) > 0 {
		p.mark = horizon / 2
		if s.rules.drawn {
			p.mark = s.rng.Int64N(horizon)
		}
		p.horizon, p.target = horizon, 0
	} else if p.target > 0 && s.now >= p.target && s.rules.widening {
		p.horizon = min(second+own, p.horizon+max(50*ms, own/4))
		p.target = 0
	}
	if due == 0 {
		p.alarm.set(s.now)
		return
	}
	if p.target <= s.now {
		p.target = max(s.now+1, due-p.horizon)
	}
	again := p.target
	if s.rules.random {
		again += s.rng.Int64N(max(20*ms, 2*p.trip, min(s.unit, 500*ms)))
	}
	if s.rules.second {
		again = min(again, s.now+second)
	}
	p.alarm.set(again)
}

func (p *booker) grant() {
	p.booked = p.booked[1:]
	p.s.sum.grants++
	p.units += p.cost
	p.gap, p.since = max(p.gap, p.s.now-p.since), p.s.now
	p.waiting++
	p.alarm.set(p.s.now)
}

// figures has the longest time in which one process was granted nothing.
func (s *bookServer) figures(length instant) figures {
	f := s.sum.figures(length)
	f.gap = 0
	var units []int64
	var sum int64
	for _, p := range s.processes {
		units = append(units, p.units)
		sum += p.units
		f.gap = max(f.gap, p.gap, length-p.since)
	}
	f.share = float64(sum) * float64(s.unit) / float64(length)
	f.least = least(units)
	return f
}

package main

import "math/rand/v2"

// rateRules are the rules by which processes ask for units of a rate that cannot be booked.
type rateRules struct {
	more   bool // one caller more travels than may be admitted: its refusal tells the next instant
	spread bool // tried, and left out: a told instant is answered at a random time within 10 ms
}

var allRateRules = rateRules{more: true}

// rateCase is a workload: processes of callers that always wait for one rate. The groups of a process that wait for a
// total are such callers: the total's refusal puts them all to sleep, and the oldest asks.
type rateCase struct {
	name      string
	processes int
	callers   int // of each process
	count     int
	period    instant
	aligned   bool // a fixed window; otherwise a bucket that holds one unit
	trip      instant
}

type rateServer struct {
	*clock
	rateCase
	rules     rateRules
	rng       *rand.Rand
	tat       instant // of the bucket
	window    instant // the present one's start
	used      int     // of it
	processes []*rateAsker
	sum       tally
}

type rateAsker struct {
	s     *rateServer
	room  int
	alarm alarm
	units int64
}

func simulateRate(w rateCase, r rateRules, seed uint64, length instant) figures {
	s := &rateServer{clock: &clock{now: 1}, rateCase: w, rules: r, rng: rand.New(rand.NewPCG(seed, 7))}
	for range w.processes {
		p := &rateAsker{s: s}
		p.alarm = alarm{c: s.clock, do: p.send}
		p.alarm.set(s.now + s.rng.Int64N(10*ms))
		s.processes = append(s.processes, p)
	}
	s.runUntil(length)
	return s.figures(length)
}

func (p *rateAsker) send() {
	s := p.s
	want := max(1, p.room)
	if s.rules.more {
		want++
	}
	want = min(want, p.s.callers, mostAtOnce)
	s.sum.calls++
	trip := s.trip*9/10 + s.rng.Int64N(s.trip/5)
	s.after(trip/2, func() {
		got, room, told := s.take(want)
		s.after(trip/2, func() { p.answer(got, want, room, told) })
	})
}

// take admits up to want units, and tells what room is left and when the next unit is free.
func (s *rateServer) take(want int) (got, room int, told instant) {
	if !s.aligned {
		unit := s.period / instant(s.count)
		if s.tat <= s.now {
			s.tat, got = s.now+unit, 1
		}
		return got, 0, s.tat
	}
	if start := s.now - s.now%s.period; start > s.window {
		s.window, s.used = start, 0
	}
	got = min(want, s.count-s.used)
	s.used += got
	return got, s.count - s.used, s.window + s.period
}

func (p *rateAsker) answer(got, want, room int, told instant) {
	s := p.s
	p.room = room
	if got > 0 {
		s.sum.grants += got
		s.sum.grant(s.now)
		p.units += int64(got)
	}
	if got == want {
		p.alarm.set(s.now)
		return
	}
	if s.rules.spread {
		told += s.rng.Int64N(10 * ms)
	}
	p.alarm.set(told)
}

func (s *rateServer) figures(length instant) figures {
	f := s.sum.figures(length)
	f.share = float64(s.sum.grants) * float64(s.period) / float64(s.count) / float64(length)
	var units []int64
	for _, p := range s.processes {
		units = append(units, p.units)
	}
	f.least = least(units)
	return f
}

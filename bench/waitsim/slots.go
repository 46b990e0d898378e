package main

import "math/rand/v2"

// askRules are the rules by which processes ask for slots; each can be taken away.
type askRules struct {
	spread  bool // an ask that answers a signal comes at a random time within the spread
	growth  bool // each of them that is granted nothing lengthens the spread by a tenth, and a grant ends that
	streak  bool // a process that was granted slots for 100 ms without a refusal lets others go first; without signals, for 1 s
	more    bool // one caller more travels than the last answer had room for
	keep    bool // an older caller that wants more keeps the key from younger ones, for a second at a time
	backoff bool // asks without a signal grow rarer while the same lease is in the way
	age     bool // tried, and left out: a caller that has waited long shortens the spread
	halving bool // tried, and left out: a refusal doubles the spread to 250 ms, and a grant halves it
}

var allAskRules = askRules{spread: true, growth: true, streak: true, more: true, keep: true, backoff: true}

// slotCase is a workload: processes of callers that always wait for slots of one key.
type slotCase struct {
	name      string
	processes int
	callers   int     // of each process
	slots     int     //
	hold      instant // on average; each hold is within a fifth of it
	trip      instant // of a call, there and back
	deaf      bool    // no signal arrives
	lost      int     // of 100 signals
	kills     instant // a process is killed after each such time; its leases last for a second
	wide      int     // a caller of the first process always waits for this many slots at once
	idle      bool    // nobody releases: all slots belong to somebody else
}

// slotServer holds the leases of one key.
type slotServer struct {
	*clock
	slotCase
	rules     askRules
	rng       *rand.Rand
	taken     int
	processes []*slotAsker
	sum       tally
	wideWait  instant
}

// slotAsker is a process. Its callers wait in order of arrival.
type slotAsker struct {
	s        *slotServer
	waiting  []instant // arrivals of callers of one slot
	wide     instant   // arrival of the wide caller; 0 is none
	kept     instant   // since when the wide one keeps the key from younger callers; 0 is not
	alarm    alarm
	signal   bool // the alarm answers a signal
	flying   bool
	heard    bool // a signal arrived during the call
	room     int  // of the last answer
	spread   instant
	serving  bool
	streak   instant // since when it has been served without a refusal
	poll     instant // the longest time to the next ask without a signal
	held     int
	granted  int
	replaced bool
}

func simulateSlots(w slotCase, r askRules, seed uint64, length instant) figures {
	s := &slotServer{clock: &clock{now: 1}, slotCase: w, rules: r, rng: rand.New(rand.NewPCG(seed, 7))}
	if w.idle {
		s.taken = w.slots
	}
	for range w.processes {
		s.processes = append(s.processes, s.newAsker())
	}
	if w.wide > 0 {
		s.processes[0].wide = 1
	}
	if w.kills > 0 {
		s.after(w.kills, s.kill)
	}
	s.runUntil(length)
	return s.figures(length)
}

func (s *slotServer) newAsker() *slotAsker {
	p := &slotAsker{s: s, spread: leastSpread, room: 1, poll: s.firstPoll()}
	p.alarm = alarm{c: s.clock, do: p.send}
	for range s.callers {
		p.waiting = append(p.waiting, s.now)
	}
	p.alarm.set(s.now + s.random(5*ms))
	return p
}

const leastSpread, mostSpread = 5 * ms, 100 * ms

func (s *slotServer) firstPoll() instant {
	if s.deaf {
		return 50 * ms
	}
	return 250 * ms
}

func (s *slotServer) random(d instant) instant {
	if d <= 0 {
		return 0
	}
	return s.rng.Int64N(d)
}

// kill ends a process and begins another in its place. A lease that ends tells nobody.
func (s *slotServer) kill() {
	i := s.rng.IntN(len(s.processes))
	p, q := s.processes[i], s.newAsker()
	p.replaced = true
	p.alarm.stop()
	s.endLater(p.held)
	q.granted = p.granted
	s.processes[i] = q
	s.after(s.kills, s.kill)
}

func (s *slotServer) endLater(n int) { s.after(second, func() { s.taken -= n }) }

// want is how many callers of one slot travel in the next call, and whether the wide one does.
func (p *slotAsker) want() (singles int, wide bool) {
	wide = p.wide > 0 && (len(p.waiting) == 0 || p.wide <= p.waiting[0])
	if wide && p.keeps() {
		return 0, true
	}
	most := max(1, p.room)
	if p.s.rules.more {
		most = p.room + 1
	}
	return min(len(p.waiting), most), wide
}

// keeps reports whether the wide caller keeps the key: for a second, then not for a second.
func (p *slotAsker) keeps() bool {
	return p.s.rules.keep && p.kept > 0 && (p.s.now-p.kept)%(2*second) < second
}

func (p *slotAsker) send() {
	if p.flying {
		p.heard = true
		return
	}
	singles, wide := p.want()
	if singles == 0 && !wide {
		return
	}
	s, signal := p.s, p.signal
	p.flying, p.heard, p.signal = true, false, false
	s.sum.calls++
	s.after(s.trip/2, func() {
		gotWide, got := s.take(singles, wide)
		room := s.slots - s.taken
		s.after(s.trip/2, func() {
			if !p.replaced {
				p.answer(signal, singles, wide, gotWide, got, room)
			} else if gotWide {
				s.endLater(got + s.wide)
			} else {
				s.endLater(got)
			}
		})
	})
}

func (s *slotServer) take(singles int, wide bool) (gotWide bool, got int) {
	if wide && s.taken+s.wide <= s.slots {
		s.taken += s.wide
		gotWide = true
	}
	got = min(singles, s.slots-s.taken)
	s.taken += got
	return gotWide, got
}

func (p *slotAsker) answer(signal bool, singles int, wide, gotWide bool, got, room int) {
	p.flying, p.room = false, room
	p.grantWide(wide, gotWide)
	for range got {
		p.hold(1)
	}
	p.waiting = p.waiting[got:]
	nothing := got == 0 && !gotWide
	if !nothing {
		p.grantedSome()
	} else if signal {
		p.serving = false
		p.lengthen()
	}
	if got < singles || wide && !gotWide || room == 0 {
		p.sleep()
	} else if len(p.waiting) > 0 {
		p.alarm.set(p.s.now)
	}
}

func (p *slotAsker) grantedSome() {
	s := p.s
	s.sum.grant(s.now)
	if !p.serving {
		p.serving, p.streak = true, s.now
	}
	p.poll = s.firstPoll()
	if !s.rules.halving {
		p.spread = leastSpread
	} else {
		p.spread = max(leastSpread, p.spread/2)
	}
}

// lengthen makes the spread longer after an ask that answered a signal was granted nothing.
func (p *slotAsker) lengthen() {
	switch {
	case p.s.rules.halving:
		p.spread = min(250*ms, p.spread*2)
	case p.s.rules.growth:
		p.spread = min(mostSpread, p.spread*11/10)
	}
}

// sleep sets the alarm for when nothing is heard.
func (p *slotAsker) sleep() {
	s := p.s
	if p.heard {
		p.hear()
		return
	}
	p.alarm.set(s.now + p.poll/2 + s.random(p.poll/2))
	if s.rules.backoff && s.idle {
		p.poll = min(second, 2*p.poll)
	}
}

func (p *slotAsker) grantWide(asked, got bool) {
	if got {
		p.s.wideWait = max(p.s.wideWait, p.s.now-p.wide)
		p.wide, p.kept = 0, 0
		p.hold(p.s.wide)
	} else if asked && p.kept == 0 {
		p.kept = p.s.now
	}
}

func (p *slotAsker) hold(n int) {
	s := p.s
	s.sum.grants += n
	p.granted += n
	p.held += n
	s.after(s.slotCase.hold*8/10+s.random(s.slotCase.hold*4/10), func() {
		if !p.replaced {
			p.release(n)
		}
	})
}

// release frees slots. A new caller comes, and every process hears of it.
func (p *slotAsker) release(n int) {
	s := p.s
	s.taken -= n
	p.held -= n
	p.room = max(p.room, 1)
	if n == s.wide {
		p.wide = s.now
	} else {
		p.waiting = append(p.waiting, s.now)
	}
	p.own()
	for _, q := range s.processes {
		if q != p && !s.deaf && s.rng.IntN(100) >= s.lost {
			s.after(s.trip/2, q.hear)
		}
	}
}

// own asks for a slot that a caller of this process released.
func (p *slotAsker) own() {
	s := p.s
	p.signal = true
	streak, pause := 100*ms, leastSpread
	if s.deaf {
		streak, pause = second, 200*ms
	}
	if !s.rules.streak || !p.serving || s.now-p.streak < streak {
		p.alarm.set(s.now)
		return
	}
	p.streak = s.now + pause + p.width()
	p.alarm.set(s.now + pause + s.random(p.width()))
}

// hear answers the release of another process.
func (p *slotAsker) hear() {
	p.heard = p.flying
	if !p.flying {
		p.signal = true
		p.alarm.set(p.s.now + p.s.random(p.width()))
	}
}

// width is the time over which answers to a signal are spread.
func (p *slotAsker) width() instant {
	switch {
	case !p.s.rules.spread:
		return 0
	case !p.s.rules.age || len(p.waiting) == 0:
		return p.spread
	}
	return p.spread * 100 * ms / (100*ms + p.s.now - p.waiting[0])
}

func (s *slotServer) figures(length instant) figures {
	f := s.sum.figures(length)
	f.share = float64(s.sum.grants) * float64(s.hold) / float64(s.slots) / float64(length)
	if p := s.processes[0]; p.wide > 0 {
		s.wideWait = max(s.wideWait, s.now-p.wide)
	}
	f.wide = s.wideWait
	var granted []int64
	for _, p := range s.processes {
		granted = append(granted, int64(p.granted))
	}
	f.least = least(granted)
	return f
}

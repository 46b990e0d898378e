package pace

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// slotWatch says when a queue asks for slots of a key that other processes hold and want, too. Slots come free at a
// release, which the engine may signal, or at the end of a lease, which a refusal names. All processes hear of a
// release, and each counts those since its last grant. The higher the count, the sooner it asks, so that every process
// gets its turn.
//
// If processes are few, all of them ask about each release. If they are many, each is quiet for a part of its turn. It
// must not learn that part from its turns: a lucky process would ask more often, and be lucky again. It learns it from
// the number of refusals until a grant. That number is the same for all that ask, and higher for a process that begins
// too soon.
//
// Without signals a process polls, and each deafPoll of time counts as a release. Nothing depends on a signal.
type slotWatch struct {
	key     *askKey
	heard   int           // releases since the last grant
	last    time.Time     // that grant, or when callers came first
	tries   int           // questions since then that were refused
	vain    float64       // on average until a grant
	use     time.Duration // how long callers of this process have slots, on average
	alone   int           // releases since the last one of another process
	retryAt time.Time     // the end of a lease that the last refusal named
	same    time.Time     // since when refusals have named it
	news    bool          // the next or present question follows news
	during  bool          // a signal came during the question

	// Without signals.
	streak time.Time // since when the process keeps its slots, or when its pause ends; zero for neither
	paused bool      // it has not asked since its pause
	kept   int       // pauses in a row without another process taking the slots

	own      int       // releases of this process whose signals are to come
	ownUntil time.Time // later they are lost
	hears    func() bool
	stop     func()
}

const (
	slotsTogether = 4 // callers that ask after news, at most: several slots may have come free

	// Of P processes, (P + askAlways x quietFor) / (1 + quietFor) ask about a release: all of 4, 13 of 50.
	askAlways, quietFor = 4, 4
	meanOf              = 8 // values, about: a fleet grows within some turns

	spreadOfUse = 8                      // at an eighth of a use, 0.93 of the slots stay in use with two processes, and more with many
	mostSpread  = 20 * time.Millisecond  // orders processes for any length of use
	heartbeat   = 250 * time.Millisecond // a lost signal costs no more; doubles to a second without news
	ownSignal   = 100 * time.Millisecond // signals of own releases come within a round trip
	aloneAfter  = 16                     // own releases in a row: once in 65,000 with two equal processes

	// Without signals, four processes must not poll more than three times a grant, nor leave a slot for more than 0.07 of the
	// time until one polls: so each keeps it for four uses.
	deafUses    = 4
	deafPoll    = 50 * time.Millisecond // to twice as long
	deafOverdue = 12                    // after this many polls the next ones are twice as frequent
	deafOften   = 8                     // times as frequent, at most
	deafPause   = 2 * deafPoll          // any other process that wants the slots polls in it
	deafAlone   = 4                     // pauses in a row that nobody used: then the next is after a second
)

func newSlotWatch(k *askKey) *slotWatch {
	s := &slotWatch{key: k, last: time.Now(), hears: func() bool { return false }, stop: func() {}}
	if engine, ok := weir.Find[enginekit.Listener](k.asking.queue.engine); ok {
		_ = guarded(func() error { s.hears, s.stop = engine.Listen(k.request, s.hear); return nil })
	}
	return s
}

// end ends the signals. It is called with the lock, and the engine may be about to call hear.
func (s *slotWatch) end() { _ = guarded(func() error { s.stop(); return nil }) }

// reached reports whether signals reach the process.
func (s *slotWatch) reached() (reached bool) {
	_ = guarded(func() error { reached = s.hears(); return nil })
	return reached
}

// quiet returns about how many releases after a grant the process does not ask.
func (s *slotWatch) quiet() float64 { return quietFor * max(0, s.vain-askAlways) }

// overdue returns how many releases ago its quiet ended; negative if it has not.
func (s *slotWatch) overdue(now time.Time) float64 {
	if s.reached() {
		return float64(s.heard) - s.quiet()
	}
	return float64(now.Sub(s.last))/float64(deafPoll) - s.quiet()
}

// delay returns the time from news to the question.
func (s *slotWatch) delay() time.Duration {
	spread := min(mostSpread, s.use/spreadOfUse)
	if s.alone >= aloneAfter {
		spread /= 8 // one that comes is sooner after some releases
	}
	d := time.Duration(float64(spread) / math.Sqrt(float64(max(s.heard, 1))))
	return d - rand.N(d/4+1) // several may have heard as many
}

// hear takes in a signal. The engine calls it.
func (s *slotWatch) hear() {
	a := s.key.asking
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	now := time.Now()
	if s.own > 0 && now.Before(s.ownUntil) {
		s.own--
		return
	}
	s.own, s.alone = 0, 0
	s.signalled(now, false)
}

// released takes in that this process released slots, which it had held for a time.
func (s *slotWatch) released(held time.Duration) {
	k, now := s.key, time.Now()
	if s.use == 0 {
		s.use = held
	}
	s.use += (held - s.use) / meanOf
	if s.reached() {
		s.own, s.ownUntil, s.alone = s.own+1, now.Add(ownSignal), s.alone+1
		s.signalled(now, true)
	} else {
		s.keep(now)
	}
	k.advance(now)
}

// signalled counts a release. In a quiet the process asks if it hears of no other: then nobody takes slots.
func (s *slotWatch) signalled(now time.Time, own bool) {
	s.heard++
	k := s.key
	switch {
	case k.trip != nil || s.overdue(now) > 0:
		s.ask(now, now.Add(s.delay()), own)
	case k.slots() && now.Before(k.until) && !s.news:
		s.sleep(k.asking.poll(now.Add(heartbeat / 2)))
	}
}

// ask has the key asked for at an instant, because slots may have come free; after an own release also if nobody waits yet.
func (s *slotWatch) ask(now, at time.Time, own bool) {
	k := s.key
	switch {
	case k.trip != nil:
		s.during = true
	case !k.slots():
	case now.Before(k.until) && k.groups > 0:
		s.news = true
		k.wakeAt(at)
	case own:
		s.news = true
		s.sleep(at)
	}
}

func (s *slotWatch) sleep(until time.Time) {
	k := s.key
	k.cost, k.refusedBy, k.until = 1, bySlots, until
	k.asking.agenda.plan(&k.wake, until)
}

// keep has a process without signals ask at once for slots that it released, and after some uses leave them to others until
// its turn is near.
func (s *slotWatch) keep(now time.Time) {
	long := deafUses*s.use - s.use/2
	if s.kept >= deafAlone && s.quiet() == 0 {
		long = max(long, longestPause)
	}
	if !s.streak.IsZero() && now.Sub(s.streak) > long {
		s.streak = now.Add(max(deafPause, s.quietTime(-s.quiet()))) // the next streak begins then
		s.paused = true
		s.sleep(s.streak)
	}
	s.ask(now, latest(now, s.streak), true)
}

// quietTime returns the time that a quiet still lasts without signals, at most a second: slots may lie idle.
func (s *slotWatch) quietTime(overdue float64) time.Duration {
	return time.Duration(min(float64(longestPause), -overdue*float64(deafPoll)))
}

// granted takes in that callers of a trip were granted slots.
func (s *slotWatch) granted(now time.Time) {
	hears := s.reached()
	if hears || s.paused || s.streak.IsZero() {
		vain := float64(s.tries)
		if unused := !s.key.lost && s.key.room > 0; unused || hears && !s.news { // it seems that no other process wants them
			vain = 0
		}
		s.vain += (vain - s.vain) / meanOf
	}
	if s.streak.IsZero() {
		s.streak = now
	}
	if s.paused {
		s.kept++
	}
	s.paused, s.heard, s.tries, s.last, s.same = false, 0, 0, now, now
}

// refused takes in that no caller of a trip was granted slots.
func (s *slotWatch) refused(now time.Time) {
	s.tries++
	if s.paused {
		s.paused, s.streak, s.kept = false, time.Time{}, 0
	}
	if s.key.retryAt.Sub(s.retryAt).Abs() > shortestPause { // others hold the slots now
		s.same = now
	}
	s.retryAt = s.key.retryAt
}

// landed plans when to ask again after a trip that was refused slots, or took the last ones.
func (s *slotWatch) landed(now time.Time) {
	k := s.key
	if !k.won {
		s.refused(now)
	}
	if !k.lost {
		k.cost, k.refusedBy, k.retryAt = 1, bySlots, now.Add(24*time.Hour)
	}
	k.until = earliest(s.poll(now), k.retryAt.Add(rand.N(mostSpread))) // leases seldom end: chance decides who is first
	if s.news = s.during && s.overdue(now) > 0; s.news {
		k.until = earliest(k.until, now.Add(s.delay()))
	}
	s.during = false
	k.until = latest(k.until, now.Add(shortestPause))
}

// poll returns when to ask without news: at most as long after now as nothing has changed. Keys whose slots others hold for long
// share trips.
func (s *slotWatch) poll(now time.Time) time.Time {
	every := deafPoll
	if s.reached() {
		every = heartbeat
	}
	still := now.Sub(s.same)
	if every == heartbeat || still >= 3*deafPoll {
		return s.key.asking.poll(now.Add(min(max(every, still), longestPause)))
	}
	overdue := s.overdue(now)
	often := 1 + min(max(0, overdue)/deafOverdue, deafOften-1)
	every = max(time.Duration(2*float64(every)/often), still/2)
	return now.Add(max(every-rand.N(every/2+1), s.quietTime(overdue)))
}

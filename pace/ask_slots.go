package pace

import (
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// slotWatch says when a queue asks for slots of a key that other processes hold and want, too. Slots come free at a release, of
// which the engine may signal, or at the end of a lease, which a refusal tells. All processes learn of both at once, so each
// asks after a random part of its spread. The spread grows by a tenth with each question after such news that is refused, and
// begins anew with a grant: so few of many processes ask for one slot, and all are equal after each grant. Nothing depends on a signal.
type slotWatch struct {
	key     *askKey
	spread  time.Duration
	streak  time.Time // since when the process has been granted slots again and again, or when its pause ends; zero for none
	last    time.Time // the last grant
	polls   int       // questions without news that were refused, one after the other, and told the same end
	retryAt time.Time // that end
	news    bool      // the next or present question follows news
	during  bool      // a signal came during the question

	own      int       // releases of this process whose signals are to come
	ownUntil time.Time // later they are lost
	hears    func() bool
	stop     func()
}

const (
	slotsTogether = 4 // callers that ask after news, at most

	leastSpread = 5 * time.Millisecond
	mostSpread  = 100 * time.Millisecond
	heartbeat   = 250 * time.Millisecond // doubles to a second without news

	// After so long a streak a process leaves the slots that it releases to others for a pause.
	longStreak, streakPause = 100 * time.Millisecond, 5 * time.Millisecond
	// Without signals, others ask every so often, and it leaves them time for it.
	deafPoll              = 50 * time.Millisecond
	deafStreak, deafPause = time.Second, 200 * time.Millisecond // a poll is up to 100 ms after the one before, or 150 after a refusal
	ownSignal             = 100 * time.Millisecond
)

func newSlotWatch(k *askKey) *slotWatch {
	s := &slotWatch{key: k, spread: leastSpread, hears: func() bool { return false }, stop: func() {}}
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

// random returns a random part of the spread.
func (s *slotWatch) random() time.Duration { return rand.N(s.spread + 1) }

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
	s.own = 0
	s.signalled(now.Add(s.random()))
}

// signalled has the key asked for at an instant, because slots may have come free.
func (s *slotWatch) signalled(at time.Time) {
	k := s.key
	switch {
	case k.trip != nil:
		s.during = true
	case k.slots() && time.Now().Before(k.until):
		s.news = true
		k.wakeAt(at)
	}
}

// released takes in that this process released slots.
func (s *slotWatch) released() {
	k, now, streak, pause := s.key, time.Now(), longStreak, streakPause
	if s.reached() {
		s.own, s.ownUntil = s.own+1, now.Add(ownSignal)
	} else {
		streak, pause = deafStreak, deafPause
	}
	if !s.streak.IsZero() && now.Sub(s.streak) >= streak {
		s.streak = now.Add(pause + s.random()) // the next streak begins then
		k.cost, k.refusedBy, k.until = 1, bySlots, s.streak
		k.asking.agenda.plan(&k.wake, s.streak)
	}
	s.signalled(latest(now, s.streak))
	k.advance(now)
}

// landed plans when to ask again after a trip that was refused slots, or took the last ones.
func (s *slotWatch) landed(now time.Time) {
	k := s.key
	if k.won {
		s.spread, s.polls = leastSpread, 0
		if s.last = now; s.streak.IsZero() {
			s.streak = now
		}
	} else {
		s.refused(now)
	}
	if !k.lost {
		k.cost, k.refusedBy, k.retryAt = 1, bySlots, now.Add(24*time.Hour)
	}
	every := deafPoll
	if s.reached() {
		every = heartbeat
	}
	every = min(every<<min(s.polls, 5), longestPause)
	k.until = earliest(k.asking.poll(now.Add(every)), k.retryAt.Add(s.random()))
	if s.news = s.during; s.during {
		s.during = false
		k.until = earliest(k.until, now.Add(s.random()))
	}
	k.until = latest(k.until, now.Add(shortestPause))
}

// refused takes in that no caller of a trip was granted slots.
func (s *slotWatch) refused(now time.Time) {
	if now.Sub(s.last) > deafStreak {
		s.streak = time.Time{}
	}
	if s.news || !now.Before(s.retryAt) {
		s.spread = min(s.spread+s.spread/10, mostSpread)
	}
	if s.polls++; s.key.retryAt.Sub(s.retryAt).Abs() > shortestPause { // others hold the slots now
		s.polls = 0
	}
	s.retryAt = s.key.retryAt
}

package pace

import (
	"sync"
	"time"

	"github.com/weirflow/weir/internal/fair"
)

// agenda runs work at its time. One timer stands for all of it. The lock guards it, and is held while work runs.
type agenda struct {
	fair.Heap[*appointment]
	lock  *sync.Mutex
	after func() // runs when all work that is due has run
	timer *time.Timer
	wakes time.Time // when the timer fires; zero if it is not set
}

// appointment is work at an instant. It is made by newAppointment.
type appointment struct {
	at    time.Time
	place int
	run   func()
}

func newAgenda(lock *sync.Mutex, after func()) *agenda {
	return &agenda{lock: lock, after: after, Heap: fair.NewHeap(
		func(a, b *appointment) bool { return a.at.Before(b.at) },
		func(a *appointment) *int { return &a.place })}
}

// planned reports whether the work is still to be done.
func (a *appointment) planned() bool { return a.place >= 0 }

func newAppointment(run func()) appointment { return appointment{place: -1, run: run} }

// plan has the work run at an instant, instead of when it was planned before. Remove forgets it.
func (g *agenda) plan(a *appointment, at time.Time) {
	a.at = at
	g.Put(a)
	g.setTimer()
}

// setTimer makes the timer fire at the first instant, or before: a timer that fires too early sets itself again, which is
// cheaper than moving it at every change.
func (g *agenda) setTimer() {
	if g.Len() == 0 {
		return
	}
	at := g.First().at
	if !g.wakes.IsZero() && !g.wakes.After(at) {
		return
	}
	if g.wakes = at; g.timer == nil {
		g.timer = time.AfterFunc(time.Until(at), g.fire)
	} else {
		g.timer.Reset(time.Until(at))
	}
}

func (g *agenda) fire() {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.wakes = time.Time{}
	g.due(time.Now())
	g.after()
	g.setTimer()
}

// due runs the work that is due.
func (g *agenda) due(now time.Time) {
	for g.Len() > 0 && !g.First().at.After(now) {
		g.Pop().run()
	}
}

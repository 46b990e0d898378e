package calls

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// distant is a server at a distance, in virtual time. The round trip takes time, and so do the calls and decisions of a
// server that is busy with one call at a time.
type distant struct {
	trip    time.Duration
	call    time.Duration // of the server, for each call
	each    time.Duration // of the server, for each decision
	busy    chan struct{} // a mutex, for virtual time
	deaf    bool          // no call gets an answer
	calls   atomic.Int64
	flying  atomic.Int64
	highest atomic.Int64
}

func (f *distant) run(call []*Submission) (answered bool) {
	f.calls.Add(1)
	f.highest.Store(max(f.highest.Load(), f.flying.Add(1)))
	f.serve(len(call))
	time.Sleep(f.trip)
	f.flying.Add(-1)
	for _, s := range call {
		s.deliver()
	}
	return !f.deaf
}

func (f *distant) serve(decisions int) {
	if f.busy != nil {
		f.busy <- struct{}{}
		time.Sleep(f.call + time.Duration(decisions)*f.each)
		<-f.busy
	}
}

func (f *distant) committer(flights int) *Committer {
	return &Committer{unheard: new(atomic.Int64), run: f.run, most: 128, worth: 32, distance: distance{most: flights, all: new(trips), several: true}}
}

func ask(t *testing.T, c *Committer) {
	s := NewSubmission()
	s.Decisions = s.One[:]
	if err := c.do(context.Background(), s); err != nil {
		t.Errorf("do: %v", err)
	}
}

// warm has the committer measure the distance.
func warm(t *testing.T, c *Committer) {
	for range 2 {
		ask(t, c)
	}
}

// Callers that come at random find a distant server as if each had a connection of its own.
func TestCallersOfADistantServerDoNotWaitForEachOther(t *testing.T) {
	for _, trip := range []time.Duration{200 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond} {
		for _, perSecond := range []float64{50, 500, 2000, 8000, 30000} {
			synctest.Test(t, func(t *testing.T) {
				f := &distant{trip: trip}
				c := f.committer(64)
				warm(t, c)
				n := int(min(max(perSecond/2, 200), 6000))
				took := atRandom(t, c, n, perSecond)
				p50, p90 := took[n/2], took[n*9/10]
				t.Logf("round trip %v, %.0f/s: p50 %v, p90 %v, %d calls for %d decisions, %d in flight", trip, perSecond, p50, p90, f.calls.Load(), n, f.highest.Load())
				if p50 > trip*110/100 || p90 > trip*130/100 || f.highest.Load() > 64 {
					t.Errorf("round trip %v, %.0f/s: p50 %v, p90 %v, %d calls in flight, want 1.1 and 1.3 round trips and 64", trip, perSecond, p50, p90, f.highest.Load())
				}
			})
		}
	}
}

// Callers that ask again at once lose little to those with a call of their own, and share calls.
func TestAFixedNumberOfCallersOfADistantServerLosesLittle(t *testing.T) {
	for _, trip := range []time.Duration{3 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond} {
		for _, callers := range []int{1, 16, 64, 512, 2048} {
			synctest.Test(t, func(t *testing.T) {
				f := &distant{trip: trip}
				c := f.committer(64)
				warm(t, c)
				const trips = 30
				var decisions atomic.Int64
				began := time.Now()
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						for time.Since(began) < trips*trip {
							ask(t, c)
							decisions.Add(1)
						}
					})
				}
				all.Wait()
				share := float64(decisions.Load()) * float64(trip) / float64(time.Since(began)) / float64(callers)
				t.Logf("round trip %v, %d callers: %.3f of the decisions of bare calls, %d in flight", trip, callers, share, f.highest.Load())
				if share < 0.95 {
					t.Errorf("round trip %v, %d callers: %.3f of the decisions of bare calls, want 0.95", trip, callers, share)
				}
			})
		}
	}
}

// Nearby, at most two calls are in flight, because decisions that share a call cost less.
func TestCallersOfANearServerShareCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &distant{trip: 100 * time.Microsecond}
		c := f.committer(64)
		warm(t, c)
		var all sync.WaitGroup
		for range 128 {
			all.Go(func() {
				for range 20 {
					ask(t, c)
				}
			})
		}
		all.Wait()
		if f.highest.Load() > 2 || f.calls.Load() > 128*20/8 {
			t.Errorf("%d calls for %d decisions, %d in flight, want few and 2", f.calls.Load(), 128*20, f.highest.Load())
		}
	})
}

// perSecond returns the decisions a second of callers that ask again at once, and the number of calls.
func perSecond(t *testing.T, trip, call time.Duration, callers int, decide func(*testing.T, *distant) func()) (rate float64, calls int64) {
	synctest.Test(t, func(t *testing.T) {
		f := &distant{trip: trip, call: call, each: 2500 * time.Nanosecond, busy: make(chan struct{}, 1)}
		decide := decide(t, f)
		const window = 30 * time.Millisecond
		var decisions atomic.Int64
		began := time.Now()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for time.Since(began) < window {
					decide()
					decisions.Add(1)
				}
			})
		}
		all.Wait()
		rate, calls = float64(decisions.Load())/time.Since(began).Seconds(), f.calls.Load()
	})
	return rate, calls
}

func bareCalls(_ *testing.T, f *distant) func() {
	return func() { f.run([]*Submission{{done: make(chan struct{}, 1)}}) }
}

func sharedCalls(t *testing.T, f *distant) func() {
	c := f.committer(64)
	warm(t, c)
	return func() { ask(t, c) }
}

// A server in the next room, whose calls and decisions cost what they cost Redis, makes at least 0.95 of the decisions of
// bare calls for a few callers, and twice as many for those that saturate it. If calls cost so much that 16 callers
// saturate it, they share calls.
func TestCallersOfAServerInTheNextRoomGainByOthers(t *testing.T) {
	const call, dear, us = 5 * time.Microsecond, 40 * time.Microsecond, time.Microsecond
	for _, tt := range []struct {
		trip, call time.Duration
		callers    int
		least      float64
	}{
		{150 * us, call, 16, 0.92}, {150 * us, call, 4096, 2},
		{200 * us, call, 4, 0.95}, {200 * us, call, 16, 0.95}, {200 * us, call, 128, 2}, {200 * us, call, 4096, 2},
		{500 * us, call, 16, 0.95}, {500 * us, call, 128, 1.3}, {500 * us, call, 4096, 2},
		{900 * us, call, 16, 0.95}, {900 * us, call, 128, 0.95}, {900 * us, call, 4096, 2},
		{3000 * us, call, 128, 0.95}, {3000 * us, call, 4096, 2},
		{200 * us, dear, 16, 1.25},
	} {
		bare, _ := perSecond(t, tt.trip, tt.call, tt.callers, bareCalls)
		shared, calls := perSecond(t, tt.trip, tt.call, tt.callers, sharedCalls)
		t.Logf("round trip %v, %v a call, %d callers: %.0f decisions/s, %.2f of bare, %d calls", tt.trip, tt.call, tt.callers, shared, shared/bare, calls)
		if shared < tt.least*bare {
			t.Errorf("round trip %v, %v a call, %d callers: %.2f of the decisions of bare calls, want %.2f", tt.trip, tt.call, tt.callers, shared/bare, tt.least)
		}
	}
}

// The distance follows the server: a failover may lead far away and back.
func TestTheDistanceIsMeasuredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &distant{trip: 100 * time.Microsecond}
		c := f.committer(64)
		for _, trip := range []time.Duration{100 * time.Microsecond, 10 * time.Millisecond, 100 * time.Microsecond} {
			f.trip = trip
			for began := time.Now(); time.Since(began) < 3*distanceWindow; {
				ask(t, c)
			}
			if distant := c.distance.calls > 1; distant != (trip > near) {
				t.Errorf("at a round trip of %v: %d calls may leave at once", trip, c.distance.calls)
			}
		}
	})
}

// Options.Flights bounds the calls in flight, however many callers there are.
func TestFlightsBoundsTheCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &distant{trip: 10 * time.Millisecond}
		c := f.committer(3)
		warm(t, c)
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { ask(t, c) })
		}
		all.Wait()
		if f.highest.Load() > 3 {
			t.Errorf("%d calls were in flight, want at most 3", f.highest.Load())
		}
	})
}

// Calls to a busy machine nearby take as long as calls to a distant server: they wait for a processor. More calls would
// only add to that, so the callers of each lane of a cluster still share calls.
func TestCallersOfABusyServerNearbyShareCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &distant{trip: 60 * time.Microsecond, call: 40 * time.Microsecond, each: 4 * time.Microsecond, busy: make(chan struct{}, 1)}
		lanes, trips := make([]*Committer, 16), new(trips)
		for i := range lanes {
			lanes[i] = f.committer(64)
			lanes[i].distance.all = trips
		}
		var all sync.WaitGroup
		for i := range 128 {
			all.Go(func() {
				for range 100 {
					ask(t, lanes[i%len(lanes)])
				}
			})
		}
		all.Wait()
		each := float64(128*100) / float64(f.calls.Load())
		t.Logf("%.1f decisions a call of 8 callers, %d calls in flight", each, f.highest.Load())
		if each < 5 || f.highest.Load() > 16 {
			t.Errorf("8 callers of each of 16 lanes make %.1f decisions a call with %d calls in flight, want 5 or more and one call of each lane", each, f.highest.Load())
		}
	})
}

// A cluster may have a master farther away than the others: its lanes do not rely on the round trips of other lanes.
func TestCallersOfTheFartherMasterOfAClusterDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := &distant{trip: 50 * time.Microsecond}, &distant{trip: 10 * time.Millisecond}
		nearby, distant := near.committer(64), far.committer(64)
		distant.distance.all = nearby.distance.all
		var all sync.WaitGroup
		defer all.Wait()
		all.Go(func() {
			for began := time.Now(); time.Since(began) < 3*distanceWindow; {
				ask(t, nearby)
				time.Sleep(time.Millisecond)
			}
		})
		for range 1 + sure { // the first answer of an engine does not count
			ask(t, distant)
		}
		took := atRandom(t, distant, 450, 500)
		if longest := took[len(took)-1]; longest > far.trip*105/100 {
			t.Errorf("the slowest of 450 callers at 500/s took %v, want one round trip of %v", longest, far.trip)
		}
	})
}

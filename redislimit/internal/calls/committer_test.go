package calls

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// While one call is under way, a second leaves as soon as enough decisions wait for it, and never a third. A real
// server cannot be made to answer when the last caller waits.
func TestASecondCallLeavesWhenEnoughWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int // of the calls, in the order in which they left
		answer := make(chan struct{})
		c := &Committer{unheard: new(atomic.Int64), most: 40, worth: 10, distance: distance{most: 64, all: new(trips)}}
		var mu sync.Mutex
		c.run = func(submissions []*Submission) bool {
			mu.Lock()
			sizes = append(sizes, len(submissions))
			mu.Unlock()
			<-answer
			for _, s := range submissions {
				s.deliver()
			}
			return true
		}
		var all sync.WaitGroup
		out := func(callers int, want ...int) {
			t.Helper()
			for range callers {
				all.Go(func() {
					s := NewSubmission()
					s.Decisions = s.One[:]
					if err := c.do(context.Background(), s); err != nil {
						t.Errorf("do: %v", err)
					}
				})
			}
			synctest.Wait()
			if mu.Lock(); !slices.Equal(sizes, want) {
				t.Errorf("calls of %v decisions are out, want %v", sizes, want)
			}
			mu.Unlock()
		}
		out(1, 1)
		out(9, 1)
		out(1, 1, 10)
		out(50, 1, 10)
		answer <- struct{}{}
		out(0, 1, 10, 40)
		answer <- struct{}{}
		out(0, 1, 10, 40, 10)
		close(answer)
		all.Wait()
	})
}

// Each caller that leaves a long queue costs about the same, in any order. With a search of the queue, each would
// cost 64 times as much in a queue 64 times as long.
func TestLeavingALongQueueCostsNoMoreThanLeavingAShortOne(t *testing.T) {
	each := func(callers int) time.Duration {
		c := &Committer{unheard: new(atomic.Int64), most: 128, worth: 1 << 30, flying: 1}
		waiting := make([]*Submission, callers)
		for i := range waiting {
			waiting[i] = &Submission{}
			waiting[i].Decisions = waiting[i].One[:]
			c.push(waiting[i])
		}
		began := time.Now()
		for i := range waiting { // the middle first
			if !c.leave(waiting[(i+callers/2)%callers]) {
				t.Fatal("a caller in the queue was not found in it")
			}
		}
		took := time.Since(began)
		if c.leave(waiting[0]) || c.queue.decisions != 0 || c.next() != nil {
			t.Error("the queue is not empty after all have left")
		}
		return took / time.Duration(callers)
	}
	short, long := each(1600), each(102_400)
	for range 4 {
		short, long = min(short, each(1600)), min(long, each(102_400))
	}
	// A search would go past 25,000 callers or more, in 50 us at least. The memory of many callers is slower than of few.
	if long > 20*short+10*time.Microsecond {
		t.Errorf("leaving a queue of 102,400 took %v for each caller, and one of 1,600 %v", long, short)
	}
}

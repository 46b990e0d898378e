package redislimit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// While one call is under way, a second leaves as soon as enough decisions wait for it, and never a third. A real
// server cannot be made to answer when the last caller waits.
func TestASecondCallLeavesWhenEnoughWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int // of the calls, in the order in which they left
		answer := make(chan struct{})
		c := &committer{unheard: new(atomic.Int64), most: 40, worth: 10, distance: distance{most: 64, all: new(trips)}}
		var mu sync.Mutex
		c.run = func(submissions []*submission) bool {
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
					s := &submission{done: make(chan struct{}, 1)}
					s.decisions = s.one[:]
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

package calls

import (
	"container/heap"
	"sync"
	"time"
)

// background runs the tasks of an engine at their times: it renews leases and repeats undos. Tasks do not block. One
// timer serves all of them, and only while there are any.
type background struct {
	mu     sync.Mutex
	tasks  taskHeap
	timer  *time.Timer
	closed bool
}

// Task is something to do at a time. A task is in the heap at most once.
type Task struct {
	due     time.Time
	Run     func(now time.Time)
	dropped func() // called instead if close comes first; may be nil, and must not call background
	place   int    // in the heap, from 1; 0 if it is not there
}

func (t *Task) drop() {
	if t.dropped != nil {
		t.dropped()
	}
}

// At plans the task, or moves it to another time. After close it drops the task.
func (b *background) At(due time.Time, t *Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		t.drop()
		return
	}
	t.due = due
	if t.place == 0 {
		heap.Push(&b.tasks, t)
	} else {
		heap.Fix(&b.tasks, t.place-1)
	}
	b.wake()
}

// Forget removes a task that is no longer needed.
func (b *background) Forget(t *Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.place > 0 && !b.closed {
		heap.Remove(&b.tasks, t.place-1)
	}
}

// wake sets the timer to the first task. The caller holds the lock.
func (b *background) wake() {
	if len(b.tasks) == 0 {
		return
	}
	wait := time.Until(b.tasks[0].due)
	if b.timer == nil {
		b.timer = time.AfterFunc(wait, b.run)
	} else {
		b.timer.Reset(wait)
	}
}

// run runs the tasks that are due.
func (b *background) run() {
	now := time.Now()
	for {
		b.mu.Lock()
		if b.closed || len(b.tasks) == 0 || b.tasks[0].due.After(now) {
			if !b.closed {
				b.wake()
			}
			b.mu.Unlock()
			return
		}
		next := heap.Pop(&b.tasks).(*Task)
		b.mu.Unlock()
		next.Run(now)
	}
}

// close drops all tasks.
func (b *background) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
	for _, t := range b.tasks {
		t.drop()
	}
	b.closed, b.tasks = true, nil
}

// taskHeap is a heap.Interface, the earliest first.
type taskHeap []*Task

func (h taskHeap) Len() int           { return len(h) }
func (h taskHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h taskHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

func (h *taskHeap) Push(x any) {
	t := x.(*Task)
	*h = append(*h, t)
	t.place = len(*h)
}

func (h *taskHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last], t.place = nil, 0
	*h = (*h)[:last]
	return t
}

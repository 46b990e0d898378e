package line

import "container/heap"

// flowHeap is flows by the start of their first waiters, and then by their arrival.
type flowHeap []*flow

func (h flowHeap) Len() int { return len(h) }

func (h flowHeap) Less(i, j int) bool {
	f, g := h[i], h[j]
	fTag, gTag := Tag{f.start, f.weight}, Tag{g.start, g.weight}
	if fTag.Before(gTag) {
		return true
	}
	return !gTag.Before(fTag) && f.first.number < g.first.number
}

func (h flowHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *flowHeap) Push(x any) {
	f := x.(*flow)
	f.place = len(*h)
	*h = append(*h, f)
}

func (h *flowHeap) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return f
}

// all yields the waiters in order of release, and empties the heap.
func (h flowHeap) all(yield func(*Waiter) bool) {
	for len(h) > 0 {
		f := h[0]
		w := f.first
		if !yield(w) {
			return
		}
		f.start += min(w.n, fairUnits)
		if f.first = w.next; f.first == nil {
			f.first, f.newcomer = f.newcomer, nil
		}
		if f.first == nil {
			heap.Pop(&h)
		} else {
			heap.Fix(&h, 0)
		}
	}
}

package fair

// Heap is a binary heap whose items know their places, so that each can be moved and removed. An item that is in no heap
// has the place -1. The zero value of an item's place is therefore not valid.
type Heap[T any] struct {
	all   []T
	less  func(a, b T) bool
	place func(item T) *int
}

// NewHeap returns an empty heap. less orders the items, and place returns where an item keeps its place in this heap.
func NewHeap[T any](less func(a, b T) bool, place func(item T) *int) Heap[T] {
	return Heap[T]{less: less, place: place}
}

// Len returns the number of items.
func (h *Heap[T]) Len() int { return len(h.all) }

// Watch has observe called at each comparison, for tests that count them.
func (h *Heap[T]) Watch(observe func()) {
	less := h.less
	h.less = func(a, b T) bool { observe(); return less(a, b) }
}

// First returns the first item. The heap must not be empty.
func (h *Heap[T]) First() T { return h.all[0] }

// All returns the items in no particular order. The caller does not change the slice.
func (h *Heap[T]) All() []T { return h.all }

// Put adds an item, or moves it to where it belongs by now.
func (h *Heap[T]) Put(item T) {
	at := h.place(item)
	if *at < 0 {
		*at = len(h.all)
		h.all = append(h.all, item)
	}
	h.settle(*at)
}

// Pop removes the first item and returns it.
func (h *Heap[T]) Pop() T {
	first := h.all[0]
	h.Remove(first)
	return first
}

// Remove removes an item, if it is there.
func (h *Heap[T]) Remove(item T) {
	at, last := *h.place(item), len(h.all)-1
	if at < 0 {
		return
	}
	h.swap(at, last)
	*h.place(item) = -1
	clear(h.all[last:])
	h.all = h.all[:last]
	if at < last {
		h.settle(at)
	}
}

// settle moves the item at a place to where it belongs.
func (h *Heap[T]) settle(at int) {
	for at > 0 && h.less(h.all[at], h.all[(at-1)/2]) {
		h.swap(at, (at-1)/2)
		at = (at - 1) / 2
	}
	for child := 2*at + 1; child < len(h.all); at, child = child, 2*child+1 {
		if child+1 < len(h.all) && h.less(h.all[child+1], h.all[child]) {
			child++
		}
		if !h.less(h.all[child], h.all[at]) {
			return
		}
		h.swap(at, child)
	}
}

func (h *Heap[T]) swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	*h.place(h.all[i]), *h.place(h.all[j]) = i, j
}

// Package fair orders waiting callers.
package fair

import "container/heap"

// Heap is a binary heap whose items know their places, so that each can be moved and removed. An item that is in no heap
// has the place -1. The zero value of an item's place is therefore not valid.
type Heap[T any] struct {
	items items[T]
}

// NewHeap returns an empty heap. less orders the items, and place returns where an item keeps its place in this heap.
func NewHeap[T any](less func(a, b T) bool, place func(item T) *int) Heap[T] {
	return Heap[T]{items[T]{less: less, place: place}}
}

// Len returns the number of items.
func (h *Heap[T]) Len() int { return len(h.items.all) }

// Watch has observe called at each comparison, for tests that count them.
func (h *Heap[T]) Watch(observe func()) {
	less := h.items.less
	h.items.less = func(a, b T) bool { observe(); return less(a, b) }
}

// First returns the first item. The heap must not be empty.
func (h *Heap[T]) First() T { return h.items.all[0] }

// All returns the items in no particular order. The caller does not change the slice.
func (h *Heap[T]) All() []T { return h.items.all }

// Put adds an item, or moves it to where it belongs by now.
func (h *Heap[T]) Put(item T) {
	if at := *h.items.place(item); at >= 0 {
		heap.Fix(&h.items, at)
		return
	}
	heap.Push(&h.items, item)
}

// Pop removes the first item and returns it.
func (h *Heap[T]) Pop() T { return heap.Pop(&h.items).(T) }

// Remove removes an item, if it is there.
func (h *Heap[T]) Remove(item T) {
	if at := *h.items.place(item); at >= 0 {
		heap.Remove(&h.items, at)
	}
}

// items implements heap.Interface.
type items[T any] struct {
	all   []T
	less  func(a, b T) bool
	place func(item T) *int
}

func (i *items[T]) Len() int           { return len(i.all) }
func (i *items[T]) Less(a, b int) bool { return i.less(i.all[a], i.all[b]) }

func (i *items[T]) Swap(a, b int) {
	i.all[a], i.all[b] = i.all[b], i.all[a]
	*i.place(i.all[a]), *i.place(i.all[b]) = a, b
}

func (i *items[T]) Push(x any) {
	item := x.(T)
	*i.place(item) = len(i.all)
	i.all = append(i.all, item)
}

func (i *items[T]) Pop() any {
	last := len(i.all) - 1
	item := i.all[last]
	var none T
	i.all[last] = none
	i.all = i.all[:last]
	*i.place(item) = -1
	return item
}

package fetch

import "container/heap"

// ordered is items in an order. Each item knows its place, so that it can move and leave.
type ordered[T interface{ spot() *int }] struct {
	items  []T
	before func(a, b T) bool
}

// placed is embedded in the items of an ordered.
type placed struct{ place int }

func (p *placed) spot() *int { return &p.place }

func (h *ordered[T]) push(x T)   { heap.Push(h, x) }
func (h *ordered[T]) remove(x T) { heap.Remove(h, *x.spot()) }
func (h *ordered[T]) moved(x T)  { heap.Fix(h, *x.spot()) }

// first returns the first item, or none.
func (h *ordered[T]) first() (x T) {
	if len(h.items) > 0 {
		x = h.items[0]
	}
	return x
}

// The methods of heap.Interface.

func (h *ordered[T]) Len() int           { return len(h.items) }
func (h *ordered[T]) Less(i, j int) bool { return h.before(h.items[i], h.items[j]) }
func (h *ordered[T]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.items[i].spot(), *h.items[j].spot() = i, j
}
func (h *ordered[T]) Push(x any) {
	item := x.(T)
	*item.spot() = len(h.items)
	h.items = append(h.items, item)
}
func (h *ordered[T]) Pop() any {
	last := len(h.items) - 1
	item := h.items[last]
	var none T
	h.items[last] = none
	h.items = h.items[:last]
	return item
}

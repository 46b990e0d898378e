package pace

import "container/heap"

// lineHeap is lines in one of their orders. at returns the place of a line's index in the heap.
type lineHeap struct {
	lines []*queueLine
	less  func(a, b *queueLine) bool
	at    func(l *queueLine) *int
}

func (h *lineHeap) Len() int           { return len(h.lines) }
func (h *lineHeap) Less(i, j int) bool { return h.less(h.lines[i], h.lines[j]) }
func (h *lineHeap) Swap(i, j int) {
	h.lines[i], h.lines[j] = h.lines[j], h.lines[i]
	*h.at(h.lines[i]), *h.at(h.lines[j]) = i, j
}

func (h *lineHeap) Push(x any) {
	l := x.(*queueLine)
	*h.at(l) = len(h.lines)
	h.lines = append(h.lines, l)
}

func (h *lineHeap) Pop() any {
	last := len(h.lines) - 1
	l := h.lines[last]
	h.lines[last] = nil
	h.lines = h.lines[:last]
	*h.at(l) = -1
	return l
}

func (h *lineHeap) remove(l *queueLine) {
	if i := *h.at(l); i >= 0 {
		heap.Remove(h, i)
	}
}

func byArrival(a, b *queueLine) bool { return a.first().arrival < b.first().arrival }
func byInstant(a, b *queueLine) bool { return a.notBefore.Before(b.notBefore) }

// keyHeap is keys by the instant until which they are shut.
type keyHeap []*localKey

func (h keyHeap) Len() int           { return len(h) }
func (h keyHeap) Less(i, j int) bool { return h[i].shut.Before(h[j].shut) }
func (h keyHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].inShut, h[j].inShut = i, j
}

func (h *keyHeap) Push(x any) {
	key := x.(*localKey)
	key.inShut = len(*h)
	*h = append(*h, key)
}

func (h *keyHeap) Pop() any {
	last := len(*h) - 1
	key := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return key
}

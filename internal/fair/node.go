package fair

// Node is the place of a waiter in a Queue. The waiter holds it, so that a place takes no memory of its own.
type Node[W any] struct {
	Cost    int64  // what its flow is charged when it is served
	Arrival uint64 // decides between equal starts of different flows

	waiter         W
	in             *flow[W] // nil if it is in no queue
	previous, next *Node[W]
}

// Queued reports whether the waiter is in a queue.
func (n *Node[W]) Queued() bool { return n.in != nil }

// Next returns the next waiter of the same flow or list, or the zero value.
func (n *Node[W]) Next() W { return n.next.get() }

// get returns the waiter, or the zero value for nil.
func (n *Node[W]) get() (w W) {
	if n != nil {
		w = n.waiter
	}
	return w
}

// units returns what the flow is charged.
func (n *Node[W]) units() int64 { return min(n.Cost, fairUnits) }

// List is waiters in order, each of which is in no other list and no queue.
type List[W any] struct{ first, last *Node[W] }

// Push adds a waiter at the end.
func (l *List[W]) Push(w W, n *Node[W]) {
	n.waiter, n.previous, n.next = w, l.last, nil
	if l.last == nil {
		l.first = n
	} else {
		l.last.next = n
	}
	l.last = n
}

// All yields the waiters. The loop may remove the one that it has.
func (l *List[W]) All(yield func(W) bool) {
	for n := l.first; n != nil; {
		next := n.next
		if !yield(n.waiter) {
			return
		}
		n = next
	}
}

// remove removes a waiter of the list.
func (l *List[W]) remove(n *Node[W]) {
	if n.previous == nil {
		l.first = n.next
	} else {
		n.previous.next = n.next
	}
	if n.next == nil {
		l.last = n.previous
	} else {
		n.next.previous = n.previous
	}
	n.previous, n.next = nil, nil
}

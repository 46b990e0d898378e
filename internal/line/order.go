package line

// order chooses the next waiter: by arrival within a class, and between classes by weighted fairness. It is
// start-time fair queueing (Goyal, Vin and Cheng, 1996). A waiter starts, in virtual time, when the waiter before it
// in its class has been served its cost divided by the weight; the earliest start comes first. With one class this is
// the order of arrival.
type order struct {
	classes []class
	virtual int64 // the start of the waiter served last
}

// class is a queue of waiters, linked in order of arrival.
type class struct {
	perUnit     int64 // virtual time of one unit
	first, last *Waiter
	start       int64 // of the first waiter
	finish      int64 // of the last waiter served
}

// fairScale is the virtual time of one unit at weight 1. Weights up to MaxWeight divide it with an error below one in
// a thousand.
const (
	fairScale = 1 << 20
	MaxWeight = 1 << 10
	fairUnits = 1 << 40 // larger costs count as this, so that times fit
)

func newOrder(weights []int64) order {
	if len(weights) == 0 {
		weights = []int64{1}
	}
	o := order{classes: make([]class, len(weights))}
	for i, w := range weights {
		o.classes[i].perUnit = fairScale / w
	}
	return o
}

// next returns the next waiter, or nil for an empty line.
func (o *order) next() *Waiter {
	if c := o.nextClass(); c != nil {
		return c.first
	}
	return nil
}

func (o *order) nextClass() (next *class) {
	for i := range o.classes {
		if c := &o.classes[i]; c.first != nil && (next == nil || c.start < next.start) {
			next = c
		}
	}
	return next
}

func (o *order) push(w *Waiter) {
	c := &o.classes[w.class]
	if c.last == nil {
		c.first = w
		c.start = max(o.virtual, c.finish)
	} else {
		c.last.next, w.previous = w, c.last
	}
	c.last = w
}

// serve removes w, which is next, and charges its class.
func (o *order) serve(w *Waiter) {
	c := &o.classes[w.class]
	o.virtual = c.start
	c.finish = c.start + min(w.n, fairUnits)*c.perUnit
	o.remove(w)
	c.start = c.finish
	if o.virtual > 1<<61 {
		o.rebase()
	}
}

// remove removes w without charging its class; later waiters move up.
func (o *order) remove(w *Waiter) {
	c := &o.classes[w.class]
	if w.previous == nil {
		c.first = w.next
	} else {
		w.previous.next = w.next
	}
	if w.next == nil {
		c.last = w.previous
	} else {
		w.next.previous = w.previous
	}
	w.previous, w.next = nil, nil
}

// fromEnd returns the n-th waiter from the end of the only class, or nil for n = 0.
func (o *order) fromEnd(n int) (w *Waiter) {
	for ; n > 0; n-- {
		if w == nil {
			w = o.classes[0].last
		} else {
			w = w.previous
		}
	}
	return w
}

// rebase moves virtual time back to 0, long before it overflows.
func (o *order) rebase() {
	for i := range o.classes {
		c := &o.classes[i]
		c.start = max(c.start-o.virtual, 0)
		c.finish = max(c.finish-o.virtual, 0)
	}
	o.virtual = 0
}

// all yields the waiters in order of release, without newcomers.
func (o *order) all(yield func(*Waiter) bool) {
	if len(o.classes) == 1 {
		for w := o.classes[0].first; w != nil; w = w.next {
			if !yield(w) {
				return
			}
		}
		return
	}
	rest := order{classes: append([]class(nil), o.classes...), virtual: o.virtual}
	for c := rest.nextClass(); c != nil; c = rest.nextClass() {
		w := c.first
		if !yield(w) {
			return
		}
		rest.virtual = c.start
		c.finish = c.start + min(w.n, fairUnits)*c.perUnit
		c.first = w.next
		c.start = c.finish
	}
}

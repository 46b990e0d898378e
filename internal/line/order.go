package line

import "container/heap"

// order chooses the next waiter: by arrival within a flow, and between flows by weighted fairness. It is start-time
// fair queueing (Goyal, Vin and Cheng, 1996). A waiter starts, in virtual time, when the waiter before it in its flow
// has been served its cost divided by the weight; the earliest start comes first, and of equal ones the earliest
// arrival. With one flow this is the order of arrival.
//
// A flow is made when its first waiter joins, and forgotten when it is indistinguishable from a new one.
type order struct {
	weights *[]int64 // of the classes
	own     flow     // the first flow, with the line, because most lines have no other; its weight is 0 until it is made
	several *several // nil while there is no other flow
	virtual Tag      // the start of the waiter served last
	arrived uint64   // waiters so far
}

// several is the flows of an order that has had more than one, with the first.
type several struct {
	flows   map[Flow]*flow
	waiting flowHeap // the flows that have a waiter
	sweepAt int      // the number of flows at which to look for forgettable ones
}

// Flow names the waiters that share the limit with other flows by weight: by a name, or by a class if the name is
// empty.
type Flow struct {
	Class int
	Name  string
}

// flow is a queue of waiters, linked in order of arrival.
type flow struct {
	Flow
	weight      int64
	first, last *Waiter
	start       int64 // of the first waiter, in units divided by the weight
	finish      int64 // of the last waiter served
	place       int   // in the heap
	waiters     int
	units       int64 // the costs of the waiters
	sums        *sums // nil until they are asked for

	newcomer *Waiter // behind last; only in a copy
}

const (
	// MaxWeight is the largest weight.
	MaxWeight = 1 << 10

	fairUnits   = 1 << 40 // larger costs count as this, so that tags fit
	farthest    = 1 << 49 // virtual time begins again beyond it, so that tags fit for every weight
	firstSweep  = 64
	nothingSaid = 0 // the weight of a turn that names none
)

func newOrder(weights *[]int64) order { return order{weights: weights, virtual: Tag{0, 1}} }

// single reports whether all waiters go in order of arrival.
func (o *order) single() bool { return o.several == nil && len(*o.weights) < 2 }

// next returns the next waiter, or nil for an empty line.
func (o *order) next() *Waiter {
	switch {
	case o.several == nil:
		return o.own.first
	case len(o.several.waiting) > 0:
		return o.several.waiting[0].first
	}
	return nil
}

// push adds w at the end of its flow. The first waiter of a flow chooses its weight.
func (o *order) push(w *Waiter, name Flow, weight int64) {
	f := o.flowOf(name, weight)
	o.arrived++
	w.number, w.in = o.arrived, f
	f.join(w)
	if f.last != nil {
		f.last.next, w.previous = w, f.last
		f.last = w
		return
	}
	f.first, f.last, f.start = w, w, f.startAt(o.virtual)
	if o.several != nil {
		heap.Push(&o.several.waiting, f)
	}
}

// flowOf returns the flow of a name, and makes it if needed.
func (o *order) flowOf(name Flow, weight int64) *flow {
	if f := o.known(name); f != nil {
		return f
	}
	made := o.newFlow(name, weight)
	switch {
	case o.own.weight == 0:
		o.own = made
		return &o.own
	case o.several == nil:
		o.several = &several{flows: map[Flow]*flow{o.own.Flow: &o.own}, sweepAt: firstSweep}
		if o.own.first != nil {
			heap.Push(&o.several.waiting, &o.own)
		}
	}
	o.several.forget(o.virtual)
	f := new(flow)
	*f = made
	o.several.flows[name] = f
	return f
}

func (o *order) newFlow(name Flow, weight int64) flow {
	f := flow{Flow: name, weight: weight}
	if f.weight == nothingSaid {
		f.weight = 1
		if f.Name == "" && f.Class < len(*o.weights) {
			f.weight = (*o.weights)[f.Class]
		}
	}
	return f
}

// startAt returns the start of a waiter that joins the empty flow: virtual time, rounded up, or the end of the flow's
// service if that is later.
func (f *flow) startAt(virtual Tag) int64 { return max(virtual.In(f.weight), f.finish) }

// serve removes w, which is next, and charges its flow.
func (o *order) serve(w *Waiter) {
	f := w.in
	o.virtual = Tag{f.start, f.weight}
	f.finish = f.start + min(w.n, fairUnits)
	f.start = f.finish
	o.unlink(w)
	if f.finish > farthest*f.weight {
		o.rebase()
	}
}

// remove removes w without charging its flow; later waiters move up. Beside other flows, the next one takes over the place of a
// head.
func (o *order) remove(w *Waiter) {
	if w.previous == nil && w.next != nil && o.several != nil {
		w.next.number = w.number
	}
	o.unlink(w)
}

func (o *order) unlink(w *Waiter) {
	f := w.in
	if w.previous == nil {
		f.first = w.next
	} else {
		w.previous.next = w.next
	}
	if w.next == nil {
		f.last = w.previous
	} else {
		w.next.previous = w.previous
	}
	w.previous, w.next = nil, nil
	f.part(w)
	switch {
	case o.several == nil:
	case f.first == nil:
		heap.Remove(&o.several.waiting, f.place)
	default:
		heap.Fix(&o.several.waiting, f.place)
	}
}

// forget drops flows without a waiter whose service ended before virtual time: a new flow would start where they do.
func (o *several) forget(virtual Tag) {
	if len(o.flows) < o.sweepAt {
		return
	}
	for name, f := range o.flows {
		if f.first == nil && !virtual.Before(Tag{f.finish, f.weight}) {
			delete(o.flows, name)
		}
	}
	o.sweepAt = max(firstSweep, 2*len(o.flows))
}

// fromEnd returns the n-th waiter from the end of the only flow, or nil for n = 0.
func (o *order) fromEnd(n int) (w *Waiter) {
	for ; n > 0; n-- {
		if w == nil {
			w = o.own.last
		} else {
			w = w.previous
		}
	}
	return w
}

// rebase moves virtual time back to less than 1, long before it overflows.
func (o *order) rebase() {
	whole := o.virtual.Units / o.virtual.Weight
	o.virtual.Units -= whole * o.virtual.Weight
	back := func(f *flow) {
		f.start, f.finish = max(f.start-whole*f.weight, 0), max(f.finish-whole*f.weight, 0)
	}
	if o.several == nil {
		back(&o.own)
		return
	}
	for _, f := range o.several.flows {
		back(f)
	}
}

// all yields the waiters in order of release, without newcomers.
func (o *order) all(yield func(*Waiter) bool) {
	if o.several != nil {
		o.copied(nil, Flow{}, nothingSaid).all(yield)
		return
	}
	for w := o.own.first; w != nil; w = w.next {
		if !yield(w) {
			return
		}
	}
}

// copied returns the flows that have a waiter as a copy, which a loop may empty. It adds a newcomer, which may be nil.
func (o *order) copied(newcomer *Waiter, name Flow, weight int64) flowHeap {
	waiting := o.busy()
	rest := make(flowHeap, 0, len(waiting)+1)
	for _, f := range waiting {
		own := *f
		if newcomer != nil && f.Flow == name {
			own.newcomer, newcomer = newcomer, nil
		}
		rest = append(rest, &own)
	}
	if newcomer != nil {
		own := o.newFlow(name, weight)
		if known := o.known(name); known != nil {
			own = *known
		}
		own.start = own.startAt(o.virtual)
		own.first = newcomer
		rest = append(rest, &own)
	}
	heap.Init(&rest)
	return rest
}

// busy returns the flows that have a waiter.
func (o *order) busy() flowHeap {
	switch {
	case o.several != nil:
		return o.several.waiting
	case o.own.first != nil:
		return flowHeap{&o.own}
	}
	return nil
}

// known returns the flow of a name, or nil.
func (o *order) known(name Flow) *flow {
	switch {
	case o.several != nil:
		return o.several.flows[name]
	case o.own.weight != 0 && o.own.Flow == name:
		return &o.own
	}
	return nil
}

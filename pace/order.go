package pace

import (
	"container/heap"
	"container/list"

	"github.com/weirflow/weir/internal/line"
)

// order is the waiting callers of a line: in order of arrival, or by weighted fairness between flows. It is start-time
// fair queueing: a caller starts, in virtual time, when the caller before it in its flow has been served its cost
// divided by the weight. The earliest start goes first, and of equal ones the earliest arrival. A flow is made when its
// first caller waits, and forgotten with the line, or when it is indistinguishable from a new one.
//
// internal/line has an order of another type, whose waiters hold their own links, and where a head that leaves passes its
// arrival on. Here an arrival also ranks a caller among other lines, so it stays.
type order struct {
	flows   map[string]*flow
	waiting flowHeap // the flows that have a caller
	virtual line.Tag // the start of the caller served last
	length  int
}

// flow is the waiting callers of one name.
type flow struct {
	name          string
	weight        int64
	callers       list.List // of *caller, in order of arrival
	start, finish int64     // of the first caller and of the last one served, in units; divided by the weight they are tags
	index         int       // in the heap
}

const (
	fairUnits = 1 << 32 // larger costs count as this, so that tags fit
	farthest  = 1 << 48 // an order begins its virtual time again beyond it
)

type flowHeap []*flow

func (h flowHeap) Len() int { return len(h) }

func (h flowHeap) Less(i, j int) bool {
	f, g := h[i].tag(h[i].start), h[j].tag(h[j].start)
	return f.Before(g) || !g.Before(f) && h[i].first().arrival < h[j].first().arrival
}

func (h flowHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *flowHeap) Push(x any) {
	f := x.(*flow)
	f.index = len(*h)
	*h = append(*h, f)
}

func (h *flowHeap) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return f
}

// tag returns the virtual time of units of f.
func (f *flow) tag(units int64) line.Tag { return line.Tag{Units: units, Weight: f.weight} }

func (f *flow) first() *caller { return f.callers.Front().Value.(*caller) }

// first returns the next caller. The order has at least one.
func (o *order) first() *caller { return o.waiting[0].first() }

// single reports whether all callers go in order of arrival.
func (o *order) single() bool { return len(o.flows) < 2 }

// push adds p to its flow.
func (o *order) push(p *caller) {
	f := o.flows[p.flow]
	if f == nil {
		f = &flow{name: p.flow, weight: max(p.weight, 1)}
		if o.flows == nil {
			o.flows, o.virtual = map[string]*flow{}, line.Tag{Weight: 1}
		}
		o.forget()
		o.flows[p.flow] = f
	}
	o.length++
	p.inFlow, p.element = f, f.callers.PushBack(p)
	if f.callers.Len() == 1 {
		f.start = f.startAt(o.virtual)
		heap.Push(&o.waiting, f)
	}
}

// startAt returns the start of a caller that joins the empty flow: virtual time, rounded up, or the end of the flow's
// service if that is later.
func (f *flow) startAt(virtual line.Tag) int64 { return max(virtual.In(f.weight), f.finish) }

// serve removes p, which goes, and charges its flow.
func (o *order) serve(p *caller) {
	f := p.inFlow
	o.virtual = f.tag(f.start)
	f.start += min(p.cost(), fairUnits)
	f.finish = f.start
	o.remove(p)
	if f.finish > farthest*f.weight {
		o.flows, o.virtual = map[string]*flow{}, line.Tag{Weight: 1}
		for _, f := range o.waiting {
			f.start, f.finish, o.flows[f.name] = 0, 0, f
		}
		heap.Init(&o.waiting)
	}
}

// remove removes p without charging its flow.
func (o *order) remove(p *caller) {
	f := p.inFlow
	f.callers.Remove(p.element)
	o.length--
	if f.callers.Len() == 0 {
		heap.Remove(&o.waiting, f.index)
	} else {
		heap.Fix(&o.waiting, f.index)
	}
}

// forget drops flows without a caller whose service ended before virtual time: a new flow would start where they do.
func (o *order) forget() {
	if len(o.flows) < 64 || len(o.flows) < 2*len(o.waiting) {
		return
	}
	for name, f := range o.flows {
		if f.callers.Len() == 0 && !o.virtual.Before(f.tag(f.finish)) {
			delete(o.flows, name)
		}
	}
}

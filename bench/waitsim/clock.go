package main

import "container/heap"

// instant is a virtual time in microseconds.
type instant = int64

const (
	ms     instant = 1000
	second instant = 1000 * ms
	never  instant = 1 << 62
)

// clock runs functions in order of their virtual time, and those of one time in the order in which they were planned.
type clock struct {
	now    instant
	events events
	last   int64
}

type event struct {
	at  instant
	seq int64
	do  func()
}

func (c *clock) at(t instant, do func()) {
	c.last++
	heap.Push(&c.events, event{max(t, c.now), c.last, do})
}

func (c *clock) after(d instant, do func()) { c.at(c.now+d, do) }

func (c *clock) runUntil(end instant) {
	for len(c.events) > 0 && c.events[0].at <= end {
		e := heap.Pop(&c.events).(event)
		c.now = e.at
		e.do()
	}
}

// alarm calls do at the earliest instant it was set to since it last went off.
type alarm struct {
	c   *clock
	due instant
	gen int
	do  func()
}

func (a *alarm) set(t instant) {
	t = max(t, a.c.now)
	if a.due != 0 && a.due <= t {
		return
	}
	a.due = t
	a.gen++
	gen := a.gen
	a.c.at(t, func() {
		if gen == a.gen {
			a.due = 0
			a.do()
		}
	})
}

func (a *alarm) stop() { a.due = 0; a.gen++ }

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

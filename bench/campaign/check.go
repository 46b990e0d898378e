package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/bench/internal/trial"
	"github.com/weirflow/weir/redislimit"
)

// broken is a promise that was not kept, with what is needed to look into it.
type broken struct {
	World    int
	Promise  string
	Text     string
	Subject  int   // -1 if it is none of one subject
	From, To int64 // the window in question
}

// The promises.
const (
	promiseBound  = "a limit admits at most its bound, and what the table grants"
	promiseSlots  = "at most the slots of a limit are held"
	promiseLeaked = "no slot stays taken"
	promiseLeft   = "nothing stays to be undone or renewed"
	promiseOnTime = "no call outlasts its deadline"
	promiseServed = "a caller in line goes within a second while slots are free"
	promiseErrors = "a call fails only for the reasons of its faults"
)

// account is what happened to one subject of one world.
type account struct {
	used, returned, unanswered, resets []trial.Span
	held, lost                         []trial.Span // [answered, freed], and until the holder heard that the slots were lost
	holding                            map[uint64]*trial.Span
	booked                             map[uint64]int // places of bookings in used
	waited, waitedRate                 []trial.Span   // in line, for slots, and for slots and a rate
	taken, perhapsTaken                []trial.Span   // slots, in the server: longer than held
}

// book sorts records into accounts.
type book struct {
	subjects []subject
	lanes    []int
	worlds   map[int]*world
	accounts map[[2]int]*account // by world and subject
	counts   map[tally]int64
	late     []record
	left     []record
	busy     busyTimes
	from, to int64 // of the campaign
	origins  map[origin]string
}

// origin is a verb and the process that called it.
type origin struct {
	verb    string
	process int
}

func newBook(subjects []subject, lanes []int, worlds map[int]*world) *book {
	return &book{subjects: subjects, lanes: lanes, worlds: worlds, accounts: map[[2]int]*account{}, busy: busyTimes{}, counts: map[tally]int64{}, from: never, origins: map[origin]string{}}
}

func (b *book) account(worldNumber, i int) *account {
	name := [2]int{worldNumber, i}
	a := b.accounts[name]
	if a == nil {
		a = &account{holding: map[uint64]*trial.Span{}, booked: map[uint64]int{}}
		b.accounts[name] = a
	}
	return a
}

// add notes one record.
func (b *book) add(r record) {
	switch r.Kind {
	case recordCount:
		b.counts[tally{r.World, r.What}] += r.Units
		return
	case recordLate:
		b.late = append(b.late, r)
		return
	case recordLeft:
		b.left = append(b.left, r)
		return
	case recordBusy:
		b.busy.add(r.Sent, r.Answered, r.Units)
		return
	}
	b.from, b.to = min(b.from, r.Sent), max(b.to, r.Sent)
	a, s := b.account(r.World, r.Subject), trial.Span{From: r.Sent, To: r.Answered, Units: float64(r.Units), By: b.by(r)}
	id := uint64(r.Process)<<48 | r.ID
	switch r.Kind {
	case recordUsed:
		a.used = append(a.used, s)
		if r.ID > 0 {
			a.booked[id] = len(a.used) - 1
		}
	case recordCancelled:
		if i, known := a.booked[id]; known {
			a.used[i].Units = 0
			delete(a.booked, id)
		}
		a.returned = append(a.returned, s)
	case recordReturned:
		a.returned = append(a.returned, s)
	case recordUnanswered:
		a.unanswered = append(a.unanswered, s)
	case recordReset:
		a.resets = append(a.resets, s)
	case recordWaited:
		a.waited = append(a.waited, s)
	case recordWaitedRate:
		a.waitedRate = append(a.waitedRate, s)
	case recordTaken:
		a.taken = append(a.taken, s)
	case recordPerhapsTaken:
		a.perhapsTaken = append(a.perhapsTaken, s)
	case recordHeld:
		a.holding[id] = &trial.Span{From: r.Answered, To: never, Units: float64(r.Units)}
	case recordFreed:
		if h := a.holding[id]; h != nil {
			s := trial.Span{From: h.From, To: r.Sent, Units: h.Units, By: b.by(r)}
			if r.What == lost {
				a.lost = append(a.lost, s)
			} else {
				a.held = append(a.held, s)
			}
			delete(a.holding, id)
		}
	}
}

// by names the verb and the process of a record. Equal names share their memory.
func (b *book) by(r record) string {
	who := origin{r.What, r.Process}
	name, known := b.origins[who]
	if !known {
		name = fmt.Sprintf("%s, process %d", r.What, r.Process)
		b.origins[who] = name
	}
	return name
}

// check returns the broken promises.
func (b *book) check() (all []broken, closest map[string]float64) {
	closest = map[string]float64{}
	for name, a := range b.accounts {
		w, s := b.worlds[name[0]], &b.subjects[name[1]]
		for _, limit := range s.bounds {
			worst := b.worst(w, name[1], limit, a)
			text := strings.SplitN(s.rule.String(), "=", 2)[1]
			if over, known := closest[text]; !known || worst.Over > over {
				closest[text] = worst.Over
			}
			if worst.Over > trial.Tolerance {
				all = append(all, b.brokenBound(w, name[1], limit, worst))
			}
		}
	}
	all = append(all, b.checkLate()...)
	all = append(all, b.checkServed()...)
	all = append(all, b.checkOutcomes()...)
	for _, r := range b.left {
		if b.worlds[r.World].given {
			continue
		}
		all = append(all, broken{World: r.World, Promise: promiseLeft, Subject: -1, From: b.to, To: b.to,
			Text: fmt.Sprintf("%v after the last call, the engine of process %d has %d %s", settles, r.Process, r.Units, r.What)})
	}
	slices.SortFunc(all, func(x, y broken) int { return cmp.Compare(x.From, y.From) })
	return all, closest
}

func (b *book) brokenBound(w *world, i int, limit trial.Bound, worst trial.Excess) broken {
	promise := promiseBound
	if limit.Kind == trial.Held {
		promise = promiseSlots
	}
	return broken{World: w.number, Promise: promise, Subject: i, From: worst.From, To: worst.To,
		Text: fmt.Sprintf("%v (lane %d): %.3f units above the bound in %v", &b.subjects[i], b.lanes[i], worst.Over, time.Duration(worst.To-worst.From)*time.Microsecond)}
}

// worst returns the window that comes closest to a limit, or exceeds it.
func (b *book) worst(w *world, i int, limit trial.Bound, a *account) trial.Excess {
	reliefs := append(b.granted(w, i, limit, a), a.returned...)
	switch {
	case limit.Kind == trial.Held:
		return trial.WorstHeld(append(b.heardOnTime(a.lost), a.held...), reliefs, limit.Units)
	case b.subjects[i].use == useClocked:
		return b.worstOfAll(limit, a.used, reliefs)
	case limit.Kind == trial.Stretch && b.subjects[i].use == useBook: // booked instants are rounded up to whole us
		limit.Period--
	}
	return limit.Worst(a.used, reliefs)
}

// aroundFailover is how long before a failover a take may have been sent whose undo reaches the next server.
const aroundFailover = 5 * time.Second

// granted returns what the table of docs/reference/redis.md grants for the faults of a subject, and what its resets gave.
func (b *book) granted(w *world, i int, limit trial.Bound, a *account) (reliefs []trial.Span) {
	for _, f := range w.faults {
		if !f.Loses || f.Lanes>>b.lanes[i]&1 == 0 {
			continue
		}
		to := f.To
		if limit.Kind == trial.Held { // until the holders of lost slots know
			to += limit.Period
		}
		if b.subjects[i].use == useBook { // until the last instant that was booked before
			to += longestBooking.Microseconds()
		}
		reliefs = append(reliefs, trial.Span{From: f.From, To: to, Units: limit.Units + b.twice(i, limit, f)})
		for _, u := range a.unanswered {
			if around := aroundFailover.Microseconds(); u.From >= f.From-around && u.From <= f.To {
				reliefs = append(reliefs, trial.Span{From: u.From, To: f.To + around, Units: u.Units})
			}
		}
	}
	for _, r := range a.resets {
		reliefs = append(reliefs, trial.Span{From: r.From, To: r.To, Units: limit.Units})
	}
	return reliefs
}

// twice returns what a limit's rate admits a second time: while the old master still answers beside the new one, and until
// the last booking from before the loss is due, which takes what flows in until then.
func (b *book) twice(i int, limit trial.Bound, f fault) float64 {
	if limit.Kind != trial.Rate {
		return 0
	}
	both := f.Both
	if b.subjects[i].use == useBook {
		both += longestBooking.Microseconds()
	}
	return limit.Rate * float64(both)
}

// worstOfAll looks at the campaign as a whole, because the clocks of the processes differ: by the highest time.
func (b *book) worstOfAll(limit trial.Bound, used, reliefs []trial.Span) trial.Excess {
	sum := 0.0
	for _, u := range used {
		sum += u.Units
	}
	for _, r := range reliefs {
		sum -= r.Units
	}
	elapsed := float64(b.to - b.from + 2*mostAhead.Microseconds())
	most := limit.Units + limit.Rate*elapsed
	if limit.Period > 0 {
		most = limit.Units * (math.Floor(elapsed/float64(limit.Period)) + 2)
	}
	return trial.Excess{Over: sum - most, From: b.from, To: b.to}
}

// heardOnTime ends lost slots when their holders had heard of it on a machine without delay: a timer runs, and wakes the
// holder.
func (b *book) heardOnTime(all []trial.Span) (ended []trial.Span) {
	for _, s := range all {
		late := b.busy.latest(s.To-busySince.Microseconds(), s.To) + punctual.Microseconds()
		s.To = max(s.From, s.To-2*late)
		ended = append(ended, s)
	}
	return ended
}

// faultReasons are the reasons that faults give errors.
var faultReasons = []redislimit.Reason{redislimit.ReadOnly, redislimit.Loading, redislimit.ClusterDown, redislimit.Lost, redislimit.Cancelled}

// count returns how often an event happened in all worlds.
func (b *book) count(what string) (n int64) {
	for of, times := range b.counts {
		if of.what == what {
			n += times
		}
	}
	return n
}

// checkOutcomes looks for errors that no fault explains. Servers that were given up may answer anything.
func (b *book) checkOutcomes() (all []broken) {
	for of, n := range b.counts {
		if b.worlds[of.world].given {
			continue
		}
		verb, result, _ := strings.Cut(of.what, ": ")
		reason, _, failed := strings.Cut(result, ", ")
		known := verb == "engine" || verb == "slots" || verb == "deadlines" || result == "answered" || result == "refused" || result == leftLine
		if !known && !(failed && slices.Contains(faultReasons, redislimit.Reason(reason))) {
			all = append(all, broken{World: of.world, Promise: promiseErrors, Subject: -1, From: b.from, To: b.to, Text: fmt.Sprintf("%s, %d times", of.what, n)})
		}
	}
	return all
}

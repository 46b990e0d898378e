package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/bench/internal/trial"
)

// stretch is a time in which a caller stood in line for slots, the slots for each caller in line were free, and none
// went. A rate may refuse a caller that waits for one, too, but keeps no others waiting.
type stretch struct{ from, to int64 }

// A process in line asks again within 400 ms, and bars others for up to a second after it was called or last heard of. After
// a fault, callers ask again after pauses of up to a second, and what was taken for callers that had left comes back later.
const (
	longestSleep = time.Second
	faultsEnd    = 3 * time.Second
)

// trips is for the round trips until a caller has asked and knows the answer. Faults delay each by up to 40 ms.
const trips = 200 * time.Millisecond

// stretches returns the longest stretch of a line, and all that are longer than a caller in line may sleep.
func stretches(changes []lineChange, slots float64) (longest stretch, long []stretch) {
	begun, waiting, withoutRate, taken := int64(never), [9]int{}, 0, 0.0
	end := func(at int64) {
		one := stretch{begun, at}
		if one.length() > longest.length() {
			longest = one
		}
		if one.length() > longestSleep+trips {
			long = append(long, one)
		}
		begun = never
	}
	for _, c := range changes {
		taken += c.taken
		waiting[c.units] += c.waiting
		withoutRate += c.withoutRate
		most := len(waiting) - 1
		for most > 0 && waiting[most] == 0 {
			most--
		}
		idle := withoutRate > 0 && slots-taken >= float64(most)
		if begun != never && (!idle || c.went) {
			end(c.at)
		}
		if idle && begun == never {
			begun = c.at
		}
	}
	return longest, long
}

// lineChange is a caller that comes, leaves or goes, or slots that are taken or free again.
type lineChange struct {
	at          int64
	units       int // of the caller
	waiting     int
	withoutRate int
	taken       float64
	went        bool
}

func (a *account) lineChanges(taken []trial.Span) (all []lineChange) {
	for i, list := range [][]trial.Span{a.waitedRate, a.waited} {
		for _, w := range list {
			units := int(w.Units)
			all = append(all, lineChange{at: w.From, units: units, waiting: 1, withoutRate: i}, lineChange{at: w.To, units: units, waiting: -1, withoutRate: -i})
		}
	}
	for _, t := range taken {
		all = append(all, lineChange{at: t.From, taken: t.Units, went: true}, lineChange{at: t.To, taken: -t.Units})
	}
	slices.SortStableFunc(all, func(x, y lineChange) int { return cmp.Compare(x.at, y.at) })
	return all
}

// inServer returns the slots that were taken in the server, as long as they may have been. The engine releases what its
// callers do not hold at once, and again and again after a fault, until the lease ends.
func (a *account) inServer(w *world, lane int, lease int64) []trial.Span {
	taken := slices.Clone(a.taken)
	for _, t := range a.perhapsTaken {
		released := stretch{t.From, t.To + longestSleep.Microseconds()}
		if w.interrupted(lane, released) > 0 {
			released.to = t.To + lease
		}
		taken = append(taken, trial.Span{From: t.From, To: released.to, Units: t.Units})
	}
	return taken
}

// served is the lines under one limit.
type served struct {
	waits       int
	longest     stretch
	unexplained int64 // us; below 0 if everything is explained
}

// lines returns how the lines of each limit moved, and the promises that they broke.
func (b *book) lines() (byLimit map[string]*served, all []broken) {
	byLimit = map[string]*served{}
	for name, a := range b.accounts {
		s := &b.subjects[name[1]]
		if s.use != useLine {
			continue
		}
		text := strings.SplitN(s.rule.String(), "=", 2)[1]
		of := byLimit[text]
		if of == nil {
			of = &served{unexplained: -longestSleep.Microseconds()}
			byLimit[text] = of
		}
		w, lane := b.worlds[name[0]], b.lanes[name[1]]
		longest, long := stretches(a.lineChanges(a.inServer(w, lane, s.lease())), s.bounds[0].Units)
		of.waits += len(a.waited) + len(a.waitedRate)
		if longest.length() > of.longest.length() {
			of.longest = longest
		}
		for _, one := range long {
			over := b.unexplained(w, lane, one)
			of.unexplained = max(of.unexplained, over)
			if over > 0 {
				all = append(all, broken{World: name[0], Promise: promiseServed, Subject: name[1], From: one.from, To: one.to,
					Text: fmt.Sprintf("%v (lane %d): slots were free for %v while a caller stood in line, %v longer than faults and the machine explain", s, lane,
						one.length(), time.Duration(over)*time.Microsecond)})
			}
		}
	}
	return byLimit, all
}

func (b *book) checkServed() []broken {
	_, all := b.lines()
	return all
}

// unexplained returns for how many us a stretch was longer than a sleep, what its faults grant and what the machine
// explains.
func (b *book) unexplained(w *world, lane int, one stretch) int64 {
	return (one.length() - longestSleep - trips).Microseconds() - w.interrupted(lane, one) - hops*b.busy.latest(one.from-longestSleep.Microseconds(), one.to)
}

// interrupted returns how much of a stretch lies in faults of a lane, or shortly after them.
func (w *world) interrupted(lane int, one stretch) (us int64) {
	var hit []stretch
	for _, f := range w.faults {
		after := f.leaves().Microseconds()
		to := min(never-after, f.To) + after
		if f.stops(lane) && f.From <= one.to && to >= one.from {
			hit = append(hit, stretch{max(f.From, one.from), min(to, one.to)})
		}
	}
	slices.SortFunc(hit, func(x, y stretch) int { return cmp.Compare(x.from, y.from) })
	end := one.from
	for _, h := range hit {
		us += max(h.to-max(h.from, end), 0)
		end = max(end, h.to)
	}
	return us
}

// leaves returns how long after a fault a line may stand still. What was only late loses no signal.
func (f *fault) leaves() time.Duration {
	switch f.Kind {
	case "hang", "stalled replies", "reshard":
		return longestSleep
	}
	return faultsEnd
}

// stops reports whether a fault can stop a line on a lane. A move of another lane cannot, nor can what costs a line no
// message.
func (f *fault) stops(lane int) bool {
	switch f.Kind {
	case "clock steps", "script flush", "delay":
		return false
	case "reshard":
		return f.moves>>lane&1 == 1
	}
	return true
}

func (r *result) writeLines(b *strings.Builder) {
	b.WriteString("\n## Lines\n\nThe longest time for which slots were free while a caller stood in line, and by how much it, or another time, was longer than\na second, faults and the machine explain.\n\n| slots | waits | free at most | unexplained |\n|---|---:|---:|---:|\n")
	lines, _ := r.lines()
	for _, text := range slices.Sorted(maps.Keys(lines)) {
		l := lines[text]
		fmt.Fprintf(b, "| %s | %d | %v | %v |\n", text, l.waits, l.longest.length(), max(time.Duration(l.unexplained)*time.Microsecond, 0))
	}
}

func (s stretch) length() time.Duration { return time.Duration(s.to-s.from) * time.Microsecond }

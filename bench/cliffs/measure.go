package main

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/workload"
)

// mix is a distribution of calls over keys, on a number of cores.
type mix struct {
	*workload.Mix
	cores int
	bases map[string]*subject // beside which rows are measured, if they take long to make
}

func (m *mix) name() string { return fmt.Sprintf("%s, %d core(s)", m.Name, m.cores) }

// pairs are the ns of a decision of a row, each with its ratio to the row beside it just before. A change of the machine's
// speed meets both of a pair alike.
type pairs struct{ ns, ratios measure.Series }

func (p *pairs) add(neighbour, ns float64) {
	p.ns, p.ratios = append(p.ns, ns), append(p.ratios, ns/neighbour)
}

// windows are the pairs of windows of a figure.
const windows = 40

// compare measures a row beside the base in windows that alternate.
func (m *mix) compare(column column, r row, admit bool, window time.Duration) (found pairs) {
	beside := base
	if r.plans > 0 {
		beside.plans = 1
	}
	if m.Fresh {
		return m.compareFresh(column, beside, r)
	}
	neighbour, measured := m.base(column, beside, admit), newSubject(column, r, m, admit)
	for i := range windows {
		if m.Keys == 1 && i > 0 { // before its state is further ahead than words reach
			neighbour, measured = m.base(column, beside, admit), newSubject(column, r, m, admit)
		}
		found.add(m.window(neighbour, window, i), m.window(measured, window, i))
	}
	return found
}

// stages is the number of sizes in which new keys are measured, from all keys to little more than half of them. A table
// replaces its segments at sizes that depend on the width of its entries, so one size alone would compare two tables at
// different stages of their growth.
const stages = 4

// compareFresh measures two rows with new keys, each time in new subjects. A pair is the means of all sizes.
func (m *mix) compareFresh(column column, beside, r row) (found pairs) {
	for range windows / 8 {
		var neighbour, ns float64
		for stage := range stages {
			keys := int(float64(m.Keys) * math.Exp2(-float64(stage)/stages))
			neighbour += m.fill(newSubject(column, beside, m, true), keys) / stages
			ns += m.fill(newSubject(column, r, m, true), keys) / stages
		}
		found.add(neighbour, ns)
	}
	return found
}

// base returns the subject beside which others are measured. A large one serves all rows.
func (m *mix) base(column column, beside row, admit bool) *subject {
	if !m.isLarge() {
		return newSubject(column, beside, m, admit)
	}
	name := fmt.Sprint(column.name, beside.plans, admit)
	if m.bases[name] == nil {
		m.bases[name] = newSubject(column, beside, m, admit)
	}
	return m.bases[name]
}

// batch is the number of decisions between two looks at the clock.
const batch = 500

// window decides for a time, on each core a sequence of its own, and returns the ns of one decision of all.
func (m *mix) window(s *subject, length time.Duration, number int) float64 {
	sequences, end := m.Sequences(), time.Now().Add(length)
	return m.onCores(func(core int) int {
		return s.run(sequences[core%len(sequences)], number, end)
	})
}

// fill decides each of a number of new keys once, on each core a part of them, and returns the ns of one decision of all.
func (m *mix) fill(s *subject, keys int) float64 {
	part, sequence := keys/m.cores, m.Sequences()[0]
	return m.onCores(func(core int) int {
		for at := range part {
			s.decide(sequence, core*part+at)
		}
		return part
	})
}

// onCores decides on each core, which returns the number of its decisions, and returns the ns of one decision of all.
func (m *mix) onCores(decide func(core int) int) float64 {
	var decisions [2]int
	var workers sync.WaitGroup
	start := time.Now()
	for core := 1; core < m.cores; core++ {
		workers.Go(func() { decisions[core] = decide(core) })
	}
	decisions[0] = decide(0)
	workers.Wait()
	return float64(time.Since(start).Nanoseconds()) / float64(decisions[0]+decisions[1])
}

// run decides in a batch after another until the end.
func (s *subject) run(keys *workload.Sequence, number int, end time.Time) (decisions int) {
	at := number * 7919 * batch % keys.Len() // each window is elsewhere in the sequence
	for time.Now().Before(end) {
		for range batch {
			s.decide(keys, at)
			if at++; at == keys.Len() {
				at = 0
			}
		}
		decisions += batch
	}
	return decisions
}

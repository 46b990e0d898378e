package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirflow/weir/bench/internal/workload"
)

// mix is a distribution of calls over keys, on a number of cores.
type mix struct {
	*workload.Mix
	cores int
	bases map[string]*subject // beside which rows are measured, if they take long to make
}

// isLarge reports whether a subject of the mix takes long to make.
func (m *mix) isLarge() bool { return m.Keys > 100_000 }

// mixes returns those to measure. The first is the one of the table of all rows.
func mixes(c *config) (chosen []*mix) {
	for cores := 1; cores <= 2; cores++ {
		for _, m := range []*workload.Mix{
			{Name: "10k uniform", Keys: 10_000}, {Name: "one key", Keys: 1}, {Name: "1M uniform", Keys: 1_000_000},
			{Name: "1M zipf", Keys: 1_000_000, Skew: 1.01}, {Name: "never seen", Keys: 1 << 18, Fresh: true},
		} {
			known := &mix{m, cores, map[string]*subject{}}
			switch {
			case c.mix != "" && !strings.Contains(known.name(), c.mix):
			case c.mix == "" && !c.all && (m.Keys != 10_000 || cores > 1):
			case cores > 1 && m.Keys == 1: // one key is one word, which cores pass to each other
			default:
				chosen = append(chosen, known)
			}
		}
	}
	return chosen
}

func (m *mix) name() string {
	if m.cores == 1 {
		return m.Name + ", one core"
	}
	return m.Name + ", two cores"
}

// rounds returns how often a subject takes from all keys before it is measured: never if they are new, and otherwise
// until no key has a unit left for a row that refuses.
func (m *mix) rounds(admit bool) int {
	switch {
	case m.Fresh:
		return 0
	case admit:
		return 1
	}
	return 3
}

// result is the ns of a decision of a row, its ratio to the row beside it, and the aim of the ratio.
type result struct {
	row, column, mix string
	admit            bool
	ns, ratio, aim   float64
}

func (r result) missed() bool { return r.aim > 0 && r.ratio > r.aim }

// pairs are the ns of a decision of a row, each with its ratio to the row beside it just before. A change of the machine's
// speed meets both of a pair alike.
type pairs struct{ ns, ratios []float64 }

func (p *pairs) add(neighbour, ns float64) {
	p.ns, p.ratios = append(p.ns, ns), append(p.ratios, ns/neighbour)
}

func median(all []float64) float64 {
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

func measureAll(c *config) (results []result) {
	for _, m := range mixes(c) {
		for _, r := range rows(c, m) {
			if !strings.Contains(r.name, c.only) {
				continue
			}
			for _, column := range columns {
				for _, admit := range []bool{true, false} {
					skip := m.Fresh && !admit || column.name == "Limiter" && (m.Keys != 10_000) != r.list
					if skip || !strings.Contains(column.name, c.column) {
						continue
					}
					if one, ok := c.measure(column, r, m, admit); ok {
						results = append(results, one)
					}
				}
			}
		}
	}
	return results
}

// measure measures a row beside the base in windows that alternate.
func (c *config) measure(column column, r row, m *mix, admit bool) (result, bool) {
	one := result{row: r.name, column: column.name, mix: m.name(), admit: admit, aim: r.aims.of(column.name, m)}
	beside := base
	if r.plans > 0 {
		beside.plans = 1
	}
	measured := newSubject(column, r, m, admit)
	if measured == nil {
		return one, false
	}
	var found pairs
	if m.Fresh {
		found = c.measureFresh(column, beside, r, m)
	} else {
		neighbour := m.base(column, beside, admit)
		for i := range c.windows {
			if m.Keys == 1 { // before its state is further ahead than words reach
				neighbour, measured = m.base(column, beside, admit), newSubject(column, r, m, admit)
			}
			found.add(m.window(neighbour, c.window, i), m.window(measured, c.window, i))
		}
	}
	one.ns, one.ratio = median(found.ns), median(found.ratios)
	return one, true
}

// stages is the number of sizes in which new keys are measured, from all keys to little more than half of them. A table
// replaces its segments at sizes that depend on the width of its entries, so one size alone would compare two tables at
// different stages of their growth.
const stages = 4

// measureFresh measures two rows with new keys, each time in new subjects. A pair is the means of all sizes.
func (c *config) measureFresh(column column, beside, r row, m *mix) (found pairs) {
	for range max(1, c.windows/8) {
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

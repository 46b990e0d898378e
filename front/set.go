package front

import (
	"sync"

	"github.com/weirflow/weir"
)

// Part is the part of its rules that a request is charged to.
type Part uint8

const (
	Whole Part = iota
	Slots      // limits whose units are held, such as those of a whole stream
	Rates      // the other limits, such as those of one message of a stream
)

// Set is a rule, ready to use.
type Set struct {
	Rule  *weir.Rule
	slots *weir.Rule // its limits whose units are held; nil if there are none
	rates *weir.Rule // its other limits; nil if there are none
}

func newSet(r *weir.Rule) *Set {
	return &Set{Rule: r, slots: weir.Kit.Held(r), rates: weir.Kit.Spent(r)}
}

// part returns the rule of a part; nil if it has no limits.
func (s *Set) part(p Part) *weir.Rule {
	switch p {
	case Slots:
		return s.slots
	case Rates:
		return s.rates
	}
	return s.Rule
}

// plans are the sets of the rules that plans have named so far.
type plans struct {
	sets  sync.Map // *weir.Rule to *Set
	mu    sync.Mutex
	count int
	full  bool // and the program knows
}

// maxPlans bounds the number of remembered rules.
const maxPlans = 4096

func (p *plans) known(r *weir.Rule) *Set {
	set, _ := p.sets.Load(r)
	known, _ := set.(*Set)
	return known
}

// add remembers a rule. It reports whether there were too many for the first time.
func (p *plans) add(r *weir.Rule, s *Set) (tooMany bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count == maxPlans {
		tooMany, p.full = !p.full, true
		return tooMany
	}
	if _, known := p.sets.LoadOrStore(r, s); !known {
		p.count++
	}
	return false
}

package tape

// Progress tells how many decisions of a run are made, at intervals.
type Progress struct {
	Tell func(done, of int64) // nil tells nobody
	Of   int64                // decisions in all
	done int64
}

const progressEvery = 1 << 16

// Step counts a decision.
func (p *Progress) Step() {
	p.done++
	if p.Tell != nil && (p.done%progressEvery == 0 || p.done == p.Of) {
		p.Tell(p.done, p.Of)
	}
}

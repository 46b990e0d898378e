package main

import (
	"fmt"

	"github.com/weirflow/weir/bench/internal/measure"
)

// pairs compares the present checkout with an earlier commit. Both builds run at the same time and take turns within
// each cell: one decides for a window of some milliseconds while the other rests. So a change of the machine's speed
// meets both alike. Each round starts new processes of builds whose functions lie in another order, because the places
// of keys in memory and of code are luck that a process keeps.
type pairs struct {
	options
	flags  []string // of both builds
	builds *measure.Builds
	log    func(string, ...any)
}

// asker measures the next window of a cell and returns the time of a decision in ns.
type asker = measure.Asker[measure.Cell, float64]

// run builds, measures and returns the windows of each cell, in ns and round by round.
func (p *pairs) run() (map[measure.Cell][]measure.Paired, error) {
	var err error
	if p.builds, err = measure.NewBuilds("bench/cmd/compare", p.base, "bench/internal", "bench/cmd/compare"); err != nil {
		return nil, err
	}
	defer p.builds.Close()
	found := map[measure.Cell][]measure.Paired{}
	for round := range p.rounds {
		p.log("round %d of %d: builds", round+1, p.rounds)
		if err := p.builds.Build(round); err != nil {
			return nil, err
		}
		if err := p.round(round, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (p *pairs) round(round int, found map[measure.Cell][]measure.Paired) error {
	c := p.config()
	for _, lot := range measure.Lots(c) {
		p.log("round %d of %d: %s, %s, denied %v", round+1, p.rounds, lot[0].Mix, lot[0].Peer, lot[0].Denied)
		if err := p.lot(&c, lot, found); err != nil {
			return err
		}
	}
	return nil
}

// lot measures the cells of a lot with a new process of each build.
func (p *pairs) lot(c *measure.Config, cells []measure.Cell, found map[measure.Cell][]measure.Paired) error {
	before, err := p.start(p.builds.Before())
	if err != nil {
		return err
	}
	defer before.Stop()
	after, err := p.start(p.builds.After())
	if err != nil {
		return err
	}
	defer after.Stop()
	for _, cell := range cells {
		measured, err := alternate(before, after, cell, p.repetitions, c.Slices(cell))
		if err != nil {
			return fmt.Errorf("%+v: %w", cell, err)
		}
		found[cell] = append(found[cell], measured)
	}
	return nil
}

func (p *pairs) start(path string) (*measure.Child[measure.Cell, float64], error) {
	return measure.StartChild[measure.Cell, float64](path, append([]string{"-serve"}, p.flags...)...)
}

// alternate measures pairs of windows. Every second pair begins with the later commit. If a peer needs several slices
// for its keys, the mean of all slices counts as one window.
func alternate(before, after asker, cell measure.Cell, count, slices int) (w measure.Paired, err error) {
	if slices == 1 {
		if err := together(before, after, cell); err != nil {
			return w, err
		}
	} else {
		count = max(1, count/freshShare)
	}
	turn := 0
	for range count {
		var b, a float64
		for range slices {
			x, y, err := measure.Pair(turn, before, after, cell)
			if err != nil {
				return w, err
			}
			turn++
			b, a = b+x, a+y
		}
		w.Before, w.After = append(w.Before, b/float64(slices)), append(w.After, a/float64(slices))
	}
	return w, nil
}

// freshShare is the number of windows of known keys for which fresh keys have one run through all of them.
const freshShare = 3

// together lets both builds prepare the cell, which takes them longest, at the same time. The figures do not count.
func together(before, after asker, cell measure.Cell) error {
	done := make(chan error, 1)
	go func() {
		_, err := before.Ask(cell)
		done <- err
	}()
	_, err := after.Ask(cell)
	if other := <-done; other != nil {
		return other
	}
	return err
}

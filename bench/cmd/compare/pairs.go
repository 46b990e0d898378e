package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirflow/weir/bench/internal/measure"
)

// pairs compares the present checkout with an earlier commit. Both builds run at the same time and take turns within
// each cell: one decides for a window of some milliseconds while the other rests. So a change of the machine's speed
// meets both alike. Each round starts new processes of builds whose functions lie in another order, because the places
// of keys in memory and of code are luck that a process keeps.
type pairs struct {
	options
	flags  []string // of both builds
	folder string   // of the binaries and the worktree
	log    func(string, ...any)
}

// windows are the times of neighbouring windows of a cell in ns, from one round.
type windows struct{ before, after []float64 }

// run builds, measures and returns the windows of each cell, round by round.
func (p *pairs) run() (map[measure.Cell][]windows, error) {
	var err error
	if p.folder, err = os.MkdirTemp("", "weir-pairs-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(p.folder)
	tree := filepath.Join(p.folder, "tree")
	if err := checkOut(tree, p.base); err != nil {
		return nil, err
	}
	defer command("", "git", "worktree", "remove", "--force", tree)
	found := map[measure.Cell][]windows{}
	for round := range p.rounds {
		p.log("round %d of %d: builds", round+1, p.rounds)
		for name, tree := range map[string]string{"before": tree, "after": "."} {
			if err := build(tree, filepath.Join(p.folder, name), round); err != nil {
				return nil, err
			}
		}
		if err := p.round(round, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (p *pairs) round(round int, found map[measure.Cell][]windows) error {
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
func (p *pairs) lot(c *measure.Config, cells []measure.Cell, found map[measure.Cell][]windows) error {
	before, err := p.start("before")
	if err != nil {
		return err
	}
	defer before.stop()
	after, err := p.start("after")
	if err != nil {
		return err
	}
	defer after.stop()
	for _, cell := range cells {
		measured, err := alternate(before, after, cell, p.repetitions, c.Slices(cell))
		if err != nil {
			return fmt.Errorf("%+v: %w", cell, err)
		}
		found[cell] = append(found[cell], measured)
	}
	return nil
}

func (p *pairs) start(name string) (*child, error) {
	return startChild(filepath.Join(p.folder, name), p.flags)
}

// alternate measures pairs of windows. Every second pair begins with the later commit. If a peer needs several slices
// for its keys, the mean of all slices counts as one window.
func alternate(before, after asker, cell measure.Cell, count, slices int) (w windows, err error) {
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
			first, second := before, after
			if turn%2 == 1 {
				first, second = after, before
			}
			turn++
			x, err := first.ask(cell)
			if err != nil {
				return w, err
			}
			y, err := second.ask(cell)
			if err != nil {
				return w, err
			}
			if first == after {
				x, y = y, x
			}
			b, a = b+x, a+y
		}
		w.before, w.after = append(w.before, b/float64(slices)), append(w.after, a/float64(slices))
	}
	return w, nil
}

// freshShare is the number of windows of known keys for which fresh keys have one run through all of them.
const freshShare = 3

// together lets both builds prepare the cell, which takes them longest, at the same time. The figures do not count.
func together(before, after asker, cell measure.Cell) error {
	done := make(chan error, 1)
	go func() {
		_, err := before.ask(cell)
		done <- err
	}()
	_, err := after.ask(cell)
	if other := <-done; other != nil {
		return other
	}
	return err
}

package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weirflow/weir/bench/internal/measure"
)

// pairs compares the present checkout with an earlier commit. It builds this program in both and runs the two in turn,
// mix by mix, so that a change of the machine's speed meets both alike. It writes the ratios to PAIRS.md.
type pairs struct {
	base   string // the earlier commit
	mixes  []string
	rounds int      // pairs of runs
	flags  []string // of each run
	folder string   // of the binaries, the worktree and the results
	log    func(string, ...any)
}

// newPairs returns the pairs of a run with the arguments. Each run measures only decisions of Weir and the floors.
func newPairs(o options, arguments []string, log func(string, ...any)) *pairs {
	flags := []string{"-memory=false", "-waiting=false", "-repetitions=3"}
	if o.peers.String() == "" {
		flags = append(flags, "-peers=^weir_")
	}
	return &pairs{base: o.base, mixes: o.mixNames(), rounds: o.rounds, flags: append(flags, withoutPairs(arguments)...), log: log}
}

func (o options) mixNames() (names []string) {
	c := o.config()
	if len(c.Singles) > 0 {
		names = append(names, measure.SingleMix)
	}
	for _, m := range c.Mixes {
		names = append(names, m.Name)
	}
	return names
}

// withoutPairs returns the arguments for one run of a pair.
func withoutPairs(arguments []string) (kept []string) {
	for i := 0; i < len(arguments); i++ {
		name, _, joined := strings.Cut(strings.TrimLeft(arguments[i], "-"), "=")
		if !slices.Contains([]string{"base", "rounds", "out", "mixes"}, name) {
			kept = append(kept, arguments[i])
		} else if !joined {
			i++
		}
	}
	return kept
}

// run builds, measures and returns the figures of each round.
func (p *pairs) run() (rounds []pair, err error) {
	p.folder, err = os.MkdirTemp("", "weir-pairs-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(p.folder)
	tree := filepath.Join(p.folder, "tree")
	if err := command("", "git", "worktree", "add", "--detach", "--quiet", tree, p.base); err != nil {
		return nil, err
	}
	defer command("", "git", "worktree", "remove", "--force", tree)
	if err := p.build(tree, "before"); err != nil {
		return nil, err
	}
	if err := p.build(".", "after"); err != nil {
		return nil, err
	}
	for i := range p.rounds {
		round, err := p.round(i)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, round)
	}
	return rounds, nil
}

func (p *pairs) build(tree, name string) error {
	return command(tree, "go", "build", "-o", filepath.Join(p.folder, name), "./bench/cmd/compare")
}

// round measures a pair. Every second pair begins with the later commit.
func (p *pairs) round(i int) (pair, error) {
	measured := pair{figures{}, figures{}}
	for n, mix := range p.mixes {
		p.log("pair %d of %d: %s", i+1, p.rounds, mix)
		for turn := range 2 {
			name, into := "before", measured.before
			if (i+n+turn)%2 == 1 {
				name, into = "after", measured.after
			}
			found, err := p.measure(name, mix)
			if err != nil {
				return measured, err
			}
			maps.Copy(into, found)
		}
	}
	return measured, nil
}

// measure runs one of the two builds.
func (p *pairs) measure(name, mix string) (figures, error) {
	out := filepath.Join(p.folder, "results")
	flags := append(slices.Clone(p.flags), "-mixes=^"+regexp.QuoteMeta(mix)+"$", "-out="+out)
	if err := command("", filepath.Join(p.folder, name), flags...); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(out, "RESULTS.md"))
	if err != nil {
		return nil, err
	}
	return figuresIn(string(text)), nil
}

// command runs a program in a folder. Its output belongs to the error.
func command(folder, name string, arguments ...string) error {
	c := exec.Command(name, arguments...)
	c.Dir = folder
	if output, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, output)
	}
	return nil
}

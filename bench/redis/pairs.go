package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
)

// pairs compares the present checkout with an earlier commit on the same servers. Both builds run at the same time and
// take turns within each row: one measures a window while the other rests. So a change of the machine's speed meets
// both alike. Each round starts new processes of builds whose functions lie in another order.
type pairs struct {
	options
	on    servers
	cells []cell
	log   func(string)
}

// window is what a child measures: a row for a time, on empty servers.
type window struct {
	Row      string
	Duration time.Duration
	Single   string
	Cluster  []string
}

// figure is what a child has measured.
type figure struct{ PerSecond, P50 float64 }

// side is one of the two builds.
type side = measure.Asker[window, figure]

// paired are the figures of a row, round by round.
type paired struct{ perSecond, p50 []measure.Paired }

// run builds, measures and returns the figures of each row.
func (p *pairs) run(ctx context.Context) (map[id]*paired, error) {
	builds, err := measure.NewBuilds("bench/redis", p.base, "bench/internal", "bench/redis")
	if err != nil {
		return nil, err
	}
	defer builds.Close()
	found := map[id]*paired{}
	for round := range p.rounds {
		p.log(fmt.Sprintf("round %d of %d, %d rows", round+1, p.rounds, len(p.cells)))
		if err := builds.Build(round); err != nil {
			return nil, err
		}
		if err := p.start(ctx, builds, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// start starts both builds and has them measure one round.
func (p *pairs) start(ctx context.Context, builds *measure.Builds, found map[id]*paired) error {
	before, err := measure.StartChild[window, figure](builds.Before(), "-serve")
	if err != nil {
		return err
	}
	defer before.Stop()
	after, err := measure.StartChild[window, figure](builds.After(), "-serve")
	if err != nil {
		return err
	}
	defer after.Stop()
	return p.round(ctx, before, after, found)
}

// round measures each row. A row without code of Weir shows luck alone, and has half of the windows.
func (p *pairs) round(ctx context.Context, before, after side, found map[id]*paired) error {
	turn := 0
	for _, c := range p.cells {
		count := p.repetitions
		if !c.ofWeir() {
			count = max(1, count/2)
		}
		var perSecond, p50 measure.Paired
		for range count {
			if err := ctx.Err(); err != nil {
				return err
			}
			b, a, err := measure.Pair(turn, before, after, window{c.id().String(), c.duration, p.on.single, p.on.cluster})
			if err != nil {
				return err
			}
			turn++
			perSecond.Before, perSecond.After = append(perSecond.Before, b.PerSecond), append(perSecond.After, a.PerSecond)
			p50.Before, p50.After = append(p50.Before, b.P50), append(p50.After, a.P50)
		}
		if found[c.id()] == nil {
			found[c.id()] = &paired{}
		}
		row := found[c.id()]
		row.perSecond, row.p50 = append(row.perSecond, perSecond), append(row.p50, p50)
	}
	return nil
}

// ofWeir reports whether the row runs code of Weir.
func (c cell) ofWeir() bool {
	return c.peer.name == nameWeir || c.peer.name == nameFewLanes ||
		slices.ContainsFunc(algorithms(), func(a algorithm) bool { return a.name == c.peer.name })
}

// measure is the child's side.
func (w window) measure(ctx context.Context) (figure, error) {
	for _, c := range allCells(w.Duration, w.Duration) {
		if c.id().String() == w.Row {
			s, err := measureCell(ctx, servers{w.Single, w.Cluster}.of(c), c)
			if err != nil {
				return figure{}, fmt.Errorf("%s: %w", w.Row, err)
			}
			return figure{s.perSecond, s.p50}, nil
		}
	}
	return figure{}, fmt.Errorf("unknown row %q", w.Row)
}

package picture

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// Timeline shows over time what several limits do to the same traffic: a panel for each, and the queues below.
type Timeline struct {
	Title string
	Start time.Time // of the first step; zero if the time is made up
	Every time.Duration
	Unit  string // what is counted: requests
	// Panels are at least one, with steps of equal number.
	Panels []Panel
}

// Panel is the effect of one limit in each step.
type Panel struct {
	Name                      string
	Offered, Admitted, Queued []int64 // without Queued, the panel has no queue
	Refused                   []int64 // steps with anything refused are marked, however little it is
}

var _ Picture = Timeline{}

// queues reports whether anything ever waits.
func (t Timeline) queues() bool {
	return slices.ContainsFunc(t.Panels, func(p Panel) bool {
		return slices.ContainsFunc(p.Queued, func(n int64) bool { return n > 0 })
	})
}

// The pixels of a panel, of its frame, and above the first.
const (
	panelHeight = 140
	panelInner  = 100
	headHeight  = 56
)

func (t Timeline) draw() *drawing {
	rows := len(t.Panels)
	if t.queues() {
		rows++
	}
	d := &drawing{height: headHeight + float64(rows)*panelHeight + 16}
	t.heading(d)
	highest := t.highest()
	for i, panel := range t.Panels {
		offered := panel.visible(highest / 50)
		f := t.panel(d, i, rows, panel.Name+"  ·  "+share(panel), float64(max(highest, slices.Max(offered))))
		d.upright(xy{16, (f.y.from + f.y.to) / 2}, 13, "per "+shortTime(t.Every))
		d.area(t.area(f, offered), refused)
		d.area(t.area(f, panel.Admitted), admitted)
	}
	if t.queues() {
		t.queue(d, rows)
	}
	return d
}

// panel draws the empty panel of a row, and returns its frame.
func (t Timeline) panel(d *drawing, row, rows int, name string, highest float64) frame {
	top := headHeight + float64(row)*panelHeight
	f := frame{axis{high: t.seconds(), from: 74, to: pageWidth - 20}, axis{high: highest, from: top + 20 + panelInner, to: top + 20}}
	d.grid(f, timeTicks{start: t.Start, labels: row == rows-1}.ticks(0, t.seconds()), countTicks(0, highest))
	d.text(xy{f.x.from, top + 13}, after, ink, 15, screen.Shorten(name, 90))
	return f
}

// queue is the panel of all queues, with a legend of the limits that have one.
func (t Timeline) queue(d *drawing, rows int) {
	longest := int64(1)
	for _, panel := range t.Panels {
		longest = max(longest, slices.Max(panel.Queued))
	}
	f := t.panel(d, rows-1, rows, "waiting requests", float64(longest))
	named := 0
	for i, panel := range t.Panels {
		if slices.Max(panel.Queued) == 0 {
			continue
		}
		d.line(t.steps(f, panel.Queued), shade(i), 1.9, "")
		y := f.y.to + 10 + 17*float64(named)
		d.line([]xy{{f.x.to - 26, y}, {f.x.to - 4, y}}, shade(i), 2, "")
		d.text(xy{f.x.to - 32, y + 4}, before, ink, 13, panel.Name)
		named++
	}
}

// heading writes the title and the meaning of the colours.
func (t Timeline) heading(d *drawing) {
	d.text(xy{10, 24}, after, ink, 18, screen.Shorten(t.Title, 90))
	x := 12.0
	for _, entry := range []struct{ colour, text string }{{admitted, "admitted"}, {refused, "asked for, but refused then"}, {"#fff", "(" + t.Unit + ")"}} {
		d.area([]xy{{x, 36}, {x + 16, 36}, {x + 16, 48}, {x, 48}}, entry.colour)
		d.text(xy{x + 22, 47}, after, ink, 13, entry.text)
		x += 50 + 6.5*float64(utf8.RuneCountInString(entry.text))
	}
}

// seconds returns the length of the timeline, which may exceed a time.Duration.
func (t Timeline) seconds() float64 { return float64(len(t.Panels[0].Offered)) * t.Every.Seconds() }

func (t Timeline) highest() (n int64) {
	for _, panel := range t.Panels {
		n = max(n, slices.Max(panel.Offered), slices.Max(panel.Admitted))
	}
	return max(n, 1)
}

// visible returns what is asked for. Where something is refused, that is at least this far above the admitted units.
func (p Panel) visible(least int64) []int64 {
	offered := slices.Clone(p.Offered)
	for i, n := range p.Refused {
		if n > 0 {
			offered[i] = max(offered[i], p.Admitted[i]+least)
		}
	}
	return offered
}

// steps returns the outline of the counts.
func (t Timeline) steps(f frame, counts []int64) (outline []xy) {
	every := t.Every.Seconds()
	for i, n := range counts {
		outline = append(outline, f.at(float64(i)*every, float64(n)), f.at(float64(i+1)*every, float64(n)))
	}
	return outline
}

// area is the area below that outline.
func (t Timeline) area(f frame, counts []int64) []xy {
	outline := t.steps(f, counts)
	return append(outline, xy{f.x.to, f.y.from}, xy{f.x.from, f.y.from})
}

func share(p Panel) string {
	offered, admitted := int64(0), int64(0)
	for i := range p.Offered {
		offered += p.Offered[i]
		admitted += p.Admitted[i]
	}
	if offered == 0 {
		return "nothing asked for"
	}
	return fmt.Sprintf("%.1f %% admitted", 100*float64(admitted)/float64(offered))
}

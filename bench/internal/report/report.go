// Package report turns the results of a run into a document and a plot. Start
// with Write.
package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
)

// Machine is what a reader has to know to believe a figure.
type Machine struct {
	CPU, System, Go, Commit, Command string
	Cores                            int
	MemoryGiB                        float64
	Date                             time.Time
	Modules                          []string // path and version
	Plot                             string   // the file with the plot
}

// Write writes the document.
func Write(out io.Writer, r *measure.Results, m Machine) error {
	d := &document{results: r}
	d.head(m)
	d.targets()
	d.singles()
	d.keyeds()
	d.memory()
	d.waiting()
	d.workload()
	d.list("Versions", m.Modules)
	_, err := io.WriteString(out, d.text.String())
	return err
}

type document struct {
	text    strings.Builder
	results *measure.Results
}

func (d *document) line(format string, values ...any) {
	fmt.Fprintf(&d.text, format+"\n", values...)
}

func (d *document) head(m Machine) {
	c := d.results.Config
	d.line("# Results\n")
	d.line("Written by the bench; not to be edited. What it measures and why is in docs/performance.md.\n")
	d.table([]string{"what", "value"}, [][]string{
		{"command", "`" + m.Command + "`"},
		{"date", m.Date.UTC().Format(time.DateTime) + " UTC"},
		{"commit", m.Commit},
		{"Go", m.Go},
		{"machine", fmt.Sprintf("%s, %d cores, %.0f GiB, %s", m.CPU, m.Cores, m.MemoryGiB, m.System)},
		{"repetitions", fmt.Sprintf("%d, interleaved, %v each", c.Repetitions, c.Duration)},
		{"took", d.results.Took.Round(time.Second).String()},
	})
	d.line("Figures are medians, with the farthest repetition from them in percent. Compare the ratios: they are of the same run.")
	if m.Plot != "" {
		d.line("\n![ns a decision](%s)", m.Plot)
	}
	d.line("")
}

func (d *document) targets() {
	d.line("## Targets\n")
	d.line("A miss counts only outside the spread: where no repetition reached the aim. Of several mixes, cores and outcomes the worst counts.\n")
	var rows [][]string
	for _, t := range Targets(d.results) {
		rows = append(rows, []string{t.Name, t.Aim, t.Measured, t.Verdict})
	}
	d.table([]string{"target", "aim", "measured", "verdict"}, rows)
}

// column is a mix in one outcome on some cores.
type column struct {
	mix    string
	denied bool
	cores  int
}

func (c column) title() string {
	outcome := "allowed"
	if c.denied {
		outcome = "denied"
	}
	return fmt.Sprintf("%s, %s, %d", c.mix, outcome, c.cores)
}

func (c column) of(peer string) measure.Cell {
	return measure.Cell{Peer: peer, Mix: c.mix, Denied: c.denied, Cores: c.cores}
}

func (d *document) columns(mixes ...string) (all []column) {
	for _, mix := range mixes {
		for _, denied := range []bool{false, true} {
			for _, cores := range d.results.Config.Cores {
				all = append(all, column{mix, denied, cores})
			}
		}
	}
	return all
}

func (d *document) singles() {
	var names []string
	for _, p := range d.results.Config.Singles {
		names = append(names, p.Name)
	}
	d.section("One limiter", names, d.columns(measure.SingleMix), peers.FloorGCRA)
}

func (d *document) keyeds() {
	var names []string
	for _, p := range d.results.Config.Keyeds {
		names = append(names, p.Name)
	}
	for _, mix := range d.results.Config.Mixes {
		d.section("Many keys: "+mix.Name, names, d.columns(mix.Name), peers.FloorTable)
	}
}

// section is one table: ns and the ratio to the floor, for each column that has
// figures.
func (d *document) section(title string, names []string, columns []column, floor string) {
	head := []string{"ns (× floor)"}
	var shown []column
	for _, c := range columns {
		for _, name := range names {
			if len(d.results.Cells[c.of(name)]) > 0 {
				shown = append(shown, c)
				head = append(head, strings.TrimPrefix(c.title(), c.mix+", ")+" core(s)")
				break
			}
		}
	}
	if len(shown) == 0 {
		return
	}
	var rows [][]string
	for _, name := range names {
		row := []string{name}
		measured := false
		for _, c := range shown {
			row = append(row, d.cell(c.of(name), c.of(floor)))
			measured = measured || len(d.results.Cells[c.of(name)]) > 0
		}
		if !measured {
			continue
		}
		rows = append(rows, append(row, d.cost(name, shown)))
	}
	d.line("## %s\n", title)
	d.table(append(head, "allocs / bytes a call"), rows)
}

func (d *document) cell(of, floor measure.Cell) string {
	series := d.results.Series(of)
	if len(series) == 0 {
		return "-"
	}
	text := fmt.Sprintf("%.1f ±%.0f %%", series.Median(), 100*series.Spread())
	if ratio := series.Over(d.results.Series(floor)); len(ratio) > 0 && of != floor {
		text += fmt.Sprintf(" (%.2f)", ratio.Median())
	}
	return text
}

// cost is what a call of the first column allocates.
func (d *document) cost(name string, columns []column) string {
	for _, c := range columns {
		samples := d.results.Cells[c.of(name)]
		if len(samples) == 0 {
			continue
		}
		var allocs, bytes measure.Series
		for _, s := range samples {
			allocs, bytes = append(allocs, s.AllocsPerOp), append(bytes, s.BytesPerOp)
		}
		return fmt.Sprintf("%.2f / %.0f", allocs.Median(), bytes.Median())
	}
	return "-"
}

func (d *document) table(head []string, rows [][]string) {
	d.line("| %s |", strings.Join(head, " | "))
	d.line("|%s", strings.Repeat("---|", len(head)))
	for _, row := range rows {
		d.line("| %s |", strings.Join(row, " | "))
	}
	d.line("")
}

func (d *document) list(title string, items []string) {
	d.line("## %s\n", title)
	for _, item := range items {
		d.line("- %s", item)
	}
}

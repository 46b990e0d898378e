package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// place names a figure in RESULTS.md.
type place struct{ section, row, column string }

// figures are the ns of a decision by place.
type figures map[place]float64

// pair holds the figures of two runs, one after the other.
type pair struct{ before, after figures }

// nanoseconds is how a cell of RESULTS.md begins: the median and its spread.
var nanoseconds = regexp.MustCompile(`^([0-9.]+) ±`)

// figuresIn reads the tables whose first column is headed "ns".
func figuresIn(text string) figures {
	found := figures{}
	var section string
	var columns []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "## "):
			section, columns = line[3:], nil
		case strings.HasPrefix(line, "| ns"):
			columns = cellsOf(line)
		case strings.HasPrefix(line, "| ") && columns != nil:
			found.addRow(section, columns, cellsOf(line))
		}
	}
	return found
}

func (f figures) addRow(section string, columns, cells []string) {
	for i := 1; i < min(len(cells), len(columns)); i++ {
		if m := nanoseconds.FindStringSubmatch(cells[i]); m != nil {
			f[place{section, cells[0], columns[i]}], _ = strconv.ParseFloat(m[1], 64)
		}
	}
}

func cellsOf(line string) (cells []string) {
	for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells
}

// change is a figure before and after, and the ratios of the pairs.
type change struct {
	place
	before, after            float64 // medians, in ns
	ratio, smallest, largest float64
}

// changes returns the figures that both commits have.
func changes(rounds []pair) (list []change) {
	if len(rounds) == 0 {
		return nil
	}
	for at := range rounds[0].before {
		if c, ok := changeAt(at, rounds); ok {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b change) int {
		return strings.Compare(a.section+"\x00"+a.row+"\x00"+a.column, b.section+"\x00"+b.row+"\x00"+b.column)
	})
	return list
}

func changeAt(at place, rounds []pair) (change, bool) {
	var before, after, ratios []float64
	for _, r := range rounds {
		b, a := r.before[at], r.after[at]
		if b <= 0 || a <= 0 {
			return change{}, false
		}
		before, after, ratios = append(before, b), append(after, a), append(ratios, a/b)
	}
	return change{at, median(before), median(after), median(ratios), slices.Min(ratios), slices.Max(ratios)}, true
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

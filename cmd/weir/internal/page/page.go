// Package page holds what our pages share: a style, charts, and tables that sort and filter. It has no framework and
// nothing to build.
//
// A page links or embeds [Style] and [Script], and its own script after them. That script calls
//
//	weir.chart(figure, {title, answer, x, time: true, stacked: true, series: [{name: 'admitted', colour: 'admitted', area: true, values}]})
//	weir.table(table)
//
// on a <figure>, whose <figcaption> says in words what the picture shows, and on a <table> with a head and one body.
// weir.chart returns {update(x, values)} for figures that change. assets/chart.js and assets/table.js begin with all
// that a chart and a table may have. Charts have a legend, a readout that follows the pointer and the arrow keys, a table of their
// figures and a button that saves a PNG. Colours are those of assets/page.css in light, dark and print.
//
// Neither asks a network, nor needs style or script attributes: a content security policy may forbid both. Values from
// outside become text by textContent, never markup. A page in one file is a [Document]; the daemon serves its own.
package page

import (
	_ "embed"
	"strings"
)

// UPlot is the version of the npm package uplot that is embedded. docs/develop/dependencies.md says how to change it.
const UPlot = "1.6.32"

var (
	//go:embed assets/uPlot.iife.min.js
	uPlotScript string
	//go:embed assets/uPlot.min.css
	uPlotStyle string
	//go:embed assets/uPlot.LICENSE
	uPlotLicence string
	//go:embed assets/page.css
	style string
	//go:embed assets/chart.js
	chartScript string
	//go:embed assets/table.js
	tableScript string
)

// Style returns the style sheet.
func Style() string { return uPlotStyle + "\n" + style }

// Script returns the script that defines uPlot and weir, with the licence that uPlot must carry.
func Script() string {
	return strings.Join([]string{"/*! uPlot " + UPlot + "\n" + uPlotLicence + "\n*/", uPlotScript, chartScript, tableScript}, "\n")
}

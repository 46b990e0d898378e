package picture

import (
	"fmt"
	"strings"
)

// pageWidth is the width of every picture, in the pixels of SVG.
const pageWidth = 864

// The colours distinguish units asked for, admitted units, and several limits.
const (
	ink       = "#282c34"
	faint     = "#e1e4e8"
	grey      = "#787d82"
	refused   = "#f0a88c"
	admitted  = "#3174b2"
	attention = "#c0392b"
)

var palette = []string{admitted, "#d66e26", "#3c8c50", "#8c5aaa", "#78503c", "#c8508c", "#5a646e", "#a0961e", "#1496a0", "#503c96"}

func shade(i int) string { return palette[i%len(palette)] }

// drawing is an SVG that grows.
type drawing struct {
	height float64
	body   strings.Builder
}

// xy is a place, in pixels from the upper left.
type xy struct{ x, y float64 }

// String returns the whole file.
func (d *drawing) String() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]s" width="%[1]d" height="%[2]s" `+
		`font-family="Liberation Sans,Arial,Helvetica,sans-serif">`+"\n"+`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n%[3]s</svg>\n",
		pageWidth, number(d.height), d.body.String())
}

// number writes a coordinate to a tenth of a pixel.
func number(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

func path(points []xy) string {
	var b strings.Builder
	for _, p := range points {
		fmt.Fprintf(&b, "%s,%s ", number(p.x), number(p.y))
	}
	return strings.TrimSuffix(b.String(), " ")
}

// line draws a line through the points. dashes is "", or lengths as SVG has them.
func (d *drawing) line(points []xy, colour string, width float64, dashes string) {
	if dashes != "" {
		dashes = ` stroke-dasharray="` + dashes + `"`
	}
	fmt.Fprintf(&d.body, `<polyline points="%s" fill="none" stroke="%s" stroke-width="%s"%s/>`+"\n", path(points), colour, number(width), dashes)
}

func (d *drawing) area(points []xy, colour string) {
	fmt.Fprintf(&d.body, `<polygon points="%s" fill="%s"/>`+"\n", path(points), colour)
}

func (d *drawing) dot(at xy, colour string) {
	fmt.Fprintf(&d.body, `<circle cx="%s" cy="%s" r="4" fill="%s"/>`+"\n", number(at.x), number(at.y), colour)
}

// Where a text stands beside its place.
const (
	after   = "start"
	centred = "middle"
	before  = "end"
)

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func (d *drawing) text(at xy, anchor, colour string, size float64, text string) {
	fmt.Fprintf(&d.body, `<text x="%s" y="%s" text-anchor="%s" fill="%s" font-size="%s">%s</text>`+"\n",
		number(at.x), number(at.y), anchor, colour, number(size), escaper.Replace(strings.ToValidUTF8(printable(text), "�")))
}

// printable leaves out what XML does not allow even in escaped form.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, text)
}

// upright writes a text that reads from below, for the axis of Y.
func (d *drawing) upright(at xy, size float64, text string) {
	fmt.Fprintf(&d.body, `<g transform="translate(%s,%s) rotate(-90)">`, number(at.x), number(at.y))
	d.text(xy{}, centred, ink, size, text)
	d.body.WriteString("</g>\n")
}

// axis spans values over pixels.
type axis struct {
	scale
	low, high float64
	from, to  float64 // the pixels of low and high
}

// at returns the pixel of a value.
func (a axis) at(v float64) float64 {
	low, high := a.place(a.low), a.place(a.high)
	return a.from + (a.to-a.from)*(a.place(v)-low)/(high-low)
}

// frame is where curves stand: two axes with their marks.
type frame struct{ x, y axis }

func (f frame) at(x, y float64) xy { return xy{f.x.at(x), f.y.at(y)} }

// grid draws the axes, their marks, and faint lines at them.
func (d *drawing) grid(f frame, x, y []tick) {
	for _, t := range x {
		at := f.x.at(t.value)
		d.line([]xy{{at, f.y.from}, {at, f.y.to}}, faint, 0.6, "")
		d.text(xy{at, f.y.from + 15}, centred, ink, 12, t.label)
	}
	for _, t := range y {
		at := f.y.at(t.value)
		d.line([]xy{{f.x.from, at}, {f.x.to, at}}, faint, 0.6, "")
		d.text(xy{f.x.from - 6, at + 4}, before, ink, 12, t.label)
	}
	d.line([]xy{{f.x.from, f.y.to}, {f.x.from, f.y.from}, {f.x.to, f.y.from}}, ink, 0.8, "")
}

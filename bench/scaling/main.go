// Program scaling computes from measured costs what a rate of decisions needs. It writes the table of docs/why/performance.md and its
// picture.
//
//	go run ./bench/scaling
package main

import (
	"fmt"
	"math"
	"os"
	"strings"
)

// shape is a way to decide, with the measured processor time of a decision in microseconds.
type shape struct {
	name   string
	client float64 // in the process that asks, or in the daemon
	redis  float64 // in Redis, which uses one core for each server
	source string
}

// shapes are measured on two cores of one machine, as docs/why/performance.md says.
var shapes = []shape{
	{"in the process", 0.152, 0, "`weir.Memory`, a million keys: bench/RESULTS.md"},
	{"prefetch on Redis", 0.208, 0, "two cores at 104 ns, Redis' part included: bench/LAYERS.md"},
	{"sticky daemons, 100 decisions a call", 0.89, 0, "`weir serve`, HTTP: bench/RESP.md"},
	{"Redis", 1.97, 2.57, "`redislimit`, 128 callers, 10,000 keys: bench/REDIS.md"},
	{"sticky daemons, a decision a call", 13, 0, "`BenchmarkTakeOverHTTP` in cmd/weir/internal/metrics"},
}

// busy is the share of a core that is planned for: the rest is for bursts, collections and lost machines.
const busy = 0.6

// cores returns the cores that a rate needs, and the Redis servers among them.
func (s *shape) cores(rate float64) (cores, servers float64) {
	if s.redis > 0 {
		servers = math.Ceil(rate * s.redis * 1e-6 / busy)
	}
	return math.Ceil(rate*s.client*1e-6/busy) + servers, servers
}

// rates are the columns of the table.
var rates = []float64{1e4, 1e5, 1e6, 1e7, 1e8}

func table() string {
	var b strings.Builder
	b.WriteString("| | µs a decision |")
	for _, rate := range rates {
		fmt.Fprintf(&b, " 10^%.0f/s |", math.Log10(rate))
	}
	b.WriteString("\n|---|---:|" + strings.Repeat("---:|", len(rates)) + "\n")
	for _, s := range shapes {
		fmt.Fprintf(&b, "| %s | %.3g |", s.name, s.client+s.redis)
		for _, rate := range rates {
			cores, servers := s.cores(rate)
			fmt.Fprintf(&b, " %.0f", cores)
			if servers > 0 {
				fmt.Fprintf(&b, " (%.0f Redis)", servers)
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, s := range shapes {
		fmt.Fprintf(&b, "- %s: %s\n", s.name, s.source)
	}
	return b.String()
}

// The picture has logarithmic axes: 10^4 to 10^8 decisions a second, and 1 to 10^4 cores.
const (
	width, height       = 720.0, 420.0
	left, right         = 60.0, 250.0
	top, bottom         = 20.0, 45.0
	leastRate, mostRate = 4.0, 8.0
	mostCores           = 4.0
)

func at(rate, cores float64) (x, y float64) {
	x = left + (math.Log10(rate)-leastRate)/(mostRate-leastRate)*(width-left-right)
	y = height - bottom - math.Log10(cores)/mostCores*(height-top-bottom)
	return x, y
}

func picture() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" fill="white"/>`+"\n", width, height)
	for power := leastRate; power <= mostRate; power++ {
		x, y := at(math.Pow(10, power), 1)
		fmt.Fprintf(&b, `<path d="M%.1f %.1fV%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="middle">10^%.0f</text>`+"\n", x, y, top, x, y+16, power)
	}
	for power := 0.0; power <= mostCores; power++ {
		x, y := at(math.Pow(10, leastRate), math.Pow(10, power))
		fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%.0f</text>`+"\n", x, y, width-right, x-6, y+4, math.Pow(10, power))
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">decisions a second</text><text x="8" y="%.1f">cores</text>`+"\n", (left+width-right)/2, height-8, top-6)
	for i, s := range shapes {
		colour := []string{"#1b6ca8", "#2a9d5c", "#8e44ad", "#c0392b", "#d68910"}[i]
		path := "M"
		for power := leastRate; power <= mostRate+0.01; power += 0.1 {
			rate := math.Pow(10, power)
			x, y := at(rate, max(1, rate*(s.client+s.redis)*1e-6/busy))
			path += fmt.Sprintf("%.1f %.1f ", x, y)
		}
		y := top + 20*float64(len(shapes)-i)
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/><text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n", strings.TrimSpace(path), colour, width-right+12, y, colour, s.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// The files that the program writes. The table stands between two comments.
const (
	page    = "docs/why/performance.md"
	drawing = "docs/pictures/scaling.svg"
	begin   = "<!-- computed by go run ./bench/scaling -->\n"
	end     = "<!-- end -->\n"
)

// withTable returns the page with the present table.
func withTable(text string) (string, error) {
	before, rest, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("%s: the comments around the table are missing", page)
	}
	return before + begin + table() + end + after, nil
}

func run() error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	now, err := withTable(string(text))
	if err != nil {
		return err
	}
	if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
		return err
	}
	return os.WriteFile(drawing, []byte(picture()), 0o644)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/scaling:", err)
		os.Exit(1)
	}
}

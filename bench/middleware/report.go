package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// target is an aim of docs/performance.md.
type target struct {
	text     string
	aim      string
	measured spread
	format   string
	reached  func(float64) bool
}

// over returns, for each round, how much longer a subject takes than another.
func over(list []*subject, name, than string) spread {
	a, b := find(list, name), find(list, than)
	numbers := make([]float64, len(a.minima))
	for i := range numbers {
		numbers[i] = a.minima[i] - b.minima[i]
	}
	return spreadOf(numbers)
}

// times returns, for each round, how often as long a subject takes.
func times(list []*subject, name, than string) spread {
	a, b := find(list, name), find(list, than)
	numbers := make([]float64, len(a.minima))
	for i := range numbers {
		numbers[i] = a.minima[i] / b.minima[i]
	}
	return spreadOf(numbers)
}

func find(list []*subject, name string) *subject {
	for _, s := range list {
		if s.name == name {
			return s
		}
	}
	return nil // names are constants
}

func targets(list []*subject) []target {
	atMost := func(most float64) func(float64) bool { return func(x float64) bool { return x <= most } }
	count := func(name string) spread {
		n := find(list, name).allocs
		return spread{n, n, n}
	}
	grpc := list[len(list)-1]
	all := []target{
		{"an admitted request, no fields, over the bare handler", "≤ 300 ns", over(list, weirNone, bareHandler), "%.0f ns", atMost(300)},
		{"its allocations", "≤ 2", count(weirNone), "%.1f", atMost(2)},
		{"with the fields of draft 11, over the bare handler", "≤ 900 ns", over(list, weirDraft11, bareHandler), "%.0f ns", atMost(900)},
		{"the interceptor of grpclimit, called directly", "≤ 500 ns", spreadOf(grpc.minima), "%.0f ns", atMost(500)},
		{"its allocations", "≤ 2", count(grpc.name), "%.1f", atMost(2)},
	}
	for _, p := range peers[4:] {
		all = append(all, target{p.name + " over Weir, both with fields of a number each", "> 1 ×", times(list, p.name, weirLegacy), "%.2f ×", func(x float64) bool { return x > 1 }})
	}
	return all
}

const preamble = `# Middleware: measured

Written by ` + "`make bench-http`" + `. One admitted request, by turns of %d clients, to a handler that does nothing, with the writer
of the answer in memory. Every middleware keeps its state in memory and counts by the address of the client.

`

// report returns the text of bench/HTTP.md.
func report(list []*subject, rounds int, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, preamble, clients)
	for _, line := range machine() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "- %d rounds in %s. A round measures all rows by turns, each in windows of %d requests, and keeps the fastest window. Others are\n"+
		"  interrupted by other programs, or by the garbage collector, which favours rows with many allocations.\n", rounds, took.Round(time.Second), window)
	b.WriteString("- before the run, each row has refused the second request of each client under a limit of 1, and set the fields it names;\n" +
		"  after the run, all of its requests were admitted\n")
	b.WriteString("\n## Targets\n\nThe median of the rounds, and the least and the greatest.\n\n| target | aim | measured | |\n|---|---|---:|---|\n")
	for _, t := range targets(list) {
		verdict := "reached"
		if !t.reached(t.measured.median) {
			verdict = "**missed**"
		}
		measured := fmt.Sprintf(t.format, t.measured.median)
		if t.measured.least != t.measured.greatest {
			measured += fmt.Sprintf(" ("+t.format+" to "+t.format+")", t.measured.least, t.measured.greatest)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", t.text, t.aim, measured, verdict)
	}
	b.WriteString("\n## All rows\n\n| | ns | least to greatest | allocations | fields |\n|---|---:|---:|---:|---|\n")
	for i, s := range list {
		fields := ""
		if i < len(peers) {
			fields = strings.Join(peers[i].fields, ", ")
		}
		m := spreadOf(s.minima)
		fmt.Fprintf(&b, "| %s | %.0f | %.0f to %.0f | %.1f | %s |\n", s.name, m.median, m.least, m.greatest, s.allocs, fields)
	}
	return b.String()
}

// machine describes the machine and the run, in lines.
func machine() []string {
	hash := output("git", "rev-parse", "--short=12", "HEAD")
	if exec.Command("git", "diff", "--quiet", "HEAD").Run() != nil {
		hash += " with uncommitted changes"
	}
	return []string{
		fmt.Sprintf("%s, %d cores, %s/%s", output("sh", "-c", "sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1"), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
		"Go: " + runtime.Version() + "; " + strings.Join(modules(), ", "),
		"commit " + hash + ", " + time.Now().UTC().Format("2006-01-02 15:04 UTC"),
	}
}

func output(name string, args ...string) string {
	text, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// modules returns the versions of the compared modules.
func modules() (list []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return []string{"modules unknown"}
	}
	for _, m := range info.Deps {
		for _, part := range []string{"tollbooth", "httprate", "go-limiter", "throttled", "ulule", "google.golang.org/grpc"} {
			if strings.Contains(m.Path, part) {
				list = append(list, m.Path+" "+m.Version)
			}
		}
	}
	return list
}

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// The aims.
const (
	mostCollection = 3 * time.Millisecond
	leastSpeed     = 2.0 // million keys a second
	mostP9999      = 100 * time.Microsecond
)

func printReport(to io.Writer, measured [][]figure, bare times, keys int, begun time.Time) {
	fmt.Fprintf(to, "# %d keys of each kind of entry\n\n", keys)
	command := strings.Join(append([]string{"go run ./large"}, os.Args[1:]...), " ")
	fmt.Fprintf(to, "`%s` in `bench/` wrote this on %s: %s, %s/%s, %d CPUs, %.0f s. What misses its aim is bold.\n\n", command,
		begun.UTC().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Since(begun).Seconds())
	fmt.Fprintln(to, "The engine takes one unit of each key. Bytes are the growth of the heap after a collection. Collections are 31 full ones, one")
	fmt.Fprintln(to, "after the other; a pause stops all goroutines. A save goes to memory, and a load comes from there. Decisions are timed one by one: those")
	fmt.Fprintln(to, "on new keys while the engine grows, and those on half as many new keys while all earlier keys are idle and are evicted. A figure")
	fmt.Fprintf(to, "is the median of %d rounds; what is worst or longest is so of all. Nothing at all takes %s at the median, %s at p99.99, and\n", len(measured[0]), bare.median, bare.p9999)
	fmt.Fprintf(to, "%s at worst.\n\n", bare.longest)
	fmt.Fprintln(to, "| entry | bytes a key | collection: median, worst, longest pause | save, M keys/s | load, M keys/s | growing: median, p99.99, worst | evicting: median, p99.99, worst | evicted |")
	fmt.Fprintln(to, "|---|---:|---:|---:|---:|---:|---:|---:|")
	for _, rounds := range measured {
		f := together(rounds)
		fmt.Fprintf(to, "| %s | %s of %.0f | %s | %s | %s | %s | %s | %d |\n", f.name,
			marked(fmt.Sprintf("%.1f", f.bytes), f.bytes > f.most), f.most,
			f.collection,
			marked(fmt.Sprintf("%.2f", f.save), f.save < leastSpeed), marked(fmt.Sprintf("%.2f", f.load), f.load < leastSpeed),
			f.growing, f.forgetting, f.evicted)
	}
	fmt.Fprintf(to, "\nAims: the bytes beside each figure, a median collection of at most %s, %.0f million keys a second, p99.99 below %s.\n", mostCollection, leastSpeed, mostP9999)
}

func (c collections) String() string {
	round := func(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }
	return fmt.Sprintf("%s, %s, %s", marked(round(c.median), c.median > mostCollection), round(c.longest), round(c.pause))
}

func (t times) String() string {
	return fmt.Sprintf("%s, %s, %s", t.median, marked(t.p9999.String(), t.p9999 >= mostP9999), t.longest.Round(time.Microsecond))
}

func marked(text string, missed bool) string {
	if missed {
		return "**" + text + "**"
	}
	return text
}

package measure

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// ProcessorTime returns the time for which this process has run.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // cannot fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Memory returns the bytes of the heap and of the process after a collection. Those of the process are 0 without /proc.
func Memory() (heap, resident float64) {
	runtime.GC() // twice: the second frees what finalizers released
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	content, _ := os.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(content); len(fields) > 1 {
		resident, _ = strconv.ParseFloat(string(fields[1]), 64)
	}
	return float64(stats.HeapAlloc), resident * float64(os.Getpagesize())
}

// Collections times full collections, one after the other, in ms.
func Collections(n int) (all Series) {
	for range n {
		start := time.Now()
		runtime.GC()
		all = append(all, time.Since(start).Seconds()*1000)
	}
	return all
}

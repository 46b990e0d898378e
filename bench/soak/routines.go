package main

import (
	"runtime"
	"strings"
	"time"
)

// routines returns the goroutines that exist, by name ("goroutine 7"), with their
// stacks. A count would not do: a goroutine of an earlier run that has yet to
// end hides one that stays.
func routines() map[string]string {
	buf := make([]byte, 64<<10)
	n := runtime.Stack(buf, true)
	for ; n == len(buf); n = runtime.Stack(buf, true) {
		buf = make([]byte, 2*len(buf))
	}
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(buf[:n]), "\n\n") {
		name, _, _ := strings.Cut(stack, " [")
		all[name] = stack
	}
	return all
}

// leftRoutines returns the stacks of goroutines that are not among earlier ones. One
// that has done its work may take a moment to end, so it looks a thousand times,
// yielding in between: a busy machine makes each look longer, not fewer.
func leftRoutines(earlier map[string]string) (left []string) {
	for range 1000 {
		left = left[:0]
		for name, stack := range routines() {
			if _, known := earlier[name]; !known {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return left
}

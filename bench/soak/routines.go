package main

import (
	"runtime"
	"strings"
	"time"
)

// routines returns the stacks of all goroutines by name ("goroutine 7"). A count is not enough: the end of a
// goroutine of an earlier run would hide one that stays.
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

// leftRoutines returns the stacks of new goroutines. A goroutine may take a moment to end, so it looks a thousand
// times and yields in between. A busy machine makes each look slower, not the number smaller.
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

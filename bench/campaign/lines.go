package main

import (
	"fmt"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

// linesEnd is how long lines may outlive the processes whose callers stood in them.
const linesEnd = 4 * time.Second

// lineKeys are the keys of lines, as docs/why/redis.md says.
const lineKeys = prefixServer + ":{*}:[^:]*:q*:*"

// awaitNoLine returns "" as soon as no server has a line, and otherwise what is left at the deadline.
func (w *world) awaitNoLine(deadline time.Time) string {
	for {
		left := ""
		for _, node := range w.serving() {
			keys, err := node.Ask("KEYS", lineKeys)
			if list, _ := keys.([]any); len(list) > 0 || err != nil {
				left = fmt.Sprintf("%s has the lines %q (%v)", node.Addr, keys, err)
			}
		}
		if left == "" || time.Now().After(deadline) {
			return left
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// serving returns the masters.
func (w *world) serving() (all []*redistest.Server) {
	switch {
	case w.sentinel != nil:
		return []*redistest.Server{w.sentinel.Now()}
	case w.server != nil:
		return []*redistest.Server{w.server}
	case w.cluster == nil:
		return nil
	}
	seen := map[*redistest.Server]bool{}
	for _, slot := range w.slots {
		if node := w.cluster.Master(slot); node != nil && !seen[node] {
			seen[node], all = true, append(all, node)
		}
	}
	return all
}

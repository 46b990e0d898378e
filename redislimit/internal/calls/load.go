package calls

import (
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// workload is the work of the decisions of a call. A state is read once.
type workload struct {
	total int
	heavy int             // that of heavy states
	read  map[string]bool // the keys of heavy states
}

func (w *workload) add(d *wire.Decision) {
	for i := range d.Parts {
		p := &d.Parts[i]
		work := p.Limit.Weight
		if work >= stored.HeavyWork {
			if w.read[p.Key] {
				work = stored.LaterWork
			} else {
				if w.read == nil {
					w.read = map[string]bool{}
				}
				w.read[p.Key] = true
				w.heavy += work
			}
		}
		w.total += work
	}
}

// full reports whether the work is more than a call may have.
func (w *workload) full() bool { return w.total > stored.MostWork || w.heavy > stored.MostHeavy }

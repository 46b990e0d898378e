package api

import "sync/atomic"

// reloads count what became of changed rules files.
type reloads struct {
	done, failed atomic.Uint64
	stale        atomic.Bool // the last one failed
}

// reloadStats are the reloads in the answer to GET /v1/stats.
type reloadStats struct {
	Done   uint64 `json:"done"`
	Failed uint64 `json:"failed"`
	Stale  bool   `json:"stale"`
}

// Reloaded notes what became of changed rules files. After an error, which leaves the rules in force, readiness and
// statistics say so until the next reload.
func (a *API) Reloaded(err error) {
	if err != nil {
		a.reloads.failed.Add(1)
	} else {
		a.reloads.done.Add(1)
	}
	a.reloads.stale.Store(err != nil)
}

func (r *reloads) stats() *reloadStats {
	return &reloadStats{Done: r.done.Load(), Failed: r.failed.Load(), Stale: r.stale.Load()}
}

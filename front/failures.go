package front

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// failures logs that the engine failed, at most once a minute.
type failures struct {
	name   string // of the front
	logger *slog.Logger
	last   atomic.Int64 // in seconds since the Unix epoch
}

func (f *failures) log(err error) {
	now, last := time.Now().Unix(), f.last.Load()
	if (last == 0 || now-last >= 60) && f.last.CompareAndSwap(last, now) {
		f.logger.Error(f.name+": the engine could not decide", "error", err)
	}
}

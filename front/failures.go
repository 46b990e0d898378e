package front

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/layer"
)

// failures logs that the engine failed, other than by an outage, at most once a minute.
type failures struct {
	name   string // the front's
	logger *slog.Logger
	last   atomic.Int64 // in seconds since the Unix epoch
}

func (f *failures) log(err error) {
	if _, away := errors.AsType[*layer.OutageError](err); away {
		return // which the Guard has logged
	}
	now, last := time.Now().Unix(), f.last.Load()
	if (last == 0 || now-last >= 60) && f.last.CompareAndSwap(last, now) {
		f.logger.Error(f.name+": the engine could not decide", "error", err)
	}
}

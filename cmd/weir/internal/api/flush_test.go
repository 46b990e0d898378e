package api

import (
	"context"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// flushed is an engine that counts calls of Flush, and waits in it for the end of the context.
type flushed struct {
	weir.Engine
	times int
}

func (f *flushed) Flush(ctx context.Context) error {
	f.times++
	<-ctx.Done()
	return ctx.Err()
}

func TestAStopFlushesTheEngineWithinItsBound(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *API) {
		engine := &flushed{Engine: weir.NewMemory(weir.MemoryOptions{})}
		a := newAPI(t, engine, usual)
		a.Stopping()
		began := time.Now()
		a.Stopped()
		if took := time.Since(began); engine.times != 1 || took != longestFlush {
			t.Errorf("the engine was flushed %d times in %v, want once, for %v", engine.times, took, longestFlush)
		}
	})
}

package api

import (
	"context"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/layertest"
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
	for layers := range 2 {
		inBubble(t, func(t *testing.T, _ *API) {
			engine := &flushed{Engine: weir.NewMemory(weir.MemoryOptions{})}
			a := newAPI(t, layertest.Put(engine, layers), usual)
			a.Stopping()
			began := time.Now()
			a.desk.Stopped()
			if took := time.Since(began); engine.times != 1 || took != time.Second {
				t.Errorf("below %d functions: the engine was flushed %d times in %v, want once, for %v", layers, engine.times, took, time.Second)
			}
		})
	}
}

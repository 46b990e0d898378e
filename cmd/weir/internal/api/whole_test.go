package api

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit"
)

// The queue finds the abilities of an engine by its methods, so the wrapper needs each of them. Only the program calls
// the others, and on the engine itself.
func TestTheEngineOfWaitingCallersHidesNoAbility(t *testing.T) {
	ofTheProgram := []string{"Close", "Stats", "Warnings"}
	engine, wrapper := reflect.TypeFor[*redislimit.Engine](), reflect.TypeOf(newWholeCalls(new(redislimit.Engine), 0))
	for i := range engine.NumMethod() {
		name := engine.Method(i).Name
		if _, has := wrapper.MethodByName(name); !has && !slices.Contains(ofTheProgram, name) {
			t.Errorf("%s has no method %s, which %s has", wrapper, name, engine)
		}
	}
}

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

package pace_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/waittest"
)

// The promises of waiting, on each kind of engine, with layers around it and without.
func TestWaitingKeepsItsPromisesInRandomSchedules(t *testing.T) {
	for name, world := range map[string]func(t *testing.T) waittest.World{
		"memory":   memoryWorld,
		"server":   serverWorld,
		"stranger": strangersWorld,
	} {
		for i, layers := range []string{"bare", "wrapped"} {
			t.Run(name+"/"+layers, func(t *testing.T) {
				for seed := range randtest.Seeds(t, 10, 2) {
					synctest.Test(t, func(t *testing.T) {
						w := world(t)
						connect := w.Connect
						w.Connect = func(n waittest.Network) weir.Engine { return layertest.Put(connect(n), i) }
						waittest.Schedule(t, seed, w)
						time.Sleep(90 * time.Second)
					})
				}
			})
		}
	}
}

// Calls that can never be admitted cost other callers nothing, on each kind of engine, with layers around it and without.
func TestHopelessCallsCostOtherCallersNothing(t *testing.T) {
	for name, world := range map[string]func(t *testing.T) waittest.World{
		"memory":   memoryWorld,
		"server":   serverWorld,
		"asking":   askingWorld,
		"stranger": strangersWorld,
	} {
		for i, limit := range waittest.Limits {
			t.Run(name+"/"+limit, func(t *testing.T) {
				for seed := range randtest.Seeds(t, 2, 1) {
					synctest.Test(t, func(t *testing.T) {
						w := world(t)
						connect := w.Connect
						w.Connect = func(n waittest.Network) weir.Engine { return layertest.Put(connect(n), int(seed)%2) }
						waittest.Hopeless(t, seed+uint64(i)<<32, w, limit, 8*time.Second, 0.02, 6)
						time.Sleep(90 * time.Second)
					})
				}
			})
		}
	}
}

// memoryWorld is a memory engine, which has no network.
func memoryWorld(t *testing.T) waittest.World {
	e := mustMemory(t)
	return waittest.World{Connect: func(waittest.Network) weir.Engine { return e }, Sees: e, Processes: 1}
}

func serverWorld(t *testing.T) waittest.World {
	s := newServer(t)
	return waittest.World{Connect: s.Connect, Sees: s.Memory, Processes: 5}
}

// askingWorld is a server on which nobody books.
func askingWorld(t *testing.T) waittest.World {
	w := serverWorld(t)
	w.Asks = true
	return w
}

// strangersWorld is the engine of a program that keeps states in a map: it books nothing and tells of no slots.
func strangersWorld(*testing.T) waittest.World {
	var mu sync.Mutex
	states := map[string]enginekit.State{}
	decide := func(_ context.Context, c *enginekit.Merged) (weir.Decision, error) {
		mu.Lock()
		defer mu.Unlock()
		for i := range c.Parts {
			if state, ok := states[c.Parts[i].StateKey()]; ok {
				c.Parts[i].State = state
			}
		}
		d := c.Decide(time.Now().UnixNano())
		for i := range c.Parts {
			if c.Parts[i].Changed {
				states[c.Parts[i].StateKey()] = c.Parts[i].State
			}
		}
		return d, nil
	}
	e := enginekit.New(decide, nil)
	return waittest.World{Connect: func(n waittest.Network) weir.Engine { return n.Around(e) }, Sees: e, Processes: 5}
}

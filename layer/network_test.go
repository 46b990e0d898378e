package layer_test

import (
	"errors"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

func TestAroundPutsTheUsualLayersAroundAnEngineOnANetwork(t *testing.T) {
	e, end, err := layer.ForNetwork(newRemote(), layer.NetworkOptions{Lease: true})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	_, guarded := weir.Find[*layer.Guarded](e)
	_, leased := weir.Find[*layer.Leased](e)
	_, denies := weir.Find[*layer.Denier](e)
	if !guarded || !leased || !denies {
		t.Errorf("got a guard %v, a lease %v, a deny until %v, want all", guarded, leased, denies)
	}
}

func TestAroundLeavesAnEngineThatNeedsNoLayers(t *testing.T) {
	guard, err := layer.Guard(newRemote(), layer.GuardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	for name, e := range map[string]weir.Engine{"in memory": weir.NewMemory(weir.MemoryOptions{}), "with a guard": guard} {
		if got, _, err := layer.ForNetwork(e, layer.NetworkOptions{}); got != e || err != nil {
			t.Errorf("an engine %s: got another one, %v", name, err)
		}
	}
	_, _, err = layer.ForNetwork(guard, layer.NetworkOptions{Guard: layer.GuardOptions{OnFailure: layer.Allow}})
	if _, ok := errors.AsType[*weir.OptionError](err); !ok {
		t.Errorf("options beside a guard: got %v, want an error that they have no effect", err)
	}
}

package layer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

func TestForNetworkPutsTheUsualLayersAroundAnEngineOnANetwork(t *testing.T) {
	e, end, err := layer.ForNetwork(newRemote(), layer.NetworkOptions{Prefetch: true})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	_, guarded := weir.Find[*layer.Guarded](e)
	_, prefetched := weir.Find[*layer.Prefetched](e)
	_, denies := weir.Find[*layer.Denier](e)
	if !guarded || !prefetched || !denies {
		t.Errorf("got a guard %v, a prefetch %v, a deny until %v, want all", guarded, prefetched, denies)
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

// Local admits a part of each limit, so a number of processes that nobody has given is asked for, and not taken to be 1.
func TestLocalAsksForTheNumberOfProcesses(t *testing.T) {
	for _, options := range []layer.GuardOptions{
		{OnFailure: layer.Local},
		{Rules: map[string]layer.Policy{"login": layer.Local}},
	} {
		if _, err := layer.Guard(newRemote(), options); err == nil || !strings.Contains(err.Error(), "peers are missing") {
			t.Errorf("%+v: got %v, want an error that asks for Peers", options, err)
		}
		options.Peers = 1
		guarded(t, newRemote(), options)
	}
	guarded(t, newRemote(), layer.GuardOptions{OnFailure: layer.Local, PeersNow: func() int { return 1 }})
	guarded(t, newRemote(), layer.GuardOptions{OnFailure: layer.Allow})
}

package decide

import (
	"testing"

	"github.com/weirflow/weir"
)

func TestProbeLeavesNothingBehind(t *testing.T) {
	engine := weir.NewMemory(weir.MemoryOptions{})
	for range 30 {
		if err := Probe(t.Context(), engine); err != nil {
			t.Fatal(err)
		}
		d, err := engine.Peek(t.Context(), probe.For("", 1))
		if err != nil || d.Remaining != probe.Limits()[0].(weir.TokenBucket).Burst {
			t.Fatalf("after a probe its key has %+v, %v, want a fresh one", d, err)
		}
	}
}

package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

// results returns made-up results: the floor takes 10 ns, and Weir and the rivals take the given multiples.
func results(ours, rivals float64) *measure.Results {
	r := &measure.Results{Cells: map[measure.Cell][]measure.Sample{}, Config: measure.Config{
		Singles: peers.Singles(), Keyeds: peers.Keyeds(), Mixes: workload.Mixes(1024), Repetitions: 3, Cores: []int{1, 2}, LargeKeys: 1_000_000,
	}}
	add := func(info peers.Info, mix string) {
		ns := 10.0
		switch info.Kind {
		case peers.Ours:
			ns *= ours
		case peers.Exact, peers.Approximate:
			ns *= rivals
		}
		for _, denied := range []bool{false, true} {
			for _, cores := range r.Config.Cores {
				cell := measure.Cell{Peer: info.Name, Mix: mix, Denied: denied, Cores: cores}
				for _, noise := range []float64{0.9, 1, 1.1} {
					sample := measure.Sample{NsPerOp: ns * noise}
					if info.Kind == peers.Floor {
						sample.NsPerOp = ns
					}
					r.Cells[cell] = append(r.Cells[cell], sample)
				}
			}
		}
	}
	for _, p := range r.Config.Singles {
		add(p.Info, measure.SingleMix)
	}
	for _, p := range r.Config.Keyeds {
		for _, mix := range r.Config.Mixes {
			add(p.Info, mix.Name)
		}
	}
	return r
}

func TestAMissCountsOnlyOutsideTheSpread(t *testing.T) {
	tests := []struct {
		ours float64 // ratio to the floor; the aim is 1.2
		want string
	}{{1.1, reached}, {1.3, withinNoise}, {1.4, missed}}
	for _, tt := range tests {
		got := Targets(results(tt.ours, 3))[0]
		if got.Verdict != tt.want {
			t.Errorf("%.1f × the floor ± 10 %%: %+v, want %s", tt.ours, got, tt.want)
		}
	}
}

func TestWhatIsNotMeasuredHasNoVerdict(t *testing.T) {
	for _, target := range Targets(&measure.Results{Config: measure.Config{Cores: []int{1}, Mixes: workload.Mixes(1024)}}) {
		if target.Verdict != notMeasured {
			t.Errorf("%+v of an empty run, want %q", target, notMeasured)
		}
	}
}

func TestTheFastestRivalIsTheOneToBeat(t *testing.T) {
	r := results(2, 3)
	fastest := measure.Cell{Peer: "ulule_memory", Mix: "one key", Cores: 1}
	r.Cells[fastest] = []measure.Sample{{NsPerOp: 10}, {NsPerOp: 10}, {NsPerOp: 10}}
	for _, target := range Targets(r) {
		if target.Name == "`Keyed`, over the fastest exact rival" {
			if target.Verdict != missed || !strings.Contains(target.Measured, "one key beside ulule_memory, allowed, 1 core") {
				t.Errorf("%+v, want a miss beside ulule_memory", target)
			}
			return
		}
	}
	t.Error("no target about the fastest exact rival of Keyed")
}

func TestTheDocumentNamesEveryPeerAndTheMachine(t *testing.T) {
	var text strings.Builder
	r := results(1, 2)
	if err := Write(&text, r, Machine{CPU: "a processor", Command: "compare", Date: time.Unix(0, 0), Modules: []string{"a module v1"}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"a processor", "1970-01-01", "a module v1", "never seen", "## Targets"}
	for _, p := range r.Config.Keyeds {
		want = append(want, p.Name)
	}
	for _, part := range want {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the document does not contain %q", part)
		}
	}
}

func TestThePlotIsAPicture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plot.svg")
	if err := Plot(results(1, 2), path); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), "<svg") || !strings.Contains(string(content), "weir_keyed_tokenbucket") {
		t.Errorf("%d bytes, error %v, want an SVG that names our peers", len(content), err)
	}
}

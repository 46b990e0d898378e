package measure

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

// small returns a configuration of some peers with few keys and a short time.
func small(singles []peers.SinglePeer, keyeds []peers.KeyedPeer) Config {
	return Config{
		Singles: singles, Keyeds: keyeds,
		Mixes: []*workload.Mix{
			{Name: "few", Keys: 500, LogPeriod: time.Second},
			{Name: "few, skewed", Keys: 500, Skew: 1.01, LogPeriod: time.Second},
			{Name: "fresh", Keys: 2 * batch, Fresh: true, LogPeriod: time.Second},
		},
		Repetitions: 2, Duration: 200 * time.Microsecond, Cores: []int{1, 2},
		Progress: func(string, ...any) {},
	}
}

// singleOf and keyedOf are peers with fixed answers.
type singleOf bool

func (s singleOf) Take() (bool, error) { return bool(s), nil }

type keyedOf func(key string) (bool, error)

func (k keyedOf) Take(key string) (bool, error) { return k(key) }

func rivalOf(answer keyedOf) []peers.KeyedPeer {
	return []peers.KeyedPeer{{Info: peers.Info{Name: "rival", Kind: peers.Exact}, New: func(peers.Limit) (peers.Keyed, error) { return answer, nil }}}
}

func TestRunMeasuresEveryCellInEveryRepetition(t *testing.T) {
	singles, keyeds := peers.Singles(), peers.Keyeds()
	isNamed := func(name string) bool {
		return name == peers.Loop || strings.HasSuffix(name, "tokenbucket") || name == "sethvargo_memorystore" || name == peers.XTimeRate
	}
	singles = slices.DeleteFunc(singles, func(p peers.SinglePeer) bool { return !isNamed(p.Name) })
	keyeds = slices.DeleteFunc(keyeds, func(p peers.KeyedPeer) bool { return !isNamed(p.Name) })
	r, err := Run(small(singles, keyeds))
	if err != nil {
		t.Fatal(err)
	}
	// Allowed and denied on one and two cores; fresh keys only allowed.
	if got, want := len(r.Cells), len(singles)*4+len(keyeds)*(4+4+2); got != want {
		t.Errorf("%d cells, want %d", got, want)
	}
	for cell, samples := range r.Cells {
		if len(samples) != 2 {
			t.Errorf("%+v has %d samples, want 2", cell, len(samples))
		}
		for _, s := range samples {
			if s.Ops < batch || s.NsPerOp <= 0 || cell.Mix != SingleMix && s.Distinct == 0 {
				t.Errorf("%+v: %+v, want calls, time and keys", cell, s)
			}
		}
	}
}

func TestAWorkloadThatIsNotWhatItHadToBeFailsTheRun(t *testing.T) {
	calls := 0
	tests := []struct {
		name   string
		config Config
		want   string
	}{
		{"a single limiter that refuses", small([]peers.SinglePeer{{
			Info: peers.Info{Name: "rival", Kind: peers.Exact},
			New:  func(peers.Limit) (peers.Single, error) { return singleOf(false), nil },
		}}, nil), "the first call was refused"},
		{"a single limiter that never refuses", small([]peers.SinglePeer{{
			Info: peers.Info{Name: "rival", Kind: peers.Exact},
			New:  func(peers.Limit) (peers.Single, error) { return singleOf(true), nil },
		}}, nil), "the workload differs from its definition"},
		{"a keyed limiter that refuses later", small(nil, rivalOf(func(string) (bool, error) {
			calls++
			return calls <= 1000, nil
		})), "the workload differs from its definition"},
		{"a keyed limiter that never refuses", small(nil, rivalOf(func(string) (bool, error) { return true, nil })), "the workload differs from its definition"},
	}
	for _, tt := range tests {
		tt.config.Cores = []int{1}
		if _, err := Run(tt.config); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q in it", tt.name, err, tt.want)
		}
	}
}

func TestKeysThatWereNotAskedAboutAreNoticed(t *testing.T) {
	mix := &workload.Mix{Name: "few", Keys: 500}
	onlyOne := workload.Uniform(1, 4096, 1)
	var s Sample
	if err := s.count(mix, []*workload.Sequence{onlyOne}, 0, []int{4096}); err == nil {
		t.Error("4096 draws of one key were taken for draws of 500")
	}
	s = Sample{}
	if err := s.count(mix, mix.Sequences(), 0, []int{4096}); err != nil || s.Distinct != 500 {
		t.Errorf("4096 draws of 500 keys: %d keys, error %v, want 500 and none", s.Distinct, err)
	}
}

func TestSeriesTellMedianRangeAndSpread(t *testing.T) {
	s := Series{4, 1, 2, 3}
	low, high := s.Range()
	if s.Median() != 2.5 || low != 1 || high != 4 || s.Spread() != 0.6 {
		t.Errorf("median %v, range %v to %v, spread %v of %v, want 2.5, 1 to 4, 0.6", s.Median(), low, high, s.Spread(), s)
	}
	if got := s.Over(Series{2, 2, 2}); !slices.Equal(got, Series{2, 0.5, 1}) {
		t.Errorf("ratios by repetition are %v, want [2 0.5 1]", got)
	}
	if got := (Series{}).Median(); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %v, want NaN", got)
	}
}

func TestLatenessIsCountedFromWhenATurnWasDue(t *testing.T) {
	const step = 10
	tests := []struct {
		name   string
		at     []time.Duration
		strict bool
		want   []time.Duration
	}{
		{"punctual", []time.Duration{0, 10, 20}, false, []time.Duration{0, 0}},
		{"the first was late", []time.Duration{4, 10, 20}, false, []time.Duration{0, 0}},
		{"one is late and the next keeps to the grid", []time.Duration{0, 13, 20}, false, []time.Duration{3, 0}},
		{"a late one moves the next", []time.Duration{0, 13, 23}, true, []time.Duration{3, 0}},
		{"one is late by more than a step", []time.Duration{0, 35, 35, 45}, false, []time.Duration{25, 0, 0}},
	}
	for _, tt := range tests {
		if got := late(tt.at, step, tt.strict); !slices.Equal(got, tt.want) {
			t.Errorf("%s: turns at %v are late by %v, want %v", tt.name, tt.at, got, tt.want)
		}
	}
}

func TestMemoryAndWaitingAreMeasured(t *testing.T) {
	c := small(nil, slices.DeleteFunc(peers.Keyeds(), func(p peers.KeyedPeer) bool { return p.Name != peers.OursKeyed+"tokenbucket" }))
	c.Memory, c.MemoryKeys, c.LargeKeys = true, 2000, 4000
	r := &Results{Config: c}
	for _, keys := range []int{c.MemoryKeys, c.LargeKeys} {
		if err := r.footprint(c.Keyeds[0], keys); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.growth(c.Keyeds[0], 2000); err != nil {
		t.Fatal(err)
	}
	if len(r.Footprints) != 2 || r.Footprints[0].Heap <= 0 || len(r.Latencies) != 1 || r.Latencies[0].Max <= 0 {
		t.Errorf("footprints %+v, latencies %+v, want two that cost something and one", r.Footprints, r.Latencies)
	}
	line, err := releaseLine(100, linePerSec)
	if err != nil || line.Took < 99*time.Microsecond {
		t.Errorf("100 callers at 1e6/s: %+v, error %v, want at least 99µs and none", line, err)
	}
}

package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// A suggestion is the tightest limit of its form: of all numbers, tried one by one by replays, it is the smallest that
// meets the target. Its figures, and those of the next number, are what the replays find.
func TestASuggestionIsTheTightestOfItsForm(t *testing.T) {
	tried, refusing := 0, 0
	for seed := range randtest.Seeds(t, 60, 12) {
		random := rand.New(rand.NewPCG(seed, 7))
		traffic := smallLog(t, random, 1)
		for _, text := range []string{
			fmt.Sprintf("refuse %.1f%%", 0.1+30*random.Float64()), fmt.Sprintf("refuse %d%% of requests", 1+random.IntN(100)),
			fmt.Sprintf("refuse %d%% of clients", 1+random.IntN(100)), fmt.Sprintf("spare %d%%", 1+random.IntN(100)),
		} {
			target := mustTarget(t, text)
			found, err := traffic.Suggest(target, nil)
			if err != nil || len(found.Limits) == 0 {
				t.Fatalf("%s: %d suggestions, %v", text, len(found.Limits), err)
			}
			checkProposal(t, traffic, found)
			for _, s := range found.Limits {
				tried++
				refusing += min(1, s.KeysRefused)
				if want := smallestOf(t, traffic, target, s.Form); want.TradeOff != s.TradeOff {
					t.Fatalf("%s: %s does %+v, and the smallest that replays find does %+v", text, s.Limit, s.TradeOff, want)
				}
				if s.Next != nil && replayNumber(t, traffic, s.Form, s.Number-1).TradeOff != *s.Next || (s.Next == nil) != (s.Number == 1) {
					t.Fatalf("%s: %s says that the next number does %+v", text, s.Limit, s.Next)
				}
			}
		}
	}
	if tried < 500 && !testing.Short() || refusing < tried/4 {
		t.Errorf("%d suggestions, %d of which refuse something, show too little", tried, refusing)
	}
}

// checkProposal looks for a suggestion that gives one client less, within the longest time that the log fills.
func checkProposal(t *testing.T, traffic *Traffic, found Suggestions) {
	t.Helper()
	within := func(l Suggestion) int64 { return l.In1h }
	if span := traffic.last - traffic.first; span < int64(time.Minute) {
		within = func(l Suggestion) int64 { return l.In1s }
	} else if span < int64(time.Hour) {
		within = func(l Suggestion) int64 { return l.In1m }
	}
	at := slices.IndexFunc(found.Limits, func(l Suggestion) bool { return l.Limit == found.Proposed.Limit })
	for _, l := range found.Limits {
		if at < 0 || within(l) < within(found.Limits[at]) {
			t.Fatalf("%s: proposed is %q, and %s gives one client %d", found.Target, found.Proposed.Limit, l.Limit, within(l))
		}
	}
}

// Clients that are never refused do not depend on costs, so there the smallest number is exact too. Of requests, the
// next smaller number misses the target.
func TestCostsKeepASuggestionTight(t *testing.T) {
	for seed := range randtest.Seeds(t, 40, 8) {
		random := rand.New(rand.NewPCG(seed, 8))
		traffic := smallLog(t, random, 6)
		for _, text := range []string{fmt.Sprintf("refuse %d%% of clients", 1+random.IntN(100)), fmt.Sprintf("spare %d%%", 1+random.IntN(100)), fmt.Sprintf("refuse %d%%", 1+random.IntN(40))} {
			target := mustTarget(t, text)
			found, err := traffic.Suggest(target, nil)
			if err != nil || len(found.Limits) == 0 {
				t.Fatalf("%s: %d suggestions, %v", text, len(found.Limits), err)
			}
			for _, s := range found.Limits {
				got := replayNumber(t, traffic, s.Form, s.Number)
				if got.TradeOff != s.TradeOff || !got.meets(traffic, target) {
					t.Fatalf("%s: %s says %+v, and a replay finds %+v", text, s.Limit, s.TradeOff, got)
				}
				if target.kind != refuseRequests {
					if smallest := smallestOf(t, traffic, target, s.Form); smallest.Number != s.Number {
						t.Fatalf("%s: %s, and the smallest that replays find is %d", text, s.Limit, smallest.Number)
					}
				}
				if s.Next != nil && replayNumber(t, traffic, s.Form, s.Number-1).meets(traffic, target) {
					t.Fatalf("%s: %s, and the next smaller meets the target too: %+v", text, s.Limit, *s.Next)
				}
			}
		}
	}
}

// Under a target in all, the next larger number misses the target.
func TestALimitForAllIsAsLooseAsItMayBe(t *testing.T) {
	tried := 0
	for seed := range randtest.Seeds(t, 40, 8) {
		random := rand.New(rand.NewPCG(seed, 9))
		traffic := smallLog(t, random, 3)
		text := fmt.Sprintf("at most %d/%s in all", 1+random.IntN(15), []string{"s", "m", "h", "10s", "1d"}[random.IntN(5)])
		found, err := traffic.Suggest(mustTarget(t, text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if refused := excess(traffic, found); found.Together.Refused != refused {
			t.Fatalf("%s: %+v, want %d refused", text, found.Together, refused)
		}
		for _, s := range found.Limits {
			tried++
			if s.Peak > found.Bound || s.Next != nil && s.Next.Peak <= found.Bound || s.Next == nil && s.Refused > 0 {
				t.Fatalf("%s: %s has a peak of %d, and the next number %+v", text, s.Limit, s.Peak, s.Next)
			}
			if got := replayNumber(t, traffic, s.Form, s.Number); got.Refused != s.Refused || got.KeysRefused != s.KeysRefused {
				t.Fatalf("%s: %s says %+v, and a replay finds %+v", text, s.Limit, s.TradeOff, got)
			}
		}
	}
	if tried < 40 && !testing.Short() || tried == 0 {
		t.Errorf("%d suggestions show too little", tried)
	}
}

// excess counts the requests that find their window of the clock full, the cheapest of an instant first.
func excess(traffic *Traffic, found Suggestions) (refused int64) {
	period := int64(map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour, "10s": 10 * time.Second, "d": 24 * time.Hour}[found.PeakIn])
	events := slices.Collect(traffic.All())
	slices.SortFunc(events, func(a, b Event) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Cost, b.Cost)) })
	used := map[int64]int64{}
	for _, e := range events {
		if window := e.At / period; used[window]+int64(e.Cost) <= found.Bound {
			used[window] += int64(e.Cost)
		} else {
			refused++
		}
	}
	return refused
}

// A share is what is written, to the last digit: as floating numbers, 29% of 100 are less than 29, and 7% more than 7.
func TestSharesAreExact(t *testing.T) {
	for _, test := range []struct {
		text    string
		n, want int64
	}{{"refuse 29%", 100, 29}, {"refuse 7%", 100, 7}, {"refuse 0.1%", 999, 0}, {"refuse 0.1%", 1000, 1}, {"refuse 57.3%", 1000, 573}, {"refuse 100%", 3, 3}} {
		target := mustTarget(t, test.text)
		if got := target.part(test.n); got != test.want {
			t.Errorf("%s of %d is %d, want %d", test.text, test.n, got, test.want)
		}
	}
	for text, want := range map[string]int64{"spare 7%": 7, "spare 29%": 29, "spare 99.9%": 100, "spare 0.001%": 1} {
		if got := mustTarget(t, text).spared(100); got != want {
			t.Errorf("%s of 100 spares %d, want %d", text, got, want)
		}
	}
}

// smallLog has a few keys of different size over some days or some minutes.
func smallLog(t *testing.T, random *rand.Rand, dearest int) *Traffic {
	t.Helper()
	span := []int{90, 3 * 3600, 3 * 24 * 3600}[random.IntN(3)]
	var log bytes.Buffer
	for key := range 1 + random.IntN(9) {
		start, within := random.IntN(span), 1+random.IntN(span)
		for range 1 + random.IntN(20)/(1+key) {
			fmt.Fprintf(&log, `{"ts":%d,"key":"%d","cost":%d}`+"\n", 1_500_000_000+start+random.IntN(within), key, 1+random.IntN(dearest))
		}
	}
	traffic := NewTraffic(nil, mustKey(t, "key"))
	traffic.CostFrom("cost")
	if err := traffic.ReadLog("log", &log); err != nil {
		t.Fatal(err)
	}
	return traffic
}

// replayedLimit is what the usual replay finds.
type replayedLimit struct {
	TradeOff
	refused map[string]int64 // by key
}

// replayNumber replays the limit of a form with a number. The peak is counted by second.
func replayNumber(t *testing.T, traffic *Traffic, form string, number int64) replayedLimit {
	t.Helper()
	refused, keys, peak, of := replayed(t, traffic, strings.Replace(form, "N", fmt.Sprint(number), 1))
	return replayedLimit{TradeOff{Number: number, Refused: refused, KeysRefused: keys, Peak: peak}, of}
}

// smallestOf tries all numbers of a form.
func smallestOf(t *testing.T, traffic *Traffic, target Target, form string) replayedLimit {
	t.Helper()
	for number := int64(1); number <= int64(1e6); number++ {
		if got := replayNumber(t, traffic, form, number); got.meets(traffic, target) {
			return got
		}
	}
	t.Fatalf("%s: no number meets %q", form, target)
	return replayedLimit{}
}

// meets decides by the words of the target, with floating numbers that are far from whole ones.
func (l replayedLimit) meets(traffic *Traffic, target Target) bool {
	share := float64(target.share.part) / float64(target.share.whole)
	keys := float64(len(traffic.keys))
	switch target.kind {
	case refuseRequests:
		return float64(l.Refused) <= share*float64(traffic.events.n)+1e-9
	case refuseClients:
		return float64(l.KeysRefused) <= share*keys+1e-9
	}
	for id, key := range traffic.keys {
		below := 0
		for other := range traffic.keys {
			if unitsOf(traffic, other) < unitsOf(traffic, id) {
				below++
			}
		}
		if float64(below) < share*keys-1e-9 && l.refused[key] > 0 {
			return false
		}
	}
	return true
}

func unitsOf(traffic *Traffic, key int) (units int64) {
	for _, e := range traffic.of(key) {
		units += int64(e.Cost)
	}
	return units
}

// One client that asks all the time never takes more within a second, a minute or an hour than a suggestion says. If it
// begins just before a boundary, it takes as much in the shortest of these times.
func TestOneClientTakesNoMoreThanASuggestionSays(t *testing.T) {
	for seed := range randtest.Seeds(t, 40, 8) {
		random := rand.New(rand.NewPCG(seed, 10))
		for _, f := range []family{bucketFamily(weir.PerMinute(7)), bucketFamily(weir.PerSecond(3)), fixedFamily(time.Minute), fixedFamily(time.Hour), slidingFamily(time.Minute), slidingFamily(time.Hour), quotaFamily()} {
			n := 1 + random.Int64N(20)
			begin := int64(1_500_076_800)*int64(time.Second) - 1 - random.Int64N(int64(2*time.Minute))*random.Int64N(2) // before midnight
			step := []time.Duration{100 * time.Millisecond, time.Second, 7 * time.Second}[random.IntN(3)]
			try, err := newTrial(nil, f.limit(n))
			if err != nil {
				t.Fatal(err)
			}
			var taken []Event
			for try.now = begin; try.now < begin+int64(2*time.Hour); try.now += int64(step) {
				for try.limiter.Take(1).Allowed {
					taken = append(taken, Event{At: try.now, Cost: 1})
				}
			}
			for _, d := range []time.Duration{time.Second, time.Minute, time.Hour} {
				most, says := mostWithinAny(d, taken), f.within(n, d)
				if most > says {
					t.Fatalf("%s: %d within %v, and a suggestion says %d", f.text(n), most, d, says)
				}
				if d == time.Second && begin%int64(time.Minute) == int64(time.Minute)-1 && step < time.Second && most < says-2 {
					t.Fatalf("%s: only %d within %v, and a suggestion says %d", f.text(n), most, d, says)
				}
			}
		}
	}
}

package replay

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
)

func mustTarget(t *testing.T, text string) Target {
	t.Helper()
	target, err := ParseTarget(text)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// skewedLog has keys of very different size over some hours, in no order.
func skewedLog(t *testing.T, lines int) *Traffic {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 9))
	zipf := rand.NewZipf(random, 1.2, 3, 200)
	var log bytes.Buffer
	for range lines {
		second := random.IntN(4 * 3600)
		if random.IntN(3) == 0 {
			second = 3600*random.IntN(4) + random.IntN(20) // bursts
		}
		fmt.Fprintf(&log, `{"ts":%d,"who":"%d"}`+"\n", 1_500_000_000+second, zipf.Uint64())
	}
	traffic := NewTraffic(nil, mustKey(t, "who"))
	if err := traffic.ReadLog("log", &log); err != nil {
		t.Fatal(err)
	}
	return traffic
}

func realTraffic(t testing.TB) *Traffic {
	t.Helper()
	file, err := os.Open("../../simulate/testdata/access.log.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	key, err := ParseKey("ip")
	if err != nil {
		t.Fatal(err)
	}
	traffic := NewTraffic(nil, key)
	if err := traffic.ReadLog("access.log.gz", file); err != nil {
		t.Fatal(err)
	}
	return traffic
}

// replayed replays a limit in the usual way, and counts what a suggestion claims.
func replayed(t *testing.T, traffic *Traffic, limit string) (refused int64, keys int, peak int64, refusedOf map[string]int64) {
	t.Helper()
	c, err := ParseCandidate(limit)
	if err != nil {
		t.Fatal(err)
	}
	report, err := traffic.Replay([]Candidate{c}, Options{Top: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	refusedOf = map[string]int64{}
	for _, k := range report.Limits[0].WorstKeys {
		refusedOf[k.Key] = k.Refused
	}
	admitted := newUnitsByWindow(time.Second)
	var now int64
	judge, err := tape.Of(c.Limits...)
	if err != nil {
		t.Fatal(err)
	}
	for id, key := range traffic.keys {
		for _, e := range traffic.of(id) {
			now = e.At
			if d, err := judge.Take(e.At, key, int64(e.Cost)); err == nil && d.Allowed {
				admitted.add(now, int64(e.Cost))
			}
		}
		if err := judge.Forget(key); err != nil {
			t.Fatal(err)
		}
	}
	return report.Limits[0].Refused, report.Limits[0].KeysRefused, admitted.less(unitsByWindow{}), refusedOf
}

// Every suggestion keeps its target and says what a replay finds. A burst smaller by one, or for a capacity larger by
// one, misses the target.
func TestSuggestionsJustMeetTheirTarget(t *testing.T) {
	for name, traffic := range map[string]*Traffic{"made up": skewedLog(t, 1500), "real": realTraffic(t)} {
		traffic.group()
		requests := float64(traffic.events.n)
		all := newSearch(traffic, Target{})
		sorted, capacity := all.totals, all.peak*3/4
		for _, test := range []struct {
			target string
			meets  func(refused int64, peak int64, of map[string]int64) bool
			next   int64
		}{
			{"refuse 0.1%", func(refused, _ int64, _ map[string]int64) bool { return float64(refused) <= 0.001*requests }, -1},
			{"refuse 5%", func(refused, _ int64, _ map[string]int64) bool { return float64(refused) <= 0.05*requests }, -1},
			{"spare 99%", func(_, _ int64, of map[string]int64) bool {
				for id, key := range traffic.keys {
					below := 0
					for _, total := range sorted {
						if total < sorted[id] {
							below++
						}
					}
					if float64(below) < 0.99*float64(len(sorted)) && of[key] > 0 {
						return false
					}
				}
				return true
			}, -1},
			{fmt.Sprintf("at most %d/s in all", capacity), func(_, peak int64, _ map[string]int64) bool { return peak <= capacity }, 1},
		} {
			if name == "real" && (test.target == "refuse 5%" || testing.Short()) {
				continue // the made-up log is enough
			}
			got, err := traffic.Suggest(mustTarget(t, test.target), nil)
			if err != nil || len(got.Limits) == 0 {
				t.Fatalf("%s, %s: %d suggestions, %v", name, test.target, len(got.Limits), err)
			}
			for _, s := range got.Limits {
				refused, keys, peak, of := replayed(t, traffic, s.Limit)
				if refused != s.Refused || keys != s.KeysRefused || peak != s.Peak {
					t.Errorf("%s, %s: %s claims %+v, and a replay finds %d refused of %d keys, peak %d", name, test.target, s.Limit, s, refused, keys, peak)
				}
				if !test.meets(refused, peak, of) {
					t.Errorf("%s, %s: %s misses the target: %+v", name, test.target, s.Limit, s)
				}
				if s.Number+test.next < 1 || s.Refused == 0 && test.next > 0 {
					continue
				}
				other := strings.Replace(s.Form, "N", fmt.Sprint(s.Number+test.next), 1)
				if refused, _, peak, of := replayed(t, traffic, other); test.meets(refused, peak, of) {
					t.Errorf("%s, %s: %s meets the target too, so %s is not the nearest", name, test.target, other, s.Limit)
				}
			}
			again, err := traffic.Suggest(mustTarget(t, test.target), nil)
			if err != nil || !reflect.DeepEqual(got, again) {
				t.Errorf("%s, %s: two searches differ", name, test.target)
			}
		}
	}
}

func TestNoTokenBucketBeatsAnother(t *testing.T) {
	got, err := realTraffic(t).Suggest(mustTarget(t, "refuse 0.1%"), nil)
	if err != nil || len(got.Limits) < 3 {
		t.Fatalf("%d suggestions, %v, want several", len(got.Limits), err)
	}
	for _, a := range got.Limits {
		for _, b := range got.Limits {
			if a.beats(b) && strings.HasPrefix(a.Form, "token") && strings.HasPrefix(b.Form, "token") {
				t.Errorf("%s beats %s", a.Limit, b.Limit)
			}
		}
	}
	for _, curve := range got.Curves {
		for i := range curve.Points[1:] {
			if curve.Points[i+1].Refused > curve.Points[i].Refused {
				t.Errorf("%s: a larger burst refuses more: %+v", curve.Form, curve.Points)
			}
		}
	}
}

func TestTargetsThatNeedNoLimitOrNone(t *testing.T) {
	traffic := skewedLog(t, 500)
	got, err := traffic.Suggest(mustTarget(t, "at most 1/d in all"), nil)
	if err != nil || len(got.Limits) != 0 {
		t.Errorf("%+v, %v: a limit for each key cannot keep to 1/d", got.Limits, err)
	}
	empty := NewTraffic(nil, mustKey(t, "ip"))
	if got, err := empty.Suggest(mustTarget(t, "refuse 1%"), nil); err != nil || len(got.Limits) != 0 {
		t.Errorf("an empty log: %+v, %v, want no suggestion", got, err)
	}
	one := NewTraffic(nil, mustKey(t, "ip"))
	if err := one.ReadLog("log", strings.NewReader(`{"ts":1,"ip":"10.0.0.1"}`)); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"refuse 1%", "spare 99%", "at most 5/s in all"} {
		if got, err := one.Suggest(mustTarget(t, target), nil); err != nil || len(got.Limits) != 1 || got.Limits[0].Number != 1 {
			t.Errorf("%s of one request: %+v, %v, want a burst of 1", target, got.Limits, err)
		}
	}
}

func TestBadTargetsPointAtTheWord(t *testing.T) {
	for text, at := range map[string]int{"": 0, "refuze 1%": 0, "refuse": 6, "refuse 1": 7, "refuse 101%": 7, "spare 99% of": 10, "protect 5/s": 0,
		"refuse 1% of": 12, "refuse 1% of users": 13, "refuse 1% of clients too": 21, "at": 2, "at least 5/s": 3, "at most 99%": 8, "at most 0/s": 8, "at most 5/s": 11, "at most 5/s in": 14, "at most 5/s in all.": 15, "refuse 0%": 7, "refuse 1e1%": 7} {
		_, err := ParseTarget(text)
		if syntax, ok := errors.AsType[*weir.SyntaxError](err); !ok || syntax.Offset != at {
			t.Errorf("%q: %v, want an error at %d", text, err, at)
		}
	}
}

// A limiter that is reset decides on the next key as a new one does, although the time jumps back.
func TestATrialBeginsAnewForEachKey(t *testing.T) {
	traffic := skewedLog(t, 2000)
	traffic.group()
	for _, text := range []string{"token bucket 2/m burst 3", "fixed window 3/m", "sliding window 5/h", "quota 3/day"} {
		limit, err := weir.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		eachKeyBeginsAnew(t, traffic, limit)
	}
}

func eachKeyBeginsAnew(t *testing.T, traffic *Traffic, limit weir.Limit) {
	t.Helper()
	try, err := newTrial(traffic, limit)
	if err != nil {
		t.Fatal(err)
	}
	for key := range traffic.keys {
		fresh, err := newTrial(traffic, limit)
		if err != nil {
			t.Fatal(err)
		}
		var want []bool
		fresh.key(key, func(d weir.Decision, _ Event) bool { want = append(want, d.Allowed); return true })
		at := 0
		try.key(key, func(d weir.Decision, _ Event) bool {
			if d.Allowed != want[at] {
				t.Fatalf("%v, key %d, event %d: %v, want %v", limit, key, at, d.Allowed, want[at])
			}
			at++
			return true
		})
	}
}

// BenchmarkSuggest searches a million events of 10,000 keys.
func BenchmarkSuggest(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 10, 9999)
	var log bytes.Buffer
	for n := range 1_000_000 {
		fmt.Fprintf(&log, `{"ts":%d,"who":"%d"}`+"\n", 1_500_000_000+n/100+random.IntN(60), zipf.Uint64())
	}
	key, err := ParseKey("who")
	if err != nil {
		b.Fatal(err)
	}
	traffic := NewTraffic(nil, key)
	if err := traffic.ReadLog("log", &log); err != nil {
		b.Fatal(err)
	}
	target, err := ParseTarget("refuse 0.1%")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got, err := traffic.Suggest(target, nil); err != nil || len(got.Limits) == 0 {
			b.Fatalf("%+v, %v", got, err)
		}
	}
	b.ReportMetric(float64(b.N)*1e6/b.Elapsed().Seconds(), "lines/s")
}

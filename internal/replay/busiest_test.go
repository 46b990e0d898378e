package replay_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/replay"
)

// The model counts every stretch that begins at an event.
func slowMost(events []slowEvent, length int64) map[string]int64 {
	most := map[string]int64{}
	for _, first := range events {
		n := int64(0)
		for _, e := range events {
			if e.key == first.key && e.second >= first.second && e.second < first.second+length {
				n++
			}
		}
		most[first.key] = max(most[first.key], n)
	}
	return most
}

func TestTheBusiestStretchOfEachKeyIsCountedExactly(t *testing.T) {
	for seed := range randtest.Seeds(t, 20, 5) {
		random := rand.New(rand.NewPCG(seed, 0))
		var log strings.Builder
		for range 1 + random.IntN(300) {
			second := random.IntN(200)
			fmt.Fprintf(&log, "10.0.0.%d - - [17/May/2015:10:%02d:%02d +0000] \"GET / HTTP/1.1\" 200 5\n", random.IntN(30)*random.IntN(3), second/60, second%60)
		}
		events := slowEvents(t, []byte(log.String()))
		report := replayOf(t, "ip", replay.Options{}, []byte(log.String()), "fixed window 5/10s")
		for _, got := range report.Busiest {
			most := slowMost(events, int64(got.Seconds))
			exceeding := func(units int64) (keys int) {
				for _, n := range most {
					if n > units {
						keys++
					}
				}
				return keys
			}
			for units := range got.Most + 2 {
				if n := got.Exceeding(units); n != exceeding(units) {
					t.Errorf("seed %d: %d keys exceed %d within %gs, want %d", seed, n, units, got.Seconds, exceeding(units))
				}
			}
			for _, p := range []struct {
				permille int
				got      int64
			}{{500, got.P50}, {900, got.P90}, {990, got.P99}, {999, got.P999}, {1000, got.Most}} {
				atMost := func(units int64) bool { return (len(most)-exceeding(units))*1000 >= p.permille*len(most) }
				if !atMost(p.got) || atMost(p.got-1) {
					t.Errorf("seed %d: %d of 1000 keys never exceed %d within %gs: not the smallest such number", seed, p.permille, p.got, got.Seconds)
				}
			}
		}
	}
}

func TestBusiestHasWindowsOfPeopleAndOfLimitsThatTheTrafficFills(t *testing.T) {
	log := `10.0.0.1 - - [17/May/2015:10:00:00 +0000] "GET / HTTP/1.1" 200 5
10.0.0.1 - - [17/May/2015:10:01:00 +0000] "GET / HTTP/1.1" 200 5
`
	report := replayOf(t, "ip", replay.Options{}, []byte(log), "fixed window 5/10s", "5/d")
	got, err := json.Marshal(report.Busiest)
	const want = `[{"seconds":1,"p50":1,"p90":1,"p99":1,"p999":1,"most":1},{"seconds":10,"p50":1,"p90":1,"p99":1,"p999":1,"most":1},` +
		`{"seconds":60,"p50":1,"p90":1,"p99":1,"p999":1,"most":1}]`
	if err != nil || string(got) != want {
		t.Errorf("busiest: %s, %v, want %s", got, err, want)
	}
}

// The timelines of the worst keys are their own: together they are those keys' figures.
func TestTimelinesShowTheWorstKeys(t *testing.T) {
	report := replayOf(t, "ip", replay.Options{Top: 20, Timelines: 6}, realLog(t), "fixed window 5/10s")
	limit := report.Limits[0]
	if len(limit.Timelines) != 6 {
		t.Fatalf("%d timelines, want 6", len(limit.Timelines))
	}
	for i, s := range limit.Timelines {
		var admitted, refused int64
		for j := range s.Offered {
			admitted, refused = admitted+s.Admitted[j], refused+s.Refused[j]
		}
		if key := limit.WorstKeys[i]; admitted != key.Admitted || refused != key.Refused || len(s.Offered) != len(limit.Series.Offered) {
			t.Errorf("the timeline of %+v has %d admitted and %d refused in %d steps", key, admitted, refused, len(s.Offered))
		}
	}
}

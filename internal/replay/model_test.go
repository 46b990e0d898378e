package replay_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/replay"
)

// The model of a replay: slow and simple, sharing no code with the package. Its times are whole seconds.

type slowEvent struct {
	key    string
	second int64
}

var slowHead = regexp.MustCompile(`^(\S+) \S+ \S+ \[([^]]+)\]`)

func slowEvents(t *testing.T, log []byte) []slowEvent {
	var events []slowEvent
	for line := range strings.Lines(string(log)) {
		m := slowHead.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("the model cannot read %q", line)
		}
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[2])
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, slowEvent{m[1], at.Unix()})
	}
	slices.SortStableFunc(events, func(a, b slowEvent) int { return cmp.Compare(a.second, b.second) })
	return events
}

// slowReplay decides the events of all keys in order of time.
func slowReplay(events []slowEvent, limit string, model func() func(second int64) bool) replay.LimitReport {
	models := map[string]func(int64) bool{}
	keys := map[string]*replay.KeyReport{}
	minutes := map[int64]*replay.MinuteReport{}
	report := replay.LimitReport{Limit: limit, WorstKeys: []replay.KeyReport{}, WorstMinutes: []replay.MinuteReport{}}
	for _, e := range events {
		if models[e.key] == nil {
			models[e.key], keys[e.key] = model(), &replay.KeyReport{Key: e.key}
		}
		if minutes[e.second/60] == nil {
			minutes[e.second/60] = &replay.MinuteReport{Minute: time.Unix(e.second/60*60, 0).UTC()}
		}
		if models[e.key](e.second) {
			report.Admitted++
			keys[e.key].Admitted++
			minutes[e.second/60].Admitted++
		} else {
			report.Refused++
			keys[e.key].Refused++
			minutes[e.second/60].Refused++
		}
	}
	for _, k := range keys {
		if k.Refused > 0 {
			report.WorstKeys = append(report.WorstKeys, *k)
		}
	}
	report.KeysRefused = len(report.WorstKeys)
	slices.SortFunc(report.WorstKeys, func(a, b replay.KeyReport) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), strings.Compare(a.Key, b.Key))
	})
	for _, m := range minutes {
		if m.Refused > 0 {
			report.WorstMinutes = append(report.WorstMinutes, *m)
		}
	}
	slices.SortFunc(report.WorstMinutes, func(a, b replay.MinuteReport) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), a.Minute.Compare(b.Minute))
	})
	return report
}

func slowBucket() func(int64) bool { return slowBucketOf(1, 1, 10)() }

// slowBucketOf counts credit: a token costs period, and each second adds rate.
func slowBucketOf(rate, period, burst int64) func() func(int64) bool {
	return func() func(int64) bool {
		credit, last := burst*period, int64(0)
		return func(second int64) bool {
			credit, last = min(burst*period, credit+(second-last)*rate), second
			if credit < period {
				return false
			}
			credit -= period
			return true
		}
	}
}

func slowFixed(limit, period int64) func() func(int64) bool {
	return func() func(int64) bool {
		counts := map[int64]int64{}
		return func(second int64) bool {
			if counts[second/period] == limit {
				return false
			}
			counts[second/period]++
			return true
		}
	}
}

// slowWindow weighs the count of the previous window by the part of it that is left.
func slowWindow(limit, period int64) func() func(int64) bool {
	return func() func(int64) bool {
		counts := map[int64]int64{}
		return func(second int64) bool {
			window := second / period
			left := period - second%period
			if counts[window-1]*left+(counts[window]+1)*period > limit*period {
				return false
			}
			counts[window]++
			return true
		}
	}
}

package replay

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/tape"
)

// family is limits of one form, which differ in a number: the burst of a token bucket, or the count of a window. The
// used units of a key do not depend on the number, as long as the same requests are admitted. A request is admitted if
// its cost fits beside the used units.
type family struct {
	form   string // with N for the number
	most   int64  // the largest valid number
	limit  func(n int64) weir.Limit
	within func(n int64, d time.Duration) int64 // the most that one key may take within any such time
}

func (f family) text(n int64) string { return fmt.Sprint(f.limit(n)) }

func bucketFamily(rate weir.Rate) family {
	return family{
		form: fmt.Sprintf("token bucket %s burst N", rate), most: weir.MaxCount,
		limit:  func(n int64) weir.Limit { return weir.TokenBucket{Rate: rate, Burst: n} },
		within: func(n int64, d time.Duration) int64 { return n + tape.UnitsIn(rate, d) },
	}
}

// fixedFamily counts in windows of a period. A time that begins before a boundary meets a window more.
func fixedFamily(period time.Duration) family {
	return windowFamily(period, func(n int64) weir.Limit { return weir.FixedWindow{Rate: weir.Per(n, period)} }, func(n int64, d time.Duration) int64 {
		return n * windowsIn(period, d)
	})
}

// slidingFamily also counts a part of the window before. Within a period a key may take the count just before a boundary,
// and then what fades of it.
func slidingFamily(period time.Duration) family {
	return windowFamily(period, func(n int64) weir.Limit { return weir.SlidingWindow{Rate: weir.Per(n, period)} }, func(n int64, d time.Duration) int64 {
		if d <= period {
			return n + tape.UnitsIn(weir.Per(n, period), d-1)
		}
		return n * windowsIn(period, d)
	})
}

func quotaFamily() family {
	return windowFamily(day, func(n int64) weir.Limit { return weir.Quota{Count: n, Unit: weir.Day} }, func(n int64, d time.Duration) int64 {
		return n * windowsIn(day, d)
	})
}

const day = 24 * time.Hour

func windowFamily(period time.Duration, limit func(n int64) weir.Limit, within func(n int64, d time.Duration) int64) family {
	form := strings.Replace(fmt.Sprint(limit(1)), " 1/", " N/", 1)
	return family{form: form, most: min(weir.MaxCount, int64(period)), limit: limit, within: within}
}

// windowsIn returns how many windows a time can meet.
func windowsIn(period, d time.Duration) int64 { return int64((d+period-1)/period) + 1 }

// mostRates bounds the rates of token buckets in a search.
const mostRates = 7

// buckets returns token buckets of round rates: from the mean rate of the busiest key to that of its busiest second.
func (s *search) buckets() []family {
	if len(s.totals) == 0 {
		return nil
	}
	low := float64(s.largest) / math.Max(float64(tape.Since(s.traffic.first, s.traffic.last)), float64(time.Second))
	high := math.Max(float64(s.mostOfAKey())/float64(time.Second), low)
	var all []family
	for _, rate := range roundRates() {
		if r := tape.PerNano(rate); r >= low/2 && r <= high*2 {
			all = append(all, bucketFamily(rate))
		}
	}
	if len(all) <= mostRates {
		return all
	}
	some := make([]family, mostRates)
	for i := range some {
		some[i] = all[i*(len(all)-1)/(mostRates-1)]
	}
	return some
}

// windowLengths are those of the windows that are tried, the last one as a quota of the calendar.
var windowLengths = []struct {
	length time.Duration
	name   string
}{{time.Minute, "a minute"}, {time.Hour, "an hour"}, {day, "a day"}}

// windows returns the limits that count in windows no longer than the log, because a longer one would count only a part,
// and the names of the other windows.
func (s *search) windows() (all []family, leftOut []string) {
	for _, w := range windowLengths {
		switch {
		case s.span() < uint64(w.length):
			leftOut = append(leftOut, w.name)
		case w.length == day:
			all = append(all, quotaFamily())
		default:
			all = append(all, fixedFamily(w.length), slidingFamily(w.length))
		}
	}
	return all, leftOut
}

// span returns the time from the first event to the last.
func (s *search) span() uint64 { return tape.Since(s.traffic.first, s.traffic.last) }

// mostOfAKey returns the most units of one key within any second.
func (s *search) mostOfAKey() (most int64) {
	for key := range s.totals {
		most = max(most, mostWithinAny(time.Second, s.traffic.of(key)))
	}
	return most
}

// roundRates are 1, 2 and 5 times powers of ten in an hour, a minute and a second, without equal ones.
func roundRates() (rates []weir.Rate) {
	for _, n := range []int64{1, 2, 5, 10, 20, 30} {
		rates = append(rates, weir.PerDay(n))
	}
	for _, n := range []int64{2, 5, 10, 20, 30} {
		rates = append(rates, weir.PerHour(n))
	}
	for _, n := range []int64{1, 2, 5, 10, 20, 30} {
		rates = append(rates, weir.PerMinute(n))
	}
	for unit := int64(1); unit <= 1e8; unit *= 10 {
		for _, n := range []int64{1, 2, 5} {
			rates = append(rates, weir.PerSecond(n*unit))
		}
	}
	return rates
}

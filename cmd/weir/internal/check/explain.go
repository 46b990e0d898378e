package check

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// explanation describes a limit in plain words.
type explanation struct{ capacity, burst, worst, memory string }

// Memory of a key, as docs/memory.md gives it.
const (
	wordMemory  = "20 to 28 bytes a key while it is not idle; 29 to 40 at rates of fine fractions, such as 11/s."
	cycleMemory = "20 to 28 bytes a key while it is not idle; 55 to 110 if keys of one rule have different numbers of permits."
	cellMemory  = "55 to 110 bytes a key while it is not idle."
	aloneMemory = "One limiter in process for each subject. Rules cannot hold it."
)

func explanationOf(limit weir.Limit) explanation {
	switch l := limit.(type) {
	case weir.TokenBucket:
		return explanation{
			capacity: capacityOf(burstOf(l)),
			burst:    fmt.Sprintf("After a pause %s at once, then one every %s.", goAhead(burstOf(l)), spacing(l.Rate)),
			worst:    worstOf(l, l.Rate) + fmt.Sprintf(" %s + %s × T within any stretch T.", cli.Thousands(burstOf(l)), l.Rate),
			memory:   wordMemory,
		}
	case weir.LeakyBucket:
		return explanation{
			capacity: capacityOf(l.Queue + 1),
			burst: fmt.Sprintf("After a pause %s at once. Up to %s are delayed, one every %s. It refuses more than that.",
				goAhead(1+min(l.NoDelay, l.Queue)), cli.Plural(max(0, l.Queue-l.NoDelay), "further request"), spacing(l.Rate)),
			worst:  worstOf(l, l.Rate) + " This holds for callers that obey their delay.",
			memory: wordMemory,
		}
	case weir.FixedWindow:
		return explanation{
			capacity: capacityOf(l.Rate.Count),
			burst:    fmt.Sprintf("%s at once, then none until the next window. Windows begin at whole multiples of %s since 1970, in UTC.", upTo(goAhead(l.Rate.Count)), periodOf(l.Rate)),
			worst:    worstOf(l, l.Rate) + " Half of them come at the end of a window, the others at the start of the next.",
			memory:   wordMemory,
		}
	case weir.SlidingWindow:
		return explanation{
			capacity: capacityOf(l.Rate.Count),
			burst:    fmt.Sprintf("After a pause %s at once. The next window admits more as the count of this one fades.", goAhead(l.Rate.Count)),
			worst:    worstOf(l, l.Rate) + " That needs a burst at the very end of a window. Steady pressure gets one less than the count.",
			memory:   wordMemory,
		}
	}
	return exactExplanation(limit)
}

// exactExplanation explains the limits that remember single units or cycles.
func exactExplanation(limit weir.Limit) explanation {
	switch l := limit.(type) {
	case weir.SlidingLog:
		burst := fmt.Sprintf("After a pause %s at once. A unit counts for %s after it was taken.", goAhead(l.Rate.Count), periodOf(l.Rate))
		if l.Gap > 0 {
			burst = fmt.Sprintf("None: attempts must be at least %s apart. A unit counts for %s after it was taken.", cli.Duration(l.Gap), periodOf(l.Rate))
		}
		if l.CountDenied {
			burst += " Refused attempts count too, so a caller that keeps retrying is never admitted."
		}
		return explanation{capacityOf(l.Rate.Count), burst, worstOf(l, l.Rate), logMemory(l.Rate.Count, 1)}
	case weir.RateGate:
		return explanation{
			capacity: capacityOf(l.Rate.Count),
			burst:    fmt.Sprintf("After a pause %s at once. A unit counts for %s after it was taken.", goAhead(l.Rate.Count), periodOf(l.Rate)),
			worst:    worstOf(l, l.Rate),
			memory:   logMemory(l.Rate.Count, 3),
		}
	case weir.Cycle:
		return explanation{
			capacity: capacityOf(l.Rate.Count),
			burst:    fmt.Sprintf("%s at once, then none until the next cycle of %s. Unused units are lost.", upTo(goAhead(l.Rate.Count)), periodOf(l.Rate)),
			worst:    worstOf(l, l.Rate) + " Half of them come at the end of a cycle, the others at the start of the next.",
			memory:   cycleMemory,
		}
	case weir.Concurrency:
		back := "A slot comes back when its holder releases it. A holder that dies keeps it permanently."
		if l.Lease > 0 {
			back = fmt.Sprintf("A slot comes back when its holder releases it, or after %s.", cli.Duration(l.Lease))
		}
		return explanation{
			capacity: capacityOf(l.Slots),
			burst:    fmt.Sprintf("%s at once. %s", upTo(goAhead(l.Slots)), back),
			worst:    fmt.Sprintf("%s held at any instant. It limits no rate: short requests pass as fast as they end.", cli.Plural(l.Slots, "slot")),
			memory:   fmt.Sprintf("%s Each holder adds a lease.", cellMemory),
		}
	}
	return otherExplanation(limit)
}

// otherExplanation explains the dialects of other systems and the limits without a rate.
func otherExplanation(limit weir.Limit) explanation {
	switch l := limit.(type) {
	case weir.Bursty:
		return explanation{
			capacity: "Any cost: it goes ahead at once, and the next request waits until it is paid for.",
			burst:    fmt.Sprintf("A pause stores the permits of up to %s. They and one more go ahead at once, then one every %s.", cli.Duration(l.Over), spacing(l.Rate)),
			worst:    worstOf(l, l.Rate) + " This holds for a cost of 1.",
			memory:   aloneMemory,
		}
	case weir.WarmUp:
		return explanation{
			capacity: "Any cost: it goes ahead at once, and the next request waits until it is paid for.",
			burst:    fmt.Sprintf("None. After a pause requests are further apart, and reach one every %s in %s.", spacing(l.Rate), cli.Duration(l.Over)),
			worst:    worstOf(l, l.Rate) + " This holds for a cost of 1.",
			memory:   aloneMemory,
		}
	case weir.NginxLimitReq:
		return explanation{
			capacity: "1: nginx counts requests. It holds " + cli.Plural(l.Burst, "request") + " in excess of the rate.",
			burst:    fmt.Sprintf("After a pause %s at once. It delays up to %s and refuses more.", goAhead(1+nginxUndelayed(l)), cli.Plural(l.Burst-nginxUndelayed(l), "further request")),
			worst:    worstOf(l, l.Rate) + " nginx reads the time in whole milliseconds, which admits one more.",
			memory:   "A Limiter or a Keyed in process holds it. Rules cannot.",
		}
	case weir.DenyAll:
		return explanation{"0: no cost is admitted.", "It refuses every request.", "0.", "None."}
	case weir.Unlimited:
		return explanation{"2^53 units.", "Every request goes ahead.", "None: it has no bound.", "None."}
	}
	return explanation{} // TestCheckExplainsEveryLimit names the limit
}

// worstOf tells the most that goes ahead within any stretch of one period.
func worstOf(limit weir.Limit, r weir.Rate) string {
	return fmt.Sprintf("%s within any %s.", cli.Thousands(worstCount(limit)), periodOf(r))
}

// worstCount returns the largest number of requests of cost 1 that go ahead within any stretch of one period. The end
// of a stretch is not part of it. TestTheWorstCaseIsReachedAndNeverExceeded checks every one.
func worstCount(limit weir.Limit) int64 {
	switch l := limit.(type) {
	case weir.TokenBucket:
		return burstOf(l) + l.Rate.Count - 1
	case weir.LeakyBucket:
		return min(l.NoDelay, l.Queue) + l.Rate.Count
	case weir.FixedWindow:
		return 2 * l.Rate.Count
	case weir.SlidingWindow:
		return 2*l.Rate.Count - 1
	case weir.SlidingLog:
		if l.Gap > 0 {
			return min(l.Rate.Count, int64((l.Rate.Period-1)/l.Gap)+1)
		}
		return l.Rate.Count
	case weir.RateGate:
		return l.Rate.Count
	case weir.Cycle:
		return 2 * l.Rate.Count
	case weir.Bursty:
		return int64(float64(l.Rate.Count)*l.Over.Seconds()/l.Rate.Period.Seconds()) + l.Rate.Count
	case weir.WarmUp:
		return l.Rate.Count
	case weir.NginxLimitReq:
		return nginxUndelayed(l) + l.Rate.Count + 1 // a stretch of 1000 ms touches 1001 whole milliseconds
	}
	return 0
}

// burstOf returns the burst of a token bucket, which defaults to the count of its rate.
func burstOf(l weir.TokenBucket) int64 { return cmp.Or(l.Burst, l.Rate.Count) }

// nginxUndelayed returns the number of requests in excess that pass without a delay.
func nginxUndelayed(l weir.NginxLimitReq) int64 {
	if l.NoDelay {
		return l.Burst
	}
	return min(l.Delay, l.Burst)
}

func capacityOf(n int64) string {
	return cli.Thousands(n) + ": the largest cost that a fresh key admits. A larger cost is never admitted."
}

func goAhead(n int64) string {
	if n == 1 {
		return "1 request goes ahead"
	}
	return cli.Plural(n, "request") + " go ahead"
}

func upTo(text string) string { return "Up to " + text }

// logMemory describes a key that keeps up to times n entries.
func logMemory(n, times int64) string {
	return fmt.Sprintf("%s Entries add up to %s.", cellMemory, size(16*times*n))
}

// size formats a number of bytes.
func size(bytes int64) string {
	switch {
	case bytes < 10<<10:
		return cli.Plural(bytes, "byte")
	case bytes < 10<<20:
		return cli.Thousands(bytes>>10) + " KiB"
	}
	return cli.Thousands(bytes>>20) + " MiB"
}

// spacing returns the time between two units at the rate.
func spacing(r weir.Rate) string {
	each := r.Period / time.Duration(r.Count)
	if r.Period%time.Duration(r.Count) != 0 {
		return "about " + cli.Duration(each)
	}
	return cli.Duration(each)
}

// periodOf returns the period of a rate as text: 1s, 10s, 1d.
func periodOf(r weir.Rate) string {
	_, period, _ := strings.Cut(r.String(), "/")
	if period[0] >= '0' && period[0] <= '9' {
		return period
	}
	return "1" + period
}

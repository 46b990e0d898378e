// Package explain describes limits in plain words.
package explain

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// Explanation describes a limit. Its texts are sentences.
type Explanation struct {
	Capacity string // the largest cost that it admits
	Burst    string // what goes ahead at once, and how units come back
	Worst    string // the most that goes ahead within any stretch of its period
	Memory   string // of a key
}

// Memory of a key, as docs/reference/memory.md gives it.
const (
	wordMemory = "20 to 28 bytes a key while it is not idle; 29 to 40 at rates of fine fractions, such as 11/s."
	cellMemory = "92 to 112 bytes a key while it is not idle."
	// of a first window whose word has no room for its count
	firstMemory = "20 to 28 bytes a key while its window is open; 92 to 112 once it has used more than 1,023 units."
	mostInFirst = 1023
)

// Of explains a limit.
func Of(limit weir.Limit) Explanation {
	if ban, ok := limit.(weir.Ban); ok {
		return ofBan(ban)
	}
	d := weir.Describe(limit)
	return Explanation{Capacity: capacityOf(&d), Burst: burstOf(&d), Worst: worstOf(&d), Memory: memoryOf(&d)}
}

// Together are sentences about several limits on one key.
var Together = []string{
	"A request is admitted only if every limit admits it, and otherwise takes nothing from any.",
	"Each worst case holds. The memory adds up.",
}

// After says how a rule charges after the work. One cost counts at most most units, if most is above 0.
func After(most int64) string {
	counts := "10 times the capacity"
	if most > 0 {
		counts = strconv.FormatInt(most, 10)
	}
	return "charged after the work: a cost that does not fit leaves a debt, and one cost counts at most " + counts
}

// ofBan explains a ban, which has no units.
func ofBan(b weir.Ban) Explanation {
	longest := max(b.For, b.UpTo)
	refused := fmt.Sprintf("A key that the other limits refuse %s within %s is out for %s", plain.Plural(b.After, "time"), plain.Duration(b.Within), plain.Duration(b.For))
	switch {
	case longest == b.For:
		refused += ", each time."
	case longest/2 < b.For:
		refused += fmt.Sprintf(", and each time after that for %s.", plain.Duration(longest))
	case longest/4 < b.For:
		refused += fmt.Sprintf(", the next time for %s, and then for %s.", plain.Duration(2*b.For), plain.Duration(longest))
	default:
		refused += fmt.Sprintf(", the next time for %s, then for %s, and so on up to %s.", plain.Duration(2*b.For), plain.Duration(4*b.For), plain.Duration(longest))
	}
	strikes := max(b.After-1, 0)
	return Explanation{
		Capacity: "It has no units: until a ban begins, it admits everything.",
		Burst: refused + fmt.Sprintf(" Requests during a ban are refused and do not extend it. After %s without a ban a key begins anew. ", plain.Duration(longest)) +
			weir.Describe(b).Note,
		Worst:  "None: it only refuses.",
		Memory: fmt.Sprintf("None for a key that is not refused. Up to 200 bytes a key during and after a ban, and 8 more for each of up to %s below one.", plain.Plural(strikes, "refusal")),
	}
}

func capacityOf(d *weir.Description) string {
	switch {
	case d.Owes:
		return "Any cost: it goes ahead at once, and the next request waits until it is paid for."
	case d.Stateless && d.Capacity > 0:
		return plain.Thousands(d.Capacity) + " units."
	case d.Capacity == 0:
		return "0: no cost is admitted."
	}
	return plain.Thousands(d.Capacity) + ": the largest cost that a fresh key admits. A larger cost is never admitted."
}

// burstOf describes the units that go ahead at once, and how units come back.
func burstOf(d *weir.Description) string {
	var first, more, back string
	switch {
	case d.Stateless && d.Capacity > 0:
		return "Every request goes ahead."
	case d.Capacity == 0:
		return "It refuses every request."
	case d.Gap > 0:
		first = "None: attempts must be at least " + plain.Duration(d.Gap) + " apart."
	default:
		first = "After a pause " + goAhead(d.Burst) + " at once."
	}
	if d.Delay > 0 {
		more = fmt.Sprintf(" Up to %s are delayed. It refuses more than that.", plain.Plural(d.Capacity-d.Burst, "further request"))
	}
	back = " Units come back " + d.RefillText
	switch {
	case d.Refill == weir.RefillRate:
		back += ", every " + spacing(d.Rate)
	case d.Rate.Count > 0:
		back += "; the period is " + periodOf(d.Rate)
	case d.Lease > 0:
		back += ", or after " + plain.Duration(d.Lease)
	}
	return withNote(first+more+back+".", d.Note)
}

func withNote(text, note string) string {
	if note == "" {
		return text
	}
	return text + " " + note
}

// worstOf tells the most that goes ahead within any stretch of one period. TestTheWorstCaseIsReachedAndNeverExceeded
// checks the number.
func worstOf(d *weir.Description) string {
	switch {
	case d.Held:
		return fmt.Sprintf("%s held at any instant. It limits no rate: short requests pass as fast as they end.", plain.Plural(d.Capacity, "slot"))
	case d.Rate.Count > 0:
		text := fmt.Sprintf("%s in any %s.", plain.Thousands(d.Worst), anyPeriod(d.Rate))
		switch {
		case d.Owes:
			text += " This holds for a cost of 1."
		case d.Delays:
			text += " This holds for callers that obey their delay."
		case d.Refill == weir.RefillRate:
			text = steady(d)
		}
		return text
	case d.Capacity == 0:
		return "0."
	case !d.Stateless: // windows of the calendar
		return fmt.Sprintf("%s in each window, and up to %s within a short time around a boundary.", plain.Thousands(d.Capacity), plain.Thousands(2*d.Capacity))
	}
	return "None: it has no bound."
}

// MostWithin returns the most that a steady refill lets ahead within any stretch of a length, its end included: the
// burst, and the units that come back in that time.
func MostWithin(d *weir.Description, length time.Duration) int64 {
	high, low := bits.Mul64(uint64(d.Rate.Count), uint64(length))
	if high >= uint64(d.Rate.Period) {
		return math.MaxInt64
	}
	back, _ := bits.Div64(high, low, uint64(d.Rate.Period))
	return int64(min(back, uint64(math.MaxInt64-d.Burst))) + d.Burst
}

// lengths are those that people think in.
var lengths = []struct {
	name   string
	length time.Duration
}{{"second", time.Second}, {"minute", time.Minute}, {"hour", time.Hour}, {"day", 24 * time.Hour}}

// anyPeriod returns the period of a rate as people say it after "any": minute, 10s.
func anyPeriod(r weir.Rate) string {
	for _, l := range lengths {
		if l.length == r.Period {
			return l.name
		}
	}
	return periodOf(r)
}

// steady tells the most of a steady refill in two lengths that people think in, from its period on.
func steady(d *weir.Description) string {
	var said []string
	for _, l := range lengths {
		if l.length >= d.Rate.Period && len(said) < 2 {
			said = append(said, fmt.Sprintf("%s in any %s", plain.Thousands(MostWithin(d, l.length)), l.name))
		}
	}
	if len(said) == 0 {
		return fmt.Sprintf("%s in any %s.", plain.Thousands(MostWithin(d, d.Rate.Period)), anyPeriod(d.Rate))
	}
	return strings.Join(said, ", ") + "."
}

func memoryOf(d *weir.Description) string {
	switch {
	case d.Stateless:
		return "None."
	case !d.InRules:
		return "That of one limiter in process. Rules cannot hold it."
	case d.Entries > 0:
		return fmt.Sprintf("%s Entries add up to %s.", cellMemory, size(16*d.Entries))
	case d.Held:
		return cellMemory + " Each holder adds a lease."
	case d.FromFirstUse && d.Capacity > mostInFirst:
		return firstMemory
	}
	return wordMemory
}

func goAhead(n int64) string {
	if n == 1 {
		return "1 request goes ahead"
	}
	return plain.Plural(n, "request") + " go ahead"
}

// size formats a number of bytes.
func size(bytes int64) string {
	switch {
	case bytes < 10<<10:
		return plain.Plural(bytes, "byte")
	case bytes < 10<<20:
		return plain.Thousands(bytes>>10) + " KiB"
	}
	return plain.Thousands(bytes>>20) + " MiB"
}

// spacing returns the time between two units at the rate.
func spacing(r weir.Rate) string {
	each := r.Period / time.Duration(r.Count)
	if r.Period%time.Duration(r.Count) != 0 {
		return "about " + plain.Duration(each)
	}
	return plain.Duration(each)
}

// periodOf returns the period of a rate as text: 1s, 10s, 1d.
func periodOf(r weir.Rate) string {
	_, period, _ := strings.Cut(r.String(), "/")
	if period[0] >= '0' && period[0] <= '9' {
		return period
	}
	return "1" + period
}

package weir

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/duration"
)

// Ban refuses a key for a while after other limits of its rule have refused it After times Within a time: fail2ban's
// bantime.increment, beside the limit that it guards. The first ban lasts For, and each further one twice as long as the one
// before, up to UpTo. A key that has not been banned for UpTo starts over.
//
// A Ban stands beside other limits of a rule, never alone, and at most once. It admits everything until it begins. Then
// it refuses every cost. Attempts during a ban do not extend it. Each Take that another limit of the rule refuses
// counts, parallel ones as well: one burst of an honest client can be After refusals at once. A Peek, a Record, a
// Return, a cost that can never be admitted and a caller that waits for its turn do not count. Callers that share a key
// share its ban.
type Ban struct {
	After  int64         // refusals that begin a ban, 1 to MaxStrikes
	Within time.Duration // the time in which they count, 1ns to MaxPeriod
	For    time.Duration // the first ban, 1ns to MaxPeriod
	UpTo   time.Duration // the longest ban, For to MaxPeriod. Default: For, so that bans do not grow
}

// MaxStrikes is the largest number of refusals that begin a [Ban].
const MaxStrikes = algorithm.MaxStrikes

func (l Ban) validate() error {
	text := l.String()
	return joinErrors(nil,
		checkCount(text, "after", l.After, 1, MaxStrikes),
		checkDuration(text, "within", l.Within, 1, MaxPeriod),
		checkDuration(text, "for", l.For, 1, MaxPeriod),
		l.checkUpTo(text))
}

func (l Ban) checkUpTo(text string) error {
	if l.UpTo == 0 {
		return nil
	}
	return checkDuration(text, "up to", l.UpTo, min(max(l.For, 1), MaxPeriod), MaxPeriod)
}

// longest returns the longest ban.
func (l Ban) longest() time.Duration { return max(l.For, l.UpTo) }

// String prints the limit as text: ban 1m up to 24h after 5/10m.
func (l Ban) String() string {
	upTo := ""
	if l.UpTo != l.For {
		upTo = durationText(" up to ", l.UpTo)
	}
	return fmt.Sprintf("ban %s%s after %s", duration.Text(l.For), upTo, Rate{l.After, l.Within})
}

// MarshalText returns the text of String.
func (l Ban) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l Ban) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewBan(l.After, max(t.count("within", l.Within), 1), max(t.count("for", l.For), 1), t.count("up to", l.longest()))
}

var banKind = kind{
	name:   "ban",
	read:   (*scanner).ban,
	revive: func(string, int64) Limit { return Ban{After: 1, Within: time.Second, For: time.Second} },
}

func (Ban) kind() *kind    { return &banKind }
func (Ban) window() string { return "" }

func (l Ban) describe() Description {
	return Description{
		Burst: MaxCount, Reset: max(2*l.longest(), l.Within), Entries: l.After / 2, Strikes: l.After, Bans: true,
		Refill: RefillBan, RefillText: "when the ban ends",
		Note: "Callers that share a key share its ban. Parallel requests of one caller can all be refused at once, and each of them counts.",
	}
}

func (l Ban) share(shares) Limit { return l }

func (s *scanner) ban() (_ Limit, err error) {
	l := Ban{}
	if l.For, err = s.duration(); err != nil {
		return nil, err
	}
	if s.Accept("up") {
		if !s.Accept("to") {
			return nil, s.unexpected(strconv.Quote("to"))
		}
		if l.UpTo, err = s.duration(); err != nil {
			return nil, err
		}
	}
	if !s.Accept("after") {
		return nil, s.unexpected("after 5/10m, the refusals that begin it")
	}
	strikes, err := s.rate()
	l.After, l.Within = strikes.Count, strikes.Period
	return l, err
}

// refuseAlone refuses a limit that only guards others: a Limiter has one limit.
func refuseAlone(l Limit) error {
	if _, ok := l.(Ban); ok {
		return &LimitError{Limit: l.String(), Field: "limit", Code: CodeBan, Reason: "cannot stand alone; put it beside the limit whose refusals it counts, in a rule"}
	}
	return nil
}

// checkBans refuses a rule of a ban without other limits, or with another ban.
func checkBans(name string, limits []Limit) *LimitError {
	bans := 0
	for _, l := range limits {
		if _, ok := l.(Ban); ok {
			bans++
		}
	}
	switch {
	case bans > 1:
		return ruleError(name, "limits", CodeBan, fmt.Sprintf("have %d bans; a rule has at most one", bans))
	case bans > 0 && len(limits) == 1:
		return ruleError(name, "limits", CodeBan, "are a ban alone; put the limit before it whose refusals it counts: 5/m and "+limits[0].String())
	}
	return nil
}

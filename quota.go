package weir

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/calendar"
	"github.com/weirflow/weir/internal/duration"
)

// Quota counts up to Count units in each day, week, month, quarter or year of a place, like bills and plans. A month has
// 28 to 31 days, and a day with a change to summer time has 23 hours: [FixedWindow] has periods of one length.
//
// A window begins at the earliest instant when clocks of the zone read its wall time or later. So 02:30 on the day on
// which clocks skip it counts from the jump, and where 02:30 comes twice, the first one counts. Around the end of a window up to
// twice the count can pass within a short time.
//
// A limit with another Count, Zone, Month, Day or At takes over what still counts in its own window. Another Unit has states of
// its own.
//
// A program needs zone data for every zone but UTC: the system's, or the package time/tzdata.
type Quota struct {
	Count int64 // 1 to MaxCount
	Unit  CalendarUnit
	// Zone is the IANA name of the zone, such as Europe/Paris. Default: UTC.
	Zone string
	// Month is the month in which a year begins. Default: January. Other units have none.
	Month time.Month
	// Day is the day that a window begins on. For weeks it is 1 (Monday) to 7. For months, quarters (in their first month)
	// and years (in Month) it is 1 to 31, or the last day of a shorter month. Default: 1. A day has none.
	Day int
	// At is the wall time when a window begins, in whole minutes after midnight. Default: midnight.
	At time.Duration
}

// CalendarUnit is the length of the windows of a Quota.
type CalendarUnit uint8

// The units of a Quota. Quarters begin in January, April, July and October.
const (
	Day CalendarUnit = iota + 1
	Week
	Month
	Quarter
	Year
)

var calendarUnits = []string{Day: "day", Week: "week", Month: "month", Quarter: "quarter", Year: "year"}

// String returns the name of the unit: day, week, month, quarter or year.
func (u CalendarUnit) String() string {
	if u < Day || u > Year {
		return "unit " + strconv.Itoa(int(u))
	}
	return calendarUnits[u]
}

// unitNamed returns the unit of a name, or 0.
func unitNamed(name string) CalendarUnit {
	for u := Day; u <= Year; u++ {
		if calendarUnits[u] == name {
			return u
		}
	}
	return 0
}

func (l Quota) validate() error {
	text := l.String()
	problems := []error{checkCount(text, "count", l.Count, 1, MaxCount)}
	bad := func(field, reason string, values ...any) {
		problems = append(problems, &LimitError{Limit: text, Field: field, Code: CodeBounds, Reason: fmt.Sprintf(reason, values...)})
	}
	switch {
	case l.Unit < Day || l.Unit > Year:
		bad("unit", "%d is not that of a day, a week, a month, a quarter or a year", l.Unit)
	case l.Month != 0 && l.Unit != Year:
		bad("month", "%d cannot be given for a %s", l.Month, l.Unit)
	case l.Month < 0 || l.Month > 12:
		bad("month", "%d is not within 1 and 12", l.Month)
	case l.Day != 0 && l.Unit == Day:
		bad("day", "%d cannot be given for a day", l.Day)
	case l.Day < 0 || l.Day > l.mostDay():
		bad("day", "%d is not within 1 and %d", l.Day, l.mostDay())
	}
	if l.At < 0 || l.At >= 24*time.Hour || l.At%time.Minute != 0 {
		bad("at", "%s is not in whole minutes from 00:00 to 23:59", duration.Text(l.At))
	}
	if _, err := calendar.Zone(l.Zone); err != nil {
		bad("zone", "%v", err)
	}
	return joinErrors(problems)
}

// mostDay returns the last day on which a window can begin.
func (l Quota) mostDay() int {
	switch {
	case l.Unit == Week:
		return 7
	case l.Unit < Year:
		return 31
	}
	return time.Date(2000, max(l.Month, 1)+1, 0, 0, 0, 0, 0, time.UTC).Day() // a leap year
}

// String prints the limit as text, without defaults: quota 1000000/month from day 15 in Europe/Paris.
func (l Quota) String() string {
	text := fmt.Sprintf("quota %d/%s", l.Count, l.Unit) + l.fromText()
	if l.At != 0 {
		text += " at " + l.atText()
	}
	if l.Zone != "" && l.Zone != "UTC" {
		text += " in " + l.Zone
	}
	return text
}

func (l Quota) fromText() string {
	day := max(l.Day, 1)
	switch {
	case l.Unit == Year && (l.Month > 1 || day > 1):
		return fmt.Sprintf(" from %s %d", strings.ToLower(max(l.Month, 1).String()), day)
	case day == 1:
		return ""
	case l.Unit == Week && day <= 7:
		return " from " + weekdays[day]
	}
	return fmt.Sprintf(" from day %d", day)
}

func (l Quota) atText() string {
	if l.At < 0 || l.At%time.Minute != 0 {
		return duration.Text(l.At)
	}
	return fmt.Sprintf("%02d:%02d", l.At/time.Hour, l.At%time.Hour/time.Minute)
}

// MarshalText returns the text of String.
func (l Quota) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l Quota) algorithm(t *ticks) algorithm.Algorithm {
	return algorithm.NewQuota(l.Count, max(t.count("unit", time.Second), 1), l.calendar())
}

// calendar returns the windows of a valid limit.
func (l Quota) calendar() calendar.Calendar {
	zone, _ := calendar.Zone(l.Zone)
	return calendar.Calendar{
		Unit: calendar.Unit(l.Unit), Zone: zone, Month: max(int(l.Month), 1), Day: max(l.Day, 1), At: int64(l.At / time.Second),
	}
}

var quotaKind = kind{
	name:   "quota",
	read:   (*scanner).quota,
	revive: func(window string, capacity int64) Limit { return Quota{Count: capacity, Unit: unitNamed(window)} },
}

func (Quota) kind() *kind      { return &quotaKind }
func (l Quota) window() string { return l.Unit.String() }

func (l Quota) describe() Description {
	place := l.Zone
	if place == "" {
		place = "UTC"
	}
	return Description{
		Burst: l.Count, Reset: time.Duration(calendar.Unit(l.Unit).Longest()) * time.Second, Calendar: l.Unit,
		Refill: RefillWindow, RefillText: "all at once when the next " + l.Unit.String() + " begins, in " + place, Note: boundaryNote,
	}
}

func (l Quota) share(s shares) Limit {
	l.Count = s.part(l.Count)
	return l
}

// CalendarWindow returns the window of a Quota that holds an instant, as times in its zone. The window ends just before
// end. ok is false for other limits, and for instants more than 500,000 years away.
func (EngineKit) CalendarWindow(l Limit, t time.Time) (start, end time.Time, ok bool) {
	q, ok := l.(Quota)
	if !ok || q.validate() != nil {
		return start, end, false
	}
	c := q.calendar()
	first, next := c.Window(t.Unix())
	return time.Unix(first, 0).In(c.Zone), time.Unix(next, 0).In(c.Zone), first <= t.Unix() && t.Unix() < next
}

var weekdays = []string{1: "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// quota reads N/UNIT [from WHEN] [at HH:MM] [in ZONE].
func (s *scanner) quota() (_ Limit, err error) {
	var l Quota
	if l.Count, l.Unit, err = s.perUnit(); err != nil {
		return nil, err
	}
	if l.Unit != Day && s.Accept("from") {
		if l.Month, l.Day, err = s.begin(l.Unit); err != nil {
			return nil, err
		}
	}
	if s.Accept("at") {
		if l.At, err = s.wallTime(); err != nil {
			return nil, err
		}
	}
	if s.Accept("in") {
		if l.Zone = s.Peek(); l.Zone == "" {
			return nil, s.unexpected("a zone such as Europe/Paris")
		}
		s.Next()
	}
	return l, nil
}

// perUnit reads a count and a unit of the calendar.
func (s *scanner) perUnit() (int64, CalendarUnit, error) {
	count, name, _ := strings.Cut(s.Peek(), "/")
	n, err := parseCount(count)
	unit := unitNamed(name)
	if err != nil || unit == 0 {
		return 0, 0, s.unexpected("a count a day, week, month, quarter or year, such as 1000/month")
	}
	s.Next()
	return n, unit, nil
}

// begin reads where in the unit a window begins.
func (s *scanner) begin(unit CalendarUnit) (month time.Month, day int, err error) {
	switch unit {
	case Week:
		for i, name := range weekdays {
			if i > 0 && s.Accept(name) {
				return 0, i, nil
			}
		}
		return 0, 0, s.unexpected("a weekday such as monday")
	case Year:
		for month = time.January; !s.Accept(strings.ToLower(month.String())); month++ {
			if month == time.December {
				return 0, 0, s.unexpected("a month and a day, such as march 1")
			}
		}
	default:
		if !s.Accept("day") {
			return 0, 0, s.unexpected("a day such as day 15")
		}
	}
	s.Forget()
	n, err := parseCount(s.Peek())
	if err != nil || n < 1 || n > 31 {
		return 0, 0, s.unexpected("the number of a day, from 1 to 31")
	}
	s.Next()
	return month, int(n), nil
}

// wallTime reads HH:MM.
func (s *scanner) wallTime() (time.Duration, error) {
	at, err := time.Parse("15:04", s.Peek())
	if err != nil || len(s.Peek()) != len("15:04") {
		return 0, s.unexpected("a time of day such as 06:00")
	}
	s.Next()
	return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute, nil
}

// Package calendar finds the windows of the calendar of a place: its days, weeks, months, quarters and years. Each begins
// at a wall time of the place. All instants are Unix seconds, because every boundary falls on a whole second.
//
// A window begins at the earliest instant when clocks of the place read its wall time or later. So a wall time that
// clocks skip begins its window at the jump, and one that comes twice begins it the first time. Two wall times with one
// such instant make one boundary. time.Date chooses otherwise, so this package does not use it.
package calendar

import (
	"math"
	"time"
)

// Unit is the length of windows in the calendar.
type Unit uint8

const (
	Day Unit = iota + 1
	Week
	Month
	Quarter
	Year
)

// Calendar says where windows begin.
type Calendar struct {
	Unit Unit
	Zone *time.Location
	// Month is the first month of a Year, from 1. Day is the day of the Week, where 1 is Monday, of the Month, of the first
	// month of the Quarter, or of Month, each from 1. A shorter month has its last day instead.
	Month, Day int
	At         int64 // seconds after midnight
}

const (
	daySeconds = 24 * 3600
	// farthest bounds instants, so that nothing overflows. It is 500,000 years from 1970.
	farthest = 1 << 44
	// mostOffset is above the offset of every zone from UTC, by the bound of RFC 9636.
	mostOffset = 26 * 3600
)

// Window returns the window of an instant: it holds all instants from start until just before end.
func (c *Calendar) Window(t int64) (start, end int64) {
	t = min(max(t, -farthest), farthest)
	i := c.index(t) + 1
	for end = c.boundary(i); end <= t; end = c.boundary(i) {
		i++
	}
	for start = end; start > t; start = c.boundary(i) {
		i, end = i-1, start
	}
	return start, end
}

// index returns the number of the unit that clocks read at an instant. The number of its window is at most a few away.
func (c *Calendar) index(t int64) int64 {
	offset, _ := c.offset(t)
	days := floorDiv(t+offset, daySeconds)
	switch c.Unit {
	case Day:
		return days
	case Week:
		return floorDiv(days-firstMonday, 7)
	}
	return floorDiv(monthOf(days), c.months())
}

// months returns the number of months of a unit that consists of months.
func (c *Calendar) months() int64 {
	switch c.Unit {
	case Quarter:
		return 3
	case Year:
		return 12
	}
	return 1
}

// boundary returns the instant when unit i begins its window.
func (c *Calendar) boundary(i int64) int64 { return c.instant(c.wall(i)) }

// firstMonday is the first Monday since 1970-01-01, a Thursday, in days.
const firstMonday = 4

// wall returns the wall time when unit i begins its window, in seconds since 1970 by the clocks of the place.
func (c *Calendar) wall(i int64) int64 {
	days := i
	switch c.Unit {
	case Day:
	case Week:
		days = firstMonday + 7*i + int64(c.Day-1)
	default:
		month := i*c.months() + int64(max(c.Month, 1)-1)
		days = min(firstDay(month)+int64(c.Day-1), firstDay(month+1)-1)
	}
	return days*daySeconds + c.At
}

// instant returns the earliest instant when clocks of the zone read a wall time or later.
func (c *Calendar) instant(wall int64) int64 {
	at := wall - mostOffset // clocks read an earlier time
	for {
		offset, end := c.offset(at)
		if reads := max(wall-offset, at); reads < end {
			return reads
		}
		at = end
	}
}

// offset returns the offset of the zone at an instant, and a later instant until which it stays.
func (c *Calendar) offset(at int64) (offset, end int64) {
	t := time.Unix(at, 0).In(c.Zone)
	_, seconds := t.Zone()
	_, bound := t.ZoneBounds()
	switch end = bound.Unix(); {
	case bound.IsZero():
		end = math.MaxInt64
	case end <= at: // ZoneBounds ends each year after 365 days
		end = daySeconds * (floorDiv(at, daySeconds) + 1)
	}
	return int64(seconds), end
}

// monthOf returns the month of a day, both counted from January 1970, in the Gregorian calendar of all times. Years here
// begin in March, so that a leap day is the last day of one.
func monthOf(days int64) int64 {
	const era, toMarch = 146097, 719468 // days in 400 years, and from 0000-03-01 to 1970-01-01
	days += toMarch
	eras := floorDiv(days, era)
	day := days - eras*era
	year := (day - day/1460 + day/36524 - day/146096) / 365
	day -= 365*year + year/4 - year/100
	return (eras*400+year)*12 + (5*day+2)/153 + 2 - 1970*12
}

// firstDay returns the first day of a month, both counted from January 1970.
func firstDay(month int64) int64 {
	month += 1970*12 - 2 // since March of the year 0
	year := floorDiv(month, 12)
	month -= 12 * year
	return 365*year + floorDiv(year, 4) - floorDiv(year, 100) + floorDiv(year, 400) + (153*month+2)/5 - 719468
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// mostDays are the most days of a unit.
var mostDays = [...]int64{Day: 1, Week: 7, Month: 31, Quarter: 92, Year: 366}

// Longest returns a number of seconds that no window of the unit exceeds, in any zone and wherever windows begin. A place
// may put its clocks back during a window, by up to a day and the hours of summer time.
func (u Unit) Longest() int64 { return mostDays[u]*daySeconds + mostOffset }

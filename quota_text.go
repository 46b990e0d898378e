package weir

import (
	"strings"
	"time"
)

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

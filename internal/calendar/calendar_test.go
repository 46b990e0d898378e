package calendar

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
	_ "time/tzdata"
)

// scanned is the second implementation: it reads clocks minute by minute around a transition, and finds transitions by
// halving. It uses neither ZoneBounds nor arithmetic of dates.
type scanned struct{ *Calendar }

func (c scanned) offset(t int64) int64 {
	_, offset := time.Unix(t, 0).In(c.Zone).Zone()
	return int64(offset)
}

// reads returns the earliest instant from one on at which clocks read a wall time or later. It walks in steps of an
// hour, which no zone stays within, and halves the step in which the offset changes.
func (c scanned) reads(wall int64) int64 {
	for t := wall - 30*3600; ; t += 3600 {
		if found, ok := c.within(t, t+3600, wall); ok {
			return found
		}
	}
}

// within searches [from, to), in which the offset changes at most once.
func (c scanned) within(from, to, wall int64) (int64, bool) {
	before, after := c.offset(from), c.offset(to-1)
	change := to
	if before != after {
		low, high := from, to-1
		for high-low > 1 {
			if middle := (low + high) / 2; c.offset(middle) == before {
				low = middle
			} else {
				high = middle
			}
		}
		change = high
	}
	if t := max(from, wall-before); t < change {
		return t, true
	}
	t := max(change, wall-after)
	return t, t < to
}

// window scans the days around an instant, each of which is a boundary or not by the names of time.Time.
func (c scanned) window(t int64) (start, end int64) {
	start, end = math.MinInt64, math.MaxInt64
	utc := time.Unix(t, 0).UTC()
	noon := time.Date(utc.Year(), utc.Month(), utc.Day(), 12, 0, 0, 0, time.UTC)
	for day := -400; day <= 400; day++ {
		date := noon.AddDate(0, 0, day)
		if !c.begins(date) {
			continue
		}
		b := c.reads(date.Unix() - 12*3600 + c.At)
		if b <= t {
			start = max(start, b)
		} else {
			end = min(end, b)
		}
	}
	return start, end
}

// begins reports whether a window begins on a date.
func (c scanned) begins(date time.Time) bool {
	last := date.AddDate(0, 0, 1).Month() != date.Month()
	onDay := date.Day() == c.Day || last && date.Day() < c.Day
	switch c.Unit {
	case Day:
		return true
	case Week:
		return (int(date.Weekday())+6)%7 == c.Day-1
	case Quarter:
		return onDay && int(date.Month())%3 == 1
	case Year:
		return onDay && int(date.Month()) == c.Month
	}
	return onDay
}

// places have every kind of offset change: DST of an hour, of half an hour and of 2 hours, at midnight and not, days that
// are skipped or come twice, offsets of seconds, and no change.
var places = []string{
	"UTC", "Europe/Paris", "America/New_York", "America/Sao_Paulo", "America/Havana", "Asia/Beirut", "Africa/Cairo", "Africa/Casablanca",
	"Australia/Lord_Howe", "Antarctica/Troll", "Pacific/Apia", "Pacific/Kwajalein", "Asia/Manila", "America/Juneau", "Pacific/Chatham",
	"Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns", "Africa/Monrovia", "Europe/Amsterdam", "Europe/Dublin", "Asia/Gaza",
}

func randomCalendar(random *rand.Rand, zone *time.Location) *Calendar {
	c := &Calendar{Unit: Unit(1 + random.IntN(5)), Zone: zone, Month: 1, Day: 1}
	switch {
	case c.Unit == Week:
		c.Day = 1 + random.IntN(7)
	case c.Unit > Week:
		c.Day = []int{1, 15, 28, 29, 30, 31}[random.IntN(6)]
	}
	if c.Unit == Year {
		c.Month = 1 + random.IntN(12)
	}
	if random.IntN(2) == 0 {
		c.At = 60 * random.Int64N(24*60)
	}
	return c
}

// nearChange returns an instant at a change of the zone's offset or of the calendar, or any from 1830 to 2150.
func nearChange(random *rand.Rand, zone *time.Location) int64 {
	t := time.Unix(random.Int64N(10_000_000_000)-4_400_000_000, 0).In(zone)
	if _, change := t.ZoneBounds(); random.IntN(2) == 0 && !change.IsZero() {
		t = change.Add(time.Duration(random.IntN(7)-3) * 12 * time.Hour)
	}
	return t.Unix() + random.Int64N(5) - 2
}

func TestWindowsAreThoseOfASecondImplementation(t *testing.T) {
	rounds := 250
	if testing.Short() {
		rounds = 25
	}
	for i, name := range places {
		zone, err := Zone(name)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(uint64(i), 42))
		for range rounds {
			c, at := randomCalendar(random, zone), nearChange(random, zone)
			start, end := c.Window(at)
			wantStart, wantEnd := scanned{c}.window(at)
			if start != wantStart || end != wantEnd {
				t.Fatalf("%s %+v: the window of %v is %v to %v, want %v to %v", name, *c, time.Unix(at, 0).In(zone),
					time.Unix(start, 0).In(zone), time.Unix(end, 0).In(zone), time.Unix(wantStart, 0).In(zone), time.Unix(wantEnd, 0).In(zone))
			}
			if end-start > c.Unit.Longest() {
				t.Fatalf("%s %+v: the window of %d has %d s, above Longest", name, *c, at, end-start)
			}
		}
	}
}

func TestWindowsFarAwayAreFound(t *testing.T) {
	paris, _ := Zone("Europe/Paris")
	for unit := Day; unit <= Year; unit++ {
		for _, at := range []int64{math.MinInt64, -farthest, math.MinInt64 / 1_000_000_000, math.MaxInt64 / 1_000_000_000, math.MaxInt64 / 1_000_000, farthest} {
			c := Calendar{Unit: unit, Zone: paris, Month: 1, Day: 1}
			start, end := c.Window(at)
			if at = max(at, -farthest); start > at || end <= at || end-start > unit.Longest() {
				t.Errorf("unit %d: the window of %d is %d to %d", unit, at, start, end)
			}
		}
	}
}

func TestAZoneIsAnIANAName(t *testing.T) {
	for _, name := range []string{"", "UTC", "Europe/Paris", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "US/Pacific"} {
		if _, err := Zone(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"Local", "localtime", "posixrules", "right/Europe/Paris", "posix/Europe/Paris", "Factory", "../Europe/Paris", "/etc/localtime",
		"Europe/Pariz", "Europe", "Europe/Paris ", "Eur\x00ope", "+01:00", "tzdata.zi",
	} {
		if zone, err := Zone(name); err == nil {
			t.Errorf("%q is the zone %v, want an error", name, zone)
		}
	}
}

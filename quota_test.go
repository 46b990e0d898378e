package weir_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// instant reads RFC 3339.
func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestCalendarWindowIsInTheZone(t *testing.T) {
	for _, c := range []struct{ limit, at, start, end string }{
		{"quota 1000/month from day 31 in Europe/Paris", "2026-03-05T12:00:00Z", "2026-02-28T00:00:00+01:00", "2026-03-31T00:00:00+02:00"},
		{"quota 5/day at 02:30 in Europe/Paris", "2024-03-31T00:59:59Z", "2024-03-30T02:30:00+01:00", "2024-03-31T03:00:00+02:00"}, // skipped
		{"quota 5/day at 02:30 in Europe/Paris", "2024-10-27T00:30:00Z", "2024-10-27T02:30:00+02:00", "2024-10-28T02:30:00+01:00"}, // twice
		{"quota 5/day in Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"quota 5/week from sunday", "2026-11-27T00:00:00Z", "2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"},
		{"quota 5/quarter from day 31 in Asia/Kolkata", "2024-04-30T00:00:00Z", "2024-04-30T00:00:00+05:30", "2024-07-31T00:00:00+05:30"},
		{"quota 5/year from february 29", "2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "2025-02-28T00:00:00Z"},
	} {
		limit, err := weir.ParseLimit(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		start, end, ok := weir.Kit.CalendarWindow(limit, instant(t, c.at))
		if got, want := [2]string{start.Format(time.RFC3339), end.Format(time.RFC3339)}, [2]string{c.start, c.end}; !ok || got != want {
			t.Errorf("%s at %s: the window is %s, want %s", c.limit, c.at, got, want)
		}
	}
	for _, far := range []int64{1 << 62, -1 << 62} {
		if start, end, ok := weir.Kit.CalendarWindow(weir.Quota{Count: 1, Unit: weir.Day}, time.Unix(far, 0)); ok {
			t.Errorf("the window of %d s is %v to %v", far, start, end)
		}
	}
	if _, _, ok := weir.Kit.CalendarWindow(weir.FixedWindow{Rate: weir.PerDay(1)}, time.Now()); ok {
		t.Error("a fixed window has one of the calendar")
	}
	if _, _, ok := weir.Kit.CalendarWindow(weir.Quota{Count: 1, Unit: weir.Day, Zone: "Nowhere"}, time.Now()); ok {
		t.Error("a quota in no zone has a window")
	}
}

func TestAQuotaRefusesFieldsThatItsUnitHasNot(t *testing.T) {
	for _, c := range []struct {
		limit weir.Quota
		field string
	}{
		{weir.Quota{Count: 1}, "unit"},
		{weir.Quota{Count: 1, Unit: weir.Year + 1}, "unit"},
		{weir.Quota{Unit: weir.Day}, "count"},
		{weir.Quota{Count: 1, Unit: weir.Day, Day: 1}, "day"},
		{weir.Quota{Count: 1, Unit: weir.Week, Day: 8}, "day"},
		{weir.Quota{Count: 1, Unit: weir.Month, Day: -1}, "day"},
		{weir.Quota{Count: 1, Unit: weir.Month, Month: time.March}, "month"},
		{weir.Quota{Count: 1, Unit: weir.Year, Month: 13}, "month"},
		{weir.Quota{Count: 1, Unit: weir.Year, Month: time.February, Day: 30}, "day"},
		{weir.Quota{Count: 1, Unit: weir.Day, At: time.Second}, "at"},
		{weir.Quota{Count: 1, Unit: weir.Day, At: 24 * time.Hour}, "at"},
		{weir.Quota{Count: 1, Unit: weir.Day, At: -time.Minute}, "at"},
		{weir.Quota{Count: 1, Unit: weir.Day, Zone: "right/UTC"}, "zone"},
	} {
		_, err := weir.New(c.limit)
		if refused, ok := errors.AsType[*weir.LimitError](err); !ok || refused.Field != c.field {
			t.Errorf("%+v: got %v, want an error of the field %s", c.limit, err, c.field)
		}
	}
}

// The zone of a key changes while its day goes on, as a reload does, between two daemons, or with a snapshot in between. What
// was counted counts in the window of each.
func TestAQuotaKeepsItsCountInAnotherZone(t *testing.T) {
	now := instant(t, "2026-06-10T14:00:00Z").UnixNano()
	clock := func() int64 { return now }
	tokyo := mustRule(t, "r", weir.Quota{Count: 5, Unit: weir.Day, Zone: "Asia/Tokyo"})
	newYork := mustRule(t, "r", weir.Quota{Count: 5, Unit: weir.Day, Zone: "America/New_York"})
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	for range 5 {
		spend(t, m, tokyo.For("k", 1))
	}
	now = instant(t, "2026-06-11T03:59:59Z").UnixNano() // the day of Tokyo and that of UTC are over, that of New York is not
	for name, m := range map[string]*weir.Memory{"the engine": m, "a loaded one": loaded(t, saved(t, m), clock)} {
		d, err := m.Take(t.Context(), newYork.For("k", 1))
		if err != nil || d.Allowed || d.RetryAfter != time.Second {
			t.Errorf("%s: New York gets %+v and %v, want a refusal for a second", name, d, err)
		}
		if d, err = m.Take(t.Context(), tokyo.For("k", 3)); err != nil || !d.Allowed || d.Remaining != 2 {
			t.Errorf("%s: Tokyo gets %+v and %v, want its new day", name, d, err)
		}
	}
}

// Two zones take turns on one key at random. Between two boundaries of either, at most the count is admitted.
func TestTwoZonesOnAKeyNeverAdmitMoreThanTheCount(t *testing.T) {
	for seed := range randtest.Seeds(t, 40, 40) {
		random := rand.New(rand.NewPCG(seed, 0))
		now := instant(t, "2026-03-20T00:00:00Z").UnixNano()
		m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
		const most = 20
		var limits []weir.Limit
		for _, zone := range []string{"Asia/Tokyo", "Europe/Paris"} {
			limits = append(limits, weir.Quota{Count: most, Unit: weir.Day, Zone: zone, At: time.Duration(random.IntN(24)) * time.Hour})
		}
		admitted, until := int64(0), time.Time{}
		for range 3000 {
			now += random.Int64N(int64(20 * time.Minute))
			if at := time.Unix(0, now); !at.Before(until) {
				_, first, _ := weir.Kit.CalendarWindow(limits[0], at)
				_, second, _ := weir.Kit.CalendarWindow(limits[1], at)
				if admitted, until = 0, first; second.Before(first) {
					until = second
				}
			}
			n := 1 + random.Int64N(3)
			d, err := m.Take(t.Context(), mustRule(t, "r", limits[random.IntN(2)]).For("k", n))
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				admitted += n
			}
			if admitted > most {
				t.Fatalf("seed %d: %d of %d admitted before %v", seed, admitted, most, until)
			}
		}
	}
}

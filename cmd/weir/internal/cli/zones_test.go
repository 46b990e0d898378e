package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestTheNearestZoneIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"Europe/Pariz": "Europe/Paris", "europe/paris": "Europe/Paris", "America/NewYork": "America/New_York", "Tokyo": "Asia/Tokyo",
		"new york": "America/New_York", "Asia/Calcuta": "Asia/Calcutta", "utc": "UTC", "Europe/Kyiw": "Europe/Kyiv",
	} {
		if got := nearestZone(text); got != want {
			t.Errorf("nearest to %q: got %s, want %s", text, got, want)
		}
	}
}

// Every name that a hint can give is one that a quota accepts.
func TestTheProgramKnowsEveryZoneThatItNames(t *testing.T) {
	names := strings.Fields(zoneNames)
	if len(names) < 500 {
		t.Fatalf("%d names, want those of all zones", len(names))
	}
	for _, name := range names {
		limit := weir.Quota{Count: 1, Unit: weir.Day, Zone: name}
		if _, _, ok := weir.CalendarWindow(limit, time.Unix(0, 0)); !ok {
			t.Errorf("%s is no zone of a quota", name)
		}
	}
}

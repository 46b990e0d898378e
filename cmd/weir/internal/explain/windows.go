package explain

import (
	"fmt"
	"runtime"
	"time"

	"github.com/weirflow/weir"
)

// Windows tells the next boundaries of a quota, as clocks of its zone read them then. The zone is empty if no zone data decides them,
// and the text too for limits without a calendar.
func Windows(limit weir.Limit, now time.Time) (text, zone string) {
	_, next, ok := weir.Kit.CalendarWindow(limit, now)
	if !ok {
		return "", ""
	}
	if zone = next.Location().String(); zone == "UTC" {
		zone = ""
	}
	var ends []any
	for range 3 {
		ends = append(ends, next.Format("Mon 2006-01-02 15:04:05 -07:00"))
		_, next, _ = weir.Kit.CalendarWindow(limit, next)
	}
	return fmt.Sprintf("The next begin on %s, %s and %s.", ends...), zone
}

// OwnZoneData says that zone data is that of the program itself.
func OwnZoneData() string {
	return fmt.Sprintf("The zone data is that of this program, from %s.", runtime.Version())
}

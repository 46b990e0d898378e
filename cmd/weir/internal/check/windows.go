package check

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// windowsOf tells the next boundaries of a quota in its zone, and which zone data says so. It is empty for other limits.
func windowsOf(limit weir.Limit, now time.Time) string {
	_, next, ok := weir.CalendarWindow(limit, now)
	if !ok {
		return ""
	}
	var ends []string
	for range 3 {
		ends = append(ends, next.Format("Mon 2006-01-02 15:04:05 -07:00"))
		_, next, _ = weir.CalendarWindow(limit, next)
	}
	return fmt.Sprintf("The next begin on %s, %s and %s. %s", ends[0], ends[1], ends[2], zoneData())
}

// zoneFolders are where time.LoadLocation looks for zone data first, except for ZONEINFO.
var zoneFolders = []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"}

// zoneData says which zone data this program uses.
func zoneData() string {
	folders := zoneFolders
	if own := os.Getenv("ZONEINFO"); own != "" {
		folders = append([]string{own}, folders...)
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "Europe", "Paris")); err != nil && !strings.HasSuffix(folder, ".zip") {
			continue
		}
		text, _ := cli.ReadFile(filepath.Join(folder, "tzdata.zi"), 1<<20)
		first, _, _ := strings.Cut(string(text), "\n")
		if version, found := strings.CutPrefix(first, "# version "); found {
			return fmt.Sprintf("The zone data is %s, of version %s.", folder, version)
		}
		return fmt.Sprintf("The zone data is %s.", folder)
	}
	return fmt.Sprintf("The zone data is that of this program, from %s.", runtime.Version())
}

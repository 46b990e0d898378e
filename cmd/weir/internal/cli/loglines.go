package cli

import (
	"fmt"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/internal/accesslog"
)

// LogLines say how logs were read: one line for all that were read alike.
func LogLines(all []accesslog.Found, s screen.Screen) string {
	var b strings.Builder
	var logs []string
	for i, l := range all {
		logs = append(logs, Printable(l.Log))
		if i+1 < len(all) {
			next := all[i+1]
			if next.Log = l.Log; next == l {
				continue
			}
		}
		name := logs[0]
		if len(logs) > 1 {
			name = fmt.Sprintf("%s to %s", name, logs[len(logs)-1])
		}
		b.WriteString(s.Wrap(fmt.Sprintf("%s: %s, %s; time: %s; client: %s\n", name, l.Format, l.Why, l.Time, l.Client), 2))
		logs = nil
	}
	return b.String()
}

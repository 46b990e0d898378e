package front

import (
	"fmt"

	"github.com/weirflow/weir"
)

// Why returns what a limit says about a refusal, for people: `the limit "login" is used up`. The name is that of the
// limit, and never says that no wait is long enough.
func Why(name string, d *weir.Decision, never bool) string {
	switch {
	case never && d.Limit == 0:
		return fmt.Sprintf("the limit %q admits nothing", name)
	case never:
		return fmt.Sprintf("the cost is more than the limit %q ever admits", name)
	case d.Cause == weir.ByGap:
		return fmt.Sprintf("the limit %q needs a pause between requests", name)
	case d.Cause == weir.ByBan:
		return fmt.Sprintf("the limit %q has refused this key too often, so it is banned for a while", name)
	case d.Remaining > 0:
		return fmt.Sprintf("the cost is more than the %d left of the limit %q", d.Remaining, name)
	}
	return fmt.Sprintf("the limit %q is used up", name)
}

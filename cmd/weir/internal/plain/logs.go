package plain

import (
	"errors"
	"fmt"

	"github.com/weirflow/weir/internal/replay"
)

// TargetForms are an example of each target of suggested limits.
var TargetForms = []string{"refuse 0.1% of clients", "refuse 0.1% of requests", "spare 99.9%", "at most 200/s in all"}

// Uncounted returns an error of a log that is empty, or has no readable line.
func Uncounted(report replay.Report) error {
	switch {
	case report.Keys > 0:
		return nil
	case report.Lines == 0:
		return Fail(errors.New("replay: the input is empty"), "name a log, or pipe one in: weir replay --limit 60/m access.log")
	case report.Unparsed == report.Lines:
		return Fail(fmt.Errorf("replay: none of %s could be read", Plural(report.Lines, "line")),
			"a line needs a time and the fields of --key; --log-format names the format, or spells it: --log-format '$remote_addr [$time_local] \"$request\"', or --log-format 'json time=when client=caller.ip'",
			"where a line names several addresses, --trust names the proxies")
	}
	return nil
}

package serve

import (
	"log/slog"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// The bounds of messages about many places.
const (
	mostSaid  = 20 // lines
	mostAlike = 5  // further places in a line
)

// said is a message about one place.
type said struct {
	place string // a file and line, or another name
	what  string
	attrs []any
}

// sayOnce logs messages about many places, a line for each different one: with the attributes of the first place, and
// the names of a few others.
func sayOnce(log *slog.Logger, message string, all []said) {
	var order []string
	alike := map[string][]said{}
	for _, s := range all {
		if alike[s.what] == nil {
			order = append(order, s.what)
		}
		alike[s.what] = append(alike[s.what], s)
	}
	for i, what := range order {
		if i == mostSaid {
			log.Warn(message+"; there are more such lines, which weir check shows", "more", len(order)-mostSaid)
			return
		}
		first, others := alike[what][0], alike[what][1:]
		attrs := first.attrs
		if len(others) > 0 {
			attrs = append(attrs, "places", len(others)+1, "also", placesOf(others))
		}
		log.Warn(message, attrs...)
	}
}

// placesOf names a few places.
func placesOf(all []said) string {
	names := make([]string, 0, mostAlike+1)
	for _, s := range all[:min(len(all), mostAlike)] {
		names = append(names, s.place)
	}
	if more := len(all) - mostAlike; more > 0 {
		names = append(names, plain.Plural(int64(more), "other"))
	}
	return strings.Join(names, ", ")
}

package weir

import (
	"fmt"
	"strings"

	"github.com/weirflow/weir/internal/algorithm"
)

// kinds is the registry: one entry for each limit, in the order of texts and errors. The entry holds all that the
// package knows of a limit, except its fields and its four functions. A new limit needs a file with its type and its
// entry, and a line here.
var kinds = []*kind{
	&tokenBucketKind, &leakyBucketKind, &fixedWindowKind, &firstWindowKind, &slidingWindowKind, &slidingLogKind, &rateGateKind,
	&cycleKind, &quotaKind, &concurrencyKind, &banKind, &unlimitedKind, &denyAllKind, &burstyKind, &warmUpKind, &nginxKind,
}

// limitOf returns a limit with the identity and capacity from a snapshot. A limit without states, and a ban, have the
// capacity of their kind.
func limitOf(id string, capacity int64) (Limit, error) {
	name, window, _ := strings.Cut(id, "/")
	for _, k := range kinds {
		if k.name != name || k.revive == nil {
			continue
		}
		limit := k.revive(window, capacity)
		if err := limit.validate(); err != nil {
			return nil, err
		}
		compiled := limit.algorithm(nanoseconds)
		if identity(limit) != id || compiled.Capacity() != capacity && !algorithm.Stateless(compiled) && !algorithm.Bans(compiled) {
			return nil, fmt.Errorf("%q with a capacity of %d is no limit", id, capacity)
		}
		return limit, nil
	}
	return nil, fmt.Errorf("%q is not the name of a limit", id)
}

// algorithmOf returns the algorithm of limitOf, for the memory engine, which does not know Limit.
func algorithmOf(id string, capacity int64) (algorithm.Algorithm, error) {
	limit, err := limitOf(id, capacity)
	if err != nil {
		return nil, err
	}
	return limit.algorithm(nanoseconds), nil
}

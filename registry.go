package weir

import (
	"fmt"
	"strings"

	"github.com/weirflow/weir/internal/algorithm"
)

// kinds is the registry: one entry for each limit, in the order in which texts
// and errors list them. What the package knows of a limit, apart from its fields
// and its four functions, is its entry. A new limit is a file with its type and
// its entry, and a line here.
var kinds = []*kind{
	&tokenBucketKind, &leakyBucketKind, &fixedWindowKind, &slidingWindowKind, &slidingLogKind, &rateGateKind,
	&cycleKind, &concurrencyKind, &unlimitedKind, &denyAllKind, &burstyKind, &warmUpKind, &nginxKind,
}

// kind is the entry of a limit. A test names the field that an entry leaves out.
type kind struct {
	name string                          // one or two words: its text begins with them, and the identity of its state
	read func(s *scanner) (Limit, error) // reads the text after the name
	// revive makes a limit of the window and capacity that a snapshot names. It
	// stands for all limits with that window: what it finds idle, they do. It is
	// nil if no snapshot can hold the limit.
	revive func(window string, capacity int64) Limit

	plans      trait // a waiting caller's units are spent at the instant planned for it, however late it wakes
	delays     trait // it admits with a delay
	leases     trait // its units are held under an identity until they are given back
	alone      trait // it cannot be decided together with other limits
	oneSubject trait // idleness changes its state, so that no key can be evicted

	// instead is the limit to use in a rule; nil unless rules refuse a limit
	// whose keys could be evicted.
	instead func(Limit) Limit
}

// trait is a property of a kind. The zero value says that the entry forgot it.
type trait uint8

const (
	unsaid trait = iota
	no
	yes
	depends // on the fields of the limit
)

// inRules says that rules can hold limits of the kind.
func (k *kind) inRules() bool { return k.oneSubject == no && k.instead == nil }

const whyOneSubject = "cannot hold it: its state changes while a key is idle, so keys could never be evicted"

// refusal says why rules do not hold the limit; nil if they do.
func (k *kind) refusal(l Limit) *LimitError {
	switch {
	case k.oneSubject == yes:
		return &LimitError{Limit: l.String(), Field: "rule", Code: CodeOneSubject, Reason: whyOneSubject}
	case k.instead != nil:
		reason := fmt.Sprintf("cannot hold this dialect; the nearest limit is %s", k.instead(l))
		return &LimitError{Limit: l.String(), Field: "rule", Code: CodeDialect, Reason: reason}
	}
	return nil
}

// identity names the state of the limit among those of its rule: the kind and
// the window. Rate and burst are not part of it, so that they can change and the
// state stays.
func identity(l Limit) string {
	if window := l.window(); window != "" {
		return l.kind().name + "/" + window
	}
	return l.kind().name
}

// limitOf is a limit with the identity and capacity that a snapshot names.
func limitOf(id string, capacity int64) (Limit, error) {
	name, window, _ := strings.Cut(id, "/")
	for _, k := range kinds {
		if k.name != name || k.revive == nil {
			continue
		}
		limit := k.revive(window, capacity)
		if err := limit.Validate(); err != nil {
			return nil, err
		}
		if identity(limit) != id || limit.algorithm().Capacity() != capacity {
			return nil, fmt.Errorf("%q with a capacity of %d is no limit", id, capacity)
		}
		return limit, nil
	}
	return nil, fmt.Errorf("%q is not the name of a limit", id)
}

// revive is limitOf for the memory engine, which knows no Limit.
func revive(id string, capacity int64) (algorithm.Algorithm, error) {
	limit, err := limitOf(id, capacity)
	if err != nil {
		return nil, err
	}
	return limit.algorithm(), nil
}

// revivedRate is the rate of a limit whose window is its period.
func revivedRate(window string, capacity int64) Rate {
	period, _ := parsePeriod(window)
	return Rate{Count: capacity, Period: period}
}

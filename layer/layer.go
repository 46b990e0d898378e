// Package layer puts layers around an engine: an engine in, an engine out.
//
// A Guard keeps a service up while its Redis is away:
//
//	redis, err := redislimit.Open("redis://10.0.0.7:6379", redislimit.Options{ConnectLater: true})
//	engine, err := layer.Guard(redis, layer.GuardOptions{OnFailure: layer.Local, Peers: 3})
//	defer engine.Close()
//
// The layers, from the caller to the engine. This is the only order in which they can be put together, and each layer
// refuses an engine that breaks it:
//
//	Observe    reports decisions, refusals, thresholds, errors and durations
//	Shadow     decides without enforcing, or a candidate limit beside the enforced one
//	DenyUntil  refuses here what the engine has just refused
//	Lease      decides from blocks of permits that it takes ahead
//	Guard      bounds each decision, and answers by a policy while the engine is away
//	the engine, such as redislimit
//
// Functions of your own ([weir.Wrap]) may stand anywhere between them. A layer passes on what it does not concern, and
// [weir.Find] finds the abilities of the engine through all of them. docs/howto/layers.md explains each layer, its bounds, and
// what it costs.
package layer

import (
	"fmt"

	"github.com/weirflow/weir"
)

// engine is embedded without being a field that callers see.
type engine = weir.Engine

// place is where a layer stands: only over layers of a lower place.
type place int

const (
	guards place = iota + 1
	leases
	denies
	shadows
	observes
)

var placeNames = map[place]string{guards: "guard", leases: "lease", denies: "deny until", shadows: "shadow", observes: "observe"}

// String returns the name of the layer in errors.
func (p place) String() string { return placeNames[p] }

// placed is a layer of this package.
type placed interface{ place() place }

// checkOver refuses an engine over which a layer makes no sense.
func checkOver(e weir.Engine, own place) error {
	if e == nil {
		return optionError(own, "engine", "is missing")
	}
	below, ok := weir.Find[placed](e)
	switch {
	case ok && below.place() == own && own != shadows:
		return optionError(own, "engine", "has a %s already", own)
	case ok && below.place() > own:
		return optionError(own, "engine", "has a %s, which belongs outside: the order is observe, shadow, deny until, lease, guard, engine", below.place())
	}
	if _, memory := weir.Find[*weir.Memory](e); memory && own < shadows {
		return optionError(own, "engine", "is a memory engine, which needs no %s: it is as near, and does not fail", own)
	}
	return nil
}

func optionError(own place, field, format string, values ...any) error {
	return &weir.OptionError{Op: "layer: " + own.String(), Field: field, Reason: fmt.Sprintf(format, values...)}
}

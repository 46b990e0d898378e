// Package layer puts layers around an engine: an engine in, an engine out.
//
// A Guard keeps a service up while its Redis is away:
//
//	redis, err := redislimit.Open("redis://10.0.0.7:6379", redislimit.Options{ConnectLater: true})
//	engine, err := layer.Guard(redis, layer.GuardOptions{OnFailure: layer.Local, Peers: 3})
//	defer engine.Close()
//
// The layers, from the caller to the engine. They can be put together only in this order, and each layer refuses an
// engine that breaks it:
//
//	Observe    reports decisions, refusals, thresholds, errors and durations
//	Shadow     decides without enforcing, or a candidate limit beside the enforced one
//	Otherwise makes a request in place of one that is refused
//	DenyUntil  refuses here what the engine has just refused
//	Prefetch   decides from blocks of permits that it takes ahead
//	Guard      bounds each decision, and answers by a policy while the engine is away
//	the engine, such as redislimit
//
// Functions of your own ([weir.Wrap]) may stand anywhere between them. A layer passes on calls that do not concern it,
// and [weir.Find] finds the abilities of the engine through all of them. docs/howto/layers.md explains each layer, its
// bounds, and what it costs.
package layer

import (
	"fmt"

	"github.com/weirflow/weir"
)

// engine is embedded without being a field that callers see.
type engine = weir.Engine

// rank is where a layer stands: only over layers of a lower rank.
type rank int

const (
	guards rank = iota + 1
	prefetches
	denies
	replaces
	shadows
	observes
)

var rankNames = map[rank]string{guards: "guard", prefetches: "prefetch", denies: "deny until", replaces: "otherwise", shadows: "shadow", observes: "observe"}

// String returns the name of the layer in errors.
func (p rank) String() string { return rankNames[p] }

// ranked is a layer of this package.
type ranked interface{ rank() rank }

// checkOver refuses an engine over which a layer makes no sense.
func checkOver(e weir.Engine, own rank) error {
	if e == nil {
		return optionError(own, "engine", "is missing")
	}
	below, ok := weir.Find[ranked](e)
	switch {
	case ok && below.rank() == own && own != shadows:
		return optionError(own, "engine", "has a %s already", own)
	case ok && below.rank() > own:
		return optionError(own, "engine", "has a %s, which belongs outside: the order is observe, shadow, otherwise, deny until, prefetch, guard, engine", below.rank())
	}
	if _, memory := weir.Find[*weir.Memory](e); memory && own < replaces {
		return optionError(own, "engine", "is a memory engine, which needs no %s: it is as near, and does not fail", own)
	}
	return nil
}

func optionError(own rank, field, format string, values ...any) error {
	return &weir.OptionError{Op: "layer: " + own.String(), Field: field, Reason: fmt.Sprintf(format, values...)}
}

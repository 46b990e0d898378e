package weir

import "github.com/weirflow/weir/internal/algorithm"

// Unlimited admits every cost up to MaxCount, so that a plan without a limit works like any other: in a rule, for a
// key of a Keyed, or in a text. It has no state.
type Unlimited struct{}

// DenyAll admits nothing: RetryAfter is Never, and Wait returns a *CostError at once. Its Limit is 0. It has no state.
type DenyAll struct{}

func (Unlimited) validate() error { return nil }

func (DenyAll) validate() error { return nil }

// String prints the limit as text: unlimited.
func (Unlimited) String() string { return unlimitedKind.name }

// String prints the limit as text: deny all.
func (DenyAll) String() string { return denyAllKind.name }

// MarshalText returns the text of String.
func (l Unlimited) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// MarshalText returns the text of String.
func (l DenyAll) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (Unlimited) algorithm(*ticks) algorithm.Algorithm { return algorithm.NewUnlimited() }
func (DenyAll) algorithm(*ticks) algorithm.Algorithm   { return algorithm.NewDenyAll() }

var unlimitedKind = kind{
	name:   "unlimited",
	read:   func(*scanner) (Limit, error) { return Unlimited{}, nil },
	revive: func(string, int64) Limit { return Unlimited{} },
}

var denyAllKind = kind{
	name:   "deny all",
	read:   func(*scanner) (Limit, error) { return DenyAll{}, nil },
	revive: func(string, int64) Limit { return DenyAll{} },
}

func (Unlimited) kind() *kind    { return &unlimitedKind }
func (DenyAll) kind() *kind      { return &denyAllKind }
func (Unlimited) window() string { return "" }
func (DenyAll) window() string   { return "" }

func (Unlimited) describe() Description { return Description{Burst: MaxCount, RefillText: "at once"} }
func (DenyAll) describe() Description   { return Description{RefillText: "never"} }
func (l Unlimited) share(shares) Limit  { return l }
func (l DenyAll) share(shares) Limit    { return l }

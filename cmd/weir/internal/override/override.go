// Package override gives single keys another limit for a time, while the daemon runs.
//
// An [Entry] names a key, or all keys with a prefix, and the limit that stands in for that of their rules: "deny all"
// blocks them, "unlimited" lets them pass. A [Table] holds the entries in force, and [Table.Around] puts it around the
// engine, so that all fronts obey it. One decision goes this way:
//
//  1. Without entries the engine gets the call as it is.
//  2. Otherwise each request to take, reserve or peek is looked up by rule and key (table.go), and asks by the limit of its
//     entry. State stays that of the rule, and units come back to it, so records, returns and resets are left alone.
//
// Entries live beside the states: in Redis (redis.go) or in the table of a database (database.go), where every
// daemon looks for changes twice a second, or in a file beside that of the states (file.go).
package override

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

// Entry is a limit that stands in for others.
type Entry struct {
	Rule   string    `json:"rule,omitempty"` // empty for all rules
	Key    string    `json:"key"`
	Prefix bool      `json:"prefix,omitempty"` // all keys that begin with Key
	Limit  string    `json:"limit"`            // in text form
	Until  time.Time `json:"until"`
	By     string    `json:"by,omitempty"`   // who made it
	Mode   Mode      `json:"mode,omitempty"` // of the rule, in an entry without a limit: see SetMode
}

// The limits that block, and that let pass.
const (
	Block = "deny all"
	Allow = "unlimited"
)

// The bounds of entries.
const (
	MaxEntries = 10_000
	maxLengths = 64 // different lengths of prefixes; a lookup tries each
	maxText    = 1024
)

// target is the target of an entry.
type target struct {
	rule, key string
	prefix    bool
	mode      bool
}

func (e *Entry) target() target { return target{e.Rule, e.Key, e.Prefix, e.Mode != Auto} }

// check writes the limit of an entry in its normal form, or returns what is wrong with the entry. The engine must hold the limit.
func (e *Entry) check(engine weir.Engine, now time.Time) error {
	switch {
	case len(e.Key) > weir.MaxKey || len(e.Rule) > maxText || len(e.Limit) > maxText:
		return fmt.Errorf("override: rule, key or limit is longer than %d, %d and %d bytes", maxText, weir.MaxKey, maxText)
	case !e.Until.After(now):
		return fmt.Errorf("override: until is %s, want a time to come", e.Until.Format(time.RFC3339))
	case e.Until.Sub(now) > weir.MaxPeriod:
		return fmt.Errorf("override: until is %s, more than 366 days away", e.Until.Format(time.RFC3339))
	case strings.Contains(e.Rule, "~"):
		return fmt.Errorf("override: rule %q: shadows and candidates have no overrides", e.Rule)
	}
	rule, err := e.asRule("rule")
	if err != nil {
		return err
	}
	e.Limit = textOf(rule)
	return engine.Check(rule)
}

// textOf returns the limits of a rule in their normal form.
func textOf(rule *weir.Rule) string { return strings.TrimPrefix(rule.String(), rule.Name()+"=") }

// asRule returns the limit as a rule of a name, or what is wrong with it. Limits that include a deny all are a block.
func (e *Entry) asRule(name string) (*weir.Rule, error) {
	limits, err := weir.ParseLimits(e.Limit)
	if err != nil {
		return nil, fmt.Errorf("override: limit: %w", err)
	}
	for _, limit := range limits {
		if d := weir.Describe(limit); d.Alone {
			return nil, fmt.Errorf("override: limit: %s stands alone, and so cannot decide beside the limits of other rules", limit)
		} else if d.Held && d.Lease == 0 {
			return nil, fmt.Errorf("override: limit: %s has no lease; add one, like lease 1m", limit)
		}
	}
	if slices.ContainsFunc(limits, func(l weir.Limit) bool { return l == weir.DenyAll{} }) {
		return weir.NewRule(name, weir.DenyAll{})
	}
	return weir.NewRule(name, limits...)
}

// StandsIn reports whether the limit of an entry stands in for those of a rule, or what is wrong with it. A slot is given
// back to the rule, so a limit without slots must not admit to a rule with slots, or the reverse. Blocks admit nothing.
func (e *Entry) StandsIn(rule *weir.Rule) (bool, error) {
	made, err := e.asRule("rule")
	if err != nil {
		return false, err
	}
	return textOf(made) == Block || (weir.Kit.Held(made) != nil) == (weir.Kit.Held(rule) != nil), nil
}

// errFull is the error of an entry beyond MaxEntries.
var errFull = fmt.Errorf("override: there are %d already, which is the most", MaxEntries)

// ErrUnknown is returned by Remove if there is no such entry.
var ErrUnknown = errors.New("override: there is none for this rule and key; weir ctl overrides lists those in force")

// StoreError reports that entries could not be kept or read.
type StoreError struct{ Err error }

func (e *StoreError) Error() string { return "override: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// store keeps entries beyond the process.
type store interface {
	// put keeps an entry, or removes that of the target if it is nil.
	put(ctx context.Context, at target, e *Entry) error
	// load returns all entries. It returns false if they are those of the last load.
	load(ctx context.Context) (entries []Entry, changed bool, err error)
	// secret returns the secret that is kept, or keeps a fresh one.
	secret(ctx context.Context, fresh []byte) ([]byte, error)
}

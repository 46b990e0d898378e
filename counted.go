package weir

import (
	"errors"

	"github.com/weirflow/weir/internal/rule"
)

// Counted says whether a call that failed was counted. The zero value is CountedUnknown.
type Counted uint8

const (
	CountedUnknown Counted = iota // perhaps, or only in part
	CountedNo                     // certainly not: nothing was written
	CountedYes                    // certainly, in every part
)

var countedNames = [...]string{CountedUnknown: "unknown", CountedNo: "no", CountedYes: "yes"}

// String returns unknown, no or yes.
func (c Counted) String() string {
	if int(c) >= len(countedNames) {
		return countedNames[CountedUnknown]
	}
	return countedNames[c]
}

// WasCounted reports whether a call of an engine that failed with err was counted. For example, a call whose reply
// was lost is CountedUnknown. Only a call that is CountedNo can be repeated without counting twice.
//
// A *RequestError or a *LimitError is CountedNo, and so is nil. Any other error answers with its method
// WasCounted() Counted. An error without that method is CountedUnknown.
func WasCounted(err error) Counted {
	if err == nil || errors.Is(err, ErrRequest) || errors.Is(err, ErrLimit) {
		return CountedNo
	}
	var said interface{ WasCounted() Counted }
	if errors.As(err, &said) {
		return said.WasCounted()
	}
	if undecided := (rule.Undecided{}); errors.As(err, &undecided) {
		return CountedNo
	}
	return CountedUnknown
}

// MayHaveCounted reports whether a call that failed with err was or may have been counted: see [WasCounted].
func MayHaveCounted(err error) bool { return WasCounted(err) != CountedNo }

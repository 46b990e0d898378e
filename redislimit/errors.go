package redislimit

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// Error reports why Redis could not decide. Nothing was admitted.
type Error struct {
	Op     string // take, reserve, peek, record, reset, or open
	Reason Reason
	// Counted says whether the cost was counted. It is weir.CountedUnknown if the call was sent and its answer was
	// lost, or if a part was counted before another part failed: on another lane, or because an ACL permits only some
	// writes. Units may then be spent without a use; the limit never admits too much.
	Counted weir.Counted
	Err     error
}

// Reason is the kind of a failure.
type Reason string

// The reasons. Metrics and logs can use them as names.
const (
	Refused     = Reason(fault.Refused)     // an error reply without a reason of its own
	ReadOnly    = Reason(fault.ReadOnly)    // the server is a replica, or lacks replicas
	Loading     = Reason(fault.Loading)     // the server is loading its data
	OutOfMemory = Reason(fault.OutOfMemory) // maxmemory is reached and no key may be evicted
	TooOld      = Reason(fault.TooOld)      // Redis before 6.0
	Denied      = Reason(fault.Denied)      // wrong user or password, or an ACL without a needed permission
	ClusterDown = Reason(fault.ClusterDown) // slots have no owner, or keep moving
	Lost        = Reason(fault.Lost)        // the connection failed, or timed out
	Damaged     = Reason(fault.Damaged)     // a stored state is corrupt, or another version or program has written it
	Cancelled   = Reason(fault.Cancelled)   // the caller's context ended first
	Closed      = Reason(fault.Closed)      // the engine was closed
	Undone      = Reason(fault.Undone)      // the decision has an identity, and was undone before, or its slots were released
)

func (e *Error) Error() string {
	if e.Op == opOpen {
		return fmt.Sprintf("redislimit: open: %v", e.Err)
	}
	counted := map[weir.Counted]string{weir.CountedUnknown: " (it may have been counted)", weir.CountedYes: " (it was counted)"}[e.Counted]
	return fmt.Sprintf("redislimit: %s: could not decide: %s%s: %v", e.Op, e.Reason, counted, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// WasCounted returns Counted, for weir.WasCounted.
func (e *Error) WasCounted() weir.Counted { return e.Counted }

// Unavailable reports whether the same call may succeed when the server or the cluster is well again, for
// weir.Unavailable.
func (e *Error) Unavailable() bool {
	switch e.Reason {
	case Lost, Loading, ReadOnly, OutOfMemory, ClusterDown:
		return true
	}
	return false
}

const opOpen = "open"

// errorOf returns a failure as callers see it.
func errorOf(o string, f *fault.Error) *Error {
	return &Error{Op: o, Reason: Reason(f.Reason), Counted: f.Counted, Err: f.Err}
}

// cannotDecide returns the error of an operation that failed. A peek has counted nothing.
func cannotDecide(o string, err error) error {
	e := errorOf(o, fault.Of(err))
	if o == wire.OpPeek.String() {
		e.Counted = weir.CountedNo
	}
	return e
}

// asMade has an error say "return" if the call returns units: for the script that is a record.
func asMade(o weir.Op, err error) error {
	if e, ok := err.(*Error); ok && o == weir.OpReturn {
		e.Op = o.String()
	}
	return err
}

// peekUncounted returns the error of a peek as one that has counted nothing. A take whose cost can never fit, or that an
// earlier lane has refused, only peeks.
func peekUncounted(o wire.Op, err error) error {
	if o != wire.OpPeek {
		return err
	}
	failed := *fault.Of(err)
	failed.Counted = weir.CountedNo
	return &failed
}

package redislimit

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/weirflow/weir"
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
	Refused     Reason = "refused"   // an error reply without a reason of its own
	ReadOnly    Reason = "read only" // the server is a replica, or lacks replicas
	Loading     Reason = "loading"   // the server is loading its data
	OutOfMemory Reason = "no memory" // maxmemory is reached and no key may be evicted
	TooOld      Reason = "too old"   // Redis before 6.0
	Denied      Reason = "denied"    // wrong user or password, or an ACL without a needed permission
	ClusterDown Reason = "cluster"   // slots have no owner, or keep moving
	Lost        Reason = "lost"      // the connection failed, or timed out
	Damaged     Reason = "damaged"   // a stored state is corrupt, or another version or program has written it
	Cancelled   Reason = "cancelled" // the caller's context ended first
	Closed      Reason = "closed"    // the engine was closed
	Undone      Reason = "undone"    // the decision has an identity, and was undone before, or its slots were released
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

// uncounted returns the error of a decision that was never sent.
func uncounted(reason Reason, err error) *Error {
	return &Error{Reason: reason, Counted: weir.CountedNo, Err: err}
}

// failure returns the error of a call that was sent. After most error replies it is certain that nothing was counted,
// because the script writes last and its first write fails. Only an ACL may permit some writes and deny others, and an
// unknown error inside the script may follow a write.
func failure(err error) *Error {
	if known := new(Error); errors.As(err, &known) {
		return known
	}
	if text, refused := refusal(err); refused {
		failed := uncounted(serverReason(text), err)
		if (failed.Reason == Denied || failed.Reason == Refused) && strings.Contains(text, "user_script") {
			failed.Counted = weir.CountedUnknown
		}
		return failed
	}
	if dial := new(net.OpError); errors.As(err, &dial) && dial.Op == "dial" {
		return uncounted(Lost, err)
	}
	return &Error{Reason: Lost, Err: err}
}

// serverReason returns the reason of an error reply. Errors inside a script are quoted, or come with its name.
func serverReason(text string) Reason {
	for _, known := range []struct {
		reason Reason
		words  []string
	}{
		{ReadOnly, []string{"READONLY", "NOREPLICAS", "MASTERDOWN"}},
		{Loading, []string{"LOADING"}},
		{OutOfMemory, []string{"OOM "}},
		{Denied, []string{"NOAUTH", "WRONGPASS", "NOPERM", "ACL failure", "can't run this command", "can't access"}},
		{ClusterDown, []string{"CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK "}},
	} {
		for _, word := range known.words {
			if strings.Contains(text, word) {
				return known.reason
			}
		}
	}
	return Refused
}

// errClosed is the error of a call after Close.
var errClosed = uncounted(Closed, errors.New("the engine is closed"))

const opOpen = "open"

// cannotOpen returns the error of a client that could not connect. No decision was sent, so nothing was counted.
func cannotOpen(addrs []string, err error) error {
	e, at := *failure(err), strings.Join(addrs, ", ")
	e.Op, e.Counted = opOpen, weir.CountedNo
	if _, refused := refusal(err); refused {
		e.Err = fmt.Errorf("%s at %s: %w", e.Reason, at, err)
		return &e
	}
	e.Reason, e.Err = Lost, fmt.Errorf("no Redis answers at %s: %w", at, err)
	return &e
}

// uncounted returns the error of a peek as one that has counted nothing. A take whose cost can never fit, or that an
// earlier lane has refused, only peeks.
func (o op) uncounted(err error) error {
	if o != opPeek {
		return err
	}
	failed := *failure(err)
	failed.Counted = weir.CountedNo
	return &failed
}

// cannotDecide adds the operation to a failure.
func cannotDecide(o string, err error) error {
	e := *failure(err)
	e.Op = o
	if o == opPeek.String() {
		e.Counted = weir.CountedNo
	}
	return &e
}

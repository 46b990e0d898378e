package redislimit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Error says why Redis could not decide. Nothing was admitted.
type Error struct {
	Op     string // take, reserve, peek, record, reset, or open
	Reason Reason
	// Counted says that the cost may have been counted all the same: the call
	// was sent, and its answer never came; or a part was counted before another
	// failed, on another lane or where the ACL lets only some writes through. It errs on the side of the limit: units may be spent that
	// nobody used, and never the other way round. If it is false, nothing was
	// written.
	Counted bool
	Err     error
}

// Reason is a kind of failure.
type Reason string

// The reasons, as metrics and logs may name them.
const (
	Refused     Reason = "refused"   // an error of the server that has no name here
	ReadOnly    Reason = "read only" // the server is a replica, or out of replicas
	Loading     Reason = "loading"   // it starts, and reads its data
	OutOfMemory Reason = "no memory" // maxmemory is reached and nothing may be evicted
	TooOld      Reason = "too old"   // Redis before 6.2
	Denied      Reason = "denied"    // the user or password is wrong, or its ACL too narrow
	ClusterDown Reason = "cluster"   // slots have no owner, or keep moving
	Lost        Reason = "lost"      // the connection failed, or gave no answer in time
	Damaged     Reason = "damaged"   // what is stored is not what was stored
	Cancelled   Reason = "cancelled" // the caller's context ended first
	Closed      Reason = "closed"    // the engine was closed
)

func (e *Error) Error() string {
	if e.Op == opOpen {
		return fmt.Sprintf("redislimit: open: %v", e.Err)
	}
	counted := ""
	if e.Counted {
		counted = " (it may have been counted)"
	}
	return fmt.Sprintf("redislimit: %s: could not decide: %s%s: %v", e.Op, e.Reason, counted, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// MayHaveCounted is Counted, for weir.MayHaveCounted.
func (e *Error) MayHaveCounted() bool { return e.Counted }

// failure makes the error of a call that was sent. An error that the server
// replied with is certain: the script writes last, and its first write fails.
// Only an ACL may let some writes pass and others not.
func failure(err error) *Error {
	if known := new(Error); errors.As(err, &known) {
		return known
	}
	if text, refused := refusal(err); refused {
		reason := serverReason(text)
		return &Error{Reason: reason, Err: err, Counted: reason == Denied && strings.Contains(text, "user_script")}
	}
	switch {
	case err == context.Canceled, err == context.DeadlineExceeded: // a caller's, before it was sent
		return &Error{Reason: Cancelled, Err: err}
	case errors.Is(err, errReply), errors.Is(err, errUnreadable):
		return &Error{Reason: Damaged, Err: err, Counted: errors.Is(err, errReply)}
	}
	var dial *net.OpError
	unsent := errors.As(err, &dial) && dial.Op == "dial"
	return &Error{Reason: Lost, Err: err, Counted: !unsent}
}

// serverReason finds the reason in an error that the server replied with. Those
// inside a script are quoted, or come with its name.
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

// errClosed is the error of what was asked of an engine after its Close.
var errClosed = &Error{Reason: Closed, Err: errors.New("the engine was closed before")}

const opOpen = "open"

// cannotOpen says where a client could not connect. Nothing was counted: no
// decision was sent.
func cannotOpen(addrs []string, err error) error {
	e, at := *failure(err), strings.Join(addrs, ", ")
	e.Op, e.Counted = opOpen, false
	if _, refused := refusal(err); refused {
		e.Err = fmt.Errorf("%s at %s: %w", e.Reason, at, err)
		return &e
	}
	e.Reason, e.Err = Lost, fmt.Errorf("no Redis answers at %s: %w", at, err)
	return &e
}

// cannotDecide names the verb of a failure.
func cannotDecide(o string, err error) error {
	e := *failure(err)
	e.Op = o
	e.Counted = e.Counted && o != opPeek.String()
	return &e
}

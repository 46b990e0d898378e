// Package fault classifies the errors of servers and of calls to them.
package fault

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
)

// Error reports why a call or a decision failed.
type Error struct {
	Reason  reason
	Counted weir.Counted
	Err     error
}

func (f *Error) Error() string { return fmt.Sprintf("%s: %v", f.Reason, f.Err) }

func (f *Error) Unwrap() error { return f.Err }

// reason is the kind of a failure. redislimit.Reason describes each.
type reason string

const (
	Refused     reason = "refused"
	ReadOnly    reason = "read only"
	Loading     reason = "loading"
	OutOfMemory reason = "no memory"
	TooOld      reason = "too old"
	Denied      reason = "denied"
	ClusterDown reason = "cluster"
	Lost        reason = "lost"
	Damaged     reason = "damaged"
	Cancelled   reason = "cancelled"
	Closed      reason = "closed"
	Undone      reason = "undone"
)

// Uncounted returns the error of a decision that was never sent.
func Uncounted(reason reason, err error) *Error {
	return &Error{Reason: reason, Counted: weir.CountedNo, Err: err}
}

// Of returns the error of a call that was sent. After most error replies it is certain that nothing was counted,
// because the script writes last and its first write fails. Only an ACL may permit some writes and deny others, and an
// unknown error inside the script may follow a write.
func Of(err error) *Error {
	if known := new(Error); errors.As(err, &known) {
		return known
	}
	if text, refused := Refusal(err); refused {
		failed := Uncounted(ServerReason(text), err)
		if (failed.Reason == Denied || failed.Reason == Refused) && strings.Contains(text, "user_script") {
			failed.Counted = weir.CountedUnknown
		}
		return failed
	}
	if dial := new(net.OpError); errors.As(err, &dial) && dial.Op == "dial" {
		return Uncounted(Lost, err)
	}
	return &Error{Reason: Lost, Err: err}
}

// ServerReason returns the reason of an error reply. Errors inside a script are quoted, or come with its name.
func ServerReason(text string) reason {
	for _, known := range []struct {
		reason reason
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

// Refusal returns the server's error reply.
func Refusal(err error) (text string, refused bool) {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		return reply.Error(), true
	}
	var reply interface {
		error
		RedisError()
	}
	if errors.As(err, &reply) {
		return reply.Error(), true
	}
	return "", false
}

// RefusedFor reports whether the server's error reply has a word.
func RefusedFor(err error, word string) bool {
	text, refused := Refusal(err)
	return refused && strings.Contains(text, word)
}

// Moving reports whether a node has some of the keys and another node the others.
func Moving(err error) bool { return RefusedFor(err, "TRYAGAIN") }

// Crossing reports whether the keys of a call are in several slots. Without a cluster client that means a cluster
// behind one address.
func Crossing(err error) bool { return RefusedFor(err, "CROSSSLOT") }

// Unanswered reports whether no answer came.
func Unanswered(err error) bool {
	_, answered := Refusal(err)
	return !answered
}

var (
	// ErrClosed is the error of a call after Close.
	ErrClosed = Uncounted(Closed, errors.New("the engine is closed"))
	// ErrCrossing is the error of one decision whose keys are in several slots. The engine then decides it lane by lane.
	ErrCrossing = Uncounted(Refused, errors.New("CROSSSLOT: the server does not keep keys of one hash tag in one slot"))
	// ErrUndone is the error of a take whose identity was undone.
	ErrUndone = Uncounted(Undone, errors.New("a decision with this identity was undone, or its slots were released: use a new identity"))
)

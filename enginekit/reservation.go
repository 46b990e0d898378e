package enginekit

import (
	"context"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/rule"
)

// root has functions of package weir. The type is that of its file kit.go.
var root = rule.Kit.(struct {
	EngineOf    func(do weir.Next, check func(...*weir.Rule) error) weir.Engine
	Reserve     func(context.Context, weir.Engine, weir.Call) (weir.Answer, error)
	Granted     func(e weir.Engine, since time.Time, d weir.Decision, withdraw func(context.Context, int64) error, c weir.Call) *weir.Reservation
	CheckAhead  func(weir.Call) error
	CheckTaken  func(weir.Call) error
	CheckEach   func([]weir.Call, []weir.Result) error
	Unsupported func(weir.Op, string) error
	NewLease    func() uint64
	Held, Spent func(*weir.Rule) *weir.Rule
	TakeOf      func(*weir.Reservation) weir.Call
	HandOver    func(*weir.Reservation) weir.Call
	Drop        func(weir.Engine, weir.Call)
})

// Reserve makes an OpReserve on e by a take: an engine implements it so. A LeakyBucket cannot be reserved. The units of a
// Concurrency get a lease, so that the reservation releases exactly these.
//
// If Reserve fails and slots may have been taken, it returns a reservation beside the error, and Cancel releases the
// slots.
func Reserve(ctx context.Context, e weir.Engine, call weir.Call) (weir.Answer, error) {
	return root.Reserve(ctx, e, call)
}

// Granted returns the reservation of a call that was decided on e at an instant after since, with the call's lease and the
// Taken of its answer. Without Taken, windows, cycles, logs and gates get nothing back in its settlement. withdraw gives units
// of a booking back; otherwise it is nil.
func Granted(e weir.Engine, since time.Time, d weir.Decision, withdraw func(ctx context.Context, n int64) error, call weir.Call) *weir.Reservation {
	return root.Granted(e, since, d, withdraw, call)
}

// TakeOf returns the take of a reservation on an engine: its requests, its Lease and the Taken of its answer, which is the
// instant of a reservation for later. [Granted] returns the reservation again.
func TakeOf(r *weir.Reservation) weir.Call { return root.TakeOf(r) }

// HandOver leaves a reservation to whoever knows its take, which it returns, perhaps in another process: slots are no longer
// renewed here, and end with their lease unless a [Renewer] renews them.
func HandOver(r *weir.Reservation) weir.Call { return root.HandOver(r) }

// Drop releases the slots of a take that failed and may have been counted, by its Lease. The engine may carry out the take
// after the release, and may be away, so Drop repeats the release for some seconds, and until it succeeds or the lease has passed.
// It waits for the first one, at most a second.
func Drop(e weir.Engine, take weir.Call) { root.Drop(e, take) }

// NewLease returns a random weir.Call.Lease, which is never 0.
func NewLease() uint64 { return root.NewLease() }

// Held returns a rule of those limits of r whose units are held until they are released, or nil if there are none. It
// has the name of r and so shares its states.
func Held(r *weir.Rule) *weir.Rule { return root.Held(r) }

// Spent works like Held for the limits whose units are spent.
func Spent(r *weir.Rule) *weir.Rule { return root.Spent(r) }

// Renewer is an optional ability of an engine. Renew has the leases of slots begin now, which were taken with their Lease,
// if all of them are still held; it reads nothing else of the call. A caller that knows the requests and the Lease can renew
// them, also in another process: see [HandOver]. A weir.Memory has it.
type Renewer interface {
	Renew(ctx context.Context, slots weir.Call) (held bool, err error)
}

// Listener is an optional ability of an engine on which other processes release slots. Listen calls hear, which must not block,
// when slots of a request may have come free, until stop is called; close of the engine calls it, too. hears reports whether such
// signals reach this process now. A signal may be lost, or come without reason.
type Listener interface {
	Listen(slots weir.Request, hear func()) (hears func() bool, stop func())
}

package enginekit

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/weirflow/weir"
)

// Store is a database that compares and swaps. [NewStore] makes an engine of one. A row has the states of one key under
// the rules of one name, as bytes, and a version that changes with each write.
//
// An error that says with WasCounted that nothing was counted promises that nothing was written: see [weir.WasCounted].
// After ErrConflict nothing was written, and the engine tries again. After any other error of Swap or Lock, a change may
// have been made.
type Store interface {
	// Load returns the row of each key, in order, and the store's clock, in nanoseconds since the Unix epoch. A key
	// without a row has the zero Row.
	Load(ctx context.Context, keys []string) (rows []Row, now int64, err error)

	// Swap makes each of the changes whose rows have the old versions, all its writes or none, and sets its Done. It makes
	// no change if the store's clock is before at. Otherwise a change depends on its own rows alone. now is the store's
	// clock.
	Swap(ctx context.Context, at int64, changes []Change) (now int64, err error)
}

// Locker is an optional ability of a Store. The engine uses it for keys whose swaps keep failing, because other processes
// swap them too.
type Locker interface {
	// Lock locks the rows of the keys, which are in order, calls decide with them and the store's clock, and makes the
	// writes that it returns, in one transaction. It may call decide again.
	Lock(ctx context.Context, keys []string, decide func(rows []Row, now int64) []Write) error
}

// Sweeper is an optional ability of a Store whose rows do not expire on their own.
type Sweeper interface {
	// Sweep reads some rows whose keys follow after, and deletes those that ended before an instant. It returns the key of
	// the last row that it read, or "" after the last of all.
	Sweep(ctx context.Context, after string, before int64) (last string, err error)
}

// ErrConflict is wrapped by errors of a Store that could not write because of other writers, as after a deadlock.
var ErrConflict = errors.New("conflict with other writers")

// Row is what a Store has of a key.
type Row struct {
	Version int64 // never 0
	State   []byte
}

// Change is the writes of one or more decisions.
type Change struct {
	Writes []Write // in order of their keys
	Done   bool
}

// Write replaces a row.
type Write struct {
	Key   string
	Old   int64 // the version that the row must have; 0 if there must be none
	New   int64 // a random number; 0 only compares the version
	State []byte
	Ends  int64 // when the row may be deleted, in nanoseconds since the Unix epoch; weir.Never if it may not

	Found *Row // the row, if Swap did not make the change and knows it
}

// StoreOptions configure a [StoreEngine]. The zero value is ready to use. Bounds below zero are the defaults, too.
type StoreOptions struct {
	// Name begins the errors of the engine. Default: store.
	Name string
	// Clock returns the time in nanoseconds since the Unix epoch. It is for tests, and for a store without a clock. The
	// clocks of all processes then determine the decisions. Default: the clock of the store.
	Clock func() int64
	// Flights is the most calls of the store in progress at a time. Default: 4.
	Flights int
	// Batch is the most rows in one call of the store. Default: 128.
	Batch int
	// Rows is the number of rows that the engine remembers, so that a decision on one of them takes one call. Default:
	// 65,536.
	Rows int
	// Conflicts is how often a swap of a row fails before the engine locks it, if the store is a Locker. A negative number
	// locks always. Default: 2.
	Conflicts int
	// Timeout bounds one call of the store. Default: 5 seconds.
	Timeout time.Duration
	// MaxEntries bounds the count of a SlidingLog or RateGate, and the slots of a Concurrency, because a decision writes all
	// of their entries. Check and every call refuse larger limits. Default: 4,096.
	MaxEntries int64
}

// defaultLease is the lease of a [weir.Concurrency] without one on a StoreEngine. Every slot has a lease, so that no fault
// can hold it permanently.
const defaultLease = 30 * time.Second

func (o StoreOptions) withDefaults() StoreOptions {
	o.Name = cmp.Or(o.Name, "store")
	o.Flights = cmp.Or(max(o.Flights, 0), 4)
	o.Batch = cmp.Or(max(o.Batch, 0), 128)
	o.Rows = cmp.Or(max(o.Rows, 0), 1<<16)
	o.Conflicts = cmp.Or(o.Conflicts, 2)
	o.Timeout = cmp.Or(max(o.Timeout, 0), 5*time.Second)
	o.MaxEntries = cmp.Or(max(o.MaxEntries, 0), 4096)
	return o
}

// StoreError reports why a store could not decide. Nothing was admitted.
type StoreError struct {
	Name    string // of the engine
	Op      weir.Op
	Counted weir.Counted
	Err     error
}

func (e *StoreError) Error() string {
	counted := ""
	if e.Counted == weir.CountedUnknown {
		counted = " (it may have been counted)"
	}
	return e.Name + ": " + e.Op.String() + ": could not decide" + counted + ": " + e.Err.Error()
}

func (e *StoreError) Unwrap() error { return e.Err }

// WasCounted returns Counted, for weir.WasCounted.
func (e *StoreError) WasCounted() weir.Counted { return e.Counted }

// Unavailable reports whether the same call may succeed later, for weir.Unavailable. It may, unless the caller left or a
// stored state is damaged.
func (e *StoreError) Unavailable() bool {
	return !errors.Is(e.Err, context.Canceled) && !errors.Is(e.Err, errDamaged)
}

var (
	errDamaged   = errors.New("a stored state is damaged, or another version has written it")
	errContended = errors.New("other processes change the keys too often")
)

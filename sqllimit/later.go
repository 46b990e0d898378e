package sqllimit

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync/atomic"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// OpenError is an error of Open. If the engine was made with [Options.ConnectLater], its calls wrap one until the table has
// been opened.
type OpenError struct {
	// Unreachable is set if no server has answered: it refuses connections, closes them, is starting, or is silent. It is not
	// set if the name of the host is unknown.
	Unreachable bool
	Err         error
}

func (e *OpenError) Error() string { return "sqllimit: open: " + e.Err.Error() }

func (e *OpenError) Unwrap() error { return e.Err }

// WasCounted returns CountedNo, for weir.WasCounted.
func (e *OpenError) WasCounted() weir.Counted { return weir.CountedNo }

// unreachable reports whether an error shows that no server has answered.
func (t *table) unreachable(err error) bool {
	if state := t.state(err); state != "" {
		return state == "57P01" || state == "57P02" || state == "57P03" // it stops, has crashed, or starts
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return false
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok || errors.Is(err, fs.ErrPermission) {
		return false
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) ||
		strings.HasSuffix(err.Error(), "invalid connection") // of go-sql-driver/mysql: the server has closed it
}

// lateTable is a table that its first calls open, one at a time.
type lateTable struct {
	*table
	create bool
	turn   chan struct{}
	opened atomic.Bool
}

var (
	_ enginekit.Locker  = (*lateTable)(nil)
	_ enginekit.Sweeper = (*lateTable)(nil)
)

// ready opens the table unless a call has done so.
func (l *lateTable) ready(ctx context.Context) error {
	if l.opened.Load() {
		return nil
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return &OpenError{true, ctx.Err()}
	}
	defer func() { <-l.turn }()
	if l.opened.Load() {
		return nil
	}
	if err := l.table.open(ctx, l.create); err != nil {
		return err
	}
	l.opened.Store(true)
	return nil
}

func (l *lateTable) Load(ctx context.Context, keys []string) ([]enginekit.Row, int64, error) {
	if err := l.ready(ctx); err != nil {
		return nil, 0, err
	}
	return l.table.Load(ctx, keys)
}

func (l *lateTable) Swap(ctx context.Context, at int64, changes []enginekit.Change) (int64, error) {
	if err := l.ready(ctx); err != nil {
		return 0, err
	}
	return l.table.Swap(ctx, at, changes)
}

func (l *lateTable) Lock(ctx context.Context, keys []string, decide func([]enginekit.Row, int64) []enginekit.Write) error {
	if err := l.ready(ctx); err != nil {
		return err
	}
	return l.table.Lock(ctx, keys, decide)
}

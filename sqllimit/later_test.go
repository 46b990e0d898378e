package sqllimit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// connects is a database whose connections a function makes.
type connects func(ctx context.Context) (driver.Conn, error)

func (c connects) Connect(ctx context.Context) (driver.Conn, error) { return c(ctx) }
func (c connects) Driver() driver.Driver                            { return nil }

// stated is an error of a server.
type stated string

func (s stated) Error() string    { return "SQLSTATE " + string(s) }
func (s stated) SQLState() string { return string(s) }

func TestOnlyAServerThatDoesNotAnswerIsConnectedLater(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, tt := range []struct {
		err   error
		later bool
	}{
		{dial(syscall.ECONNREFUSED), true},
		{dial(syscall.EHOSTUNREACH), true},
		{dial(syscall.ENOENT), true}, // the socket of a server that is down
		{dial(&net.DNSError{Err: "server misbehaving", IsTemporary: true}), true},
		{context.DeadlineExceeded, true},
		{io.EOF, true},
		{io.ErrUnexpectedEOF, true},
		{driver.ErrBadConn, true},
		{stated("57P01"), true},
		{stated("57P03"), true},
		{dial(syscall.EACCES), false},
		{dial(&net.DNSError{Err: "no such host", IsNotFound: true}), false},
		{dial(tls.AlertError(42)), false},
		{x509.UnknownAuthorityError{}, false},
		{stated("28P01"), false}, // wrong password
		{stated("42501"), false}, // missing right
		{stated("3D000"), false}, // no such database
		{context.Canceled, false},
		{errors.New("the driver wants other options"), false},
	} {
		db := sql.OpenDB(connects(func(context.Context) (driver.Conn, error) { return nil, fmt.Errorf("driver: %w", tt.err) }))
		_, err := Open(t.Context(), db, PostgreSQL, Options{Create: true})
		if failed, ok := errors.AsType[*OpenError](err); !ok || failed.Unreachable != tt.later || !errors.Is(err, tt.err) {
			t.Errorf("%v: got %#v, want an OpenError with Unreachable %v", tt.err, err, tt.later)
		}
		e, err := Open(t.Context(), db, PostgreSQL, Options{Create: true, ConnectLater: true})
		if (err == nil) != tt.later {
			t.Errorf("%v, with ConnectLater: got %v", tt.err, err)
		}
		if err == nil {
			_, err = e.Take(t.Context(), rule(t).For("k", 1))
			if failed, ok := errors.AsType[*OpenError](err); !ok || !failed.Unreachable || weir.WasCounted(err) != weir.CountedNo || !weir.Unavailable(err) {
				t.Errorf("%v, of a call: got %v, want an OpenError of which nothing was counted", tt.err, err)
			}
		}
		_ = db.Close()
	}
}

func rule(t *testing.T) *weir.Rule {
	t.Helper()
	r, err := weir.NewRule("r", weir.FixedWindow{Rate: weir.PerDay(10)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A server that is silent has one connection of each process that tries it, and no call waits for it longer than its time.
func TestCallsOpenATableOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, tries atomic.Int64
		db := sql.OpenDB(connects(func(ctx context.Context) (driver.Conn, error) {
			tries.Add(1)
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		defer db.Close()
		within, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		e, err := Open(within, db, MySQL, Options{ConnectLater: true, Store: enginekit.StoreOptions{Timeout: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		began, r := time.Now(), rule(t)
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if _, err := e.Take(t.Context(), r.For(strconv.Itoa(i%10), 1)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want that the time is over", err)
				}
			})
		}
		all.Wait()
		if most.Load() != 1 || tries.Load() < 3 {
			t.Errorf("%d connections at a time in %d tries, want one at a time", most.Load(), tries.Load())
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("100 calls took %v", took)
		}
	})
}

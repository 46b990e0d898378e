package drivertest

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/sqltest"
	"github.com/weirflow/weir/sqllimit"
)

// sources are data sources of a server at an address.
var sources = map[string]struct {
	dialect sqllimit.Dialect
	at      func(host, port string) string
}{
	"pgx": {sqllimit.PostgreSQL, func(host, port string) string { return "host=" + host + " port=" + port + " user=u sslmode=disable" }},
	"postgres": {sqllimit.PostgreSQL, func(host, port string) string { // while it connects, it heeds no context
		return "host=" + host + " port=" + port + " user=u sslmode=disable connect_timeout=1"
	}},
	"mysql": {sqllimit.MySQL, func(host, port string) string { return "u@tcp(" + host + ":" + port + ")/d" }},
}

// Each driver has its own errors for a server that does not answer.
func TestEveryDriverSaysThatItsServerIsUnreachable(t *testing.T) {
	for driver, source := range sources {
		for fault, serve := range map[string]func(net.Conn){"closes": func(c net.Conn) { _ = c.Close() }, "is silent": func(net.Conn) {}, "refuses": nil} {
			host, port := listener(t, serve)
			within, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			_, err := sqllimit.Open(within, openDB(t, driver, source.at(host, port)), source.dialect, sqllimit.Options{ConnectLater: true})
			cancel()
			if err != nil {
				t.Errorf("%s, a server that %s: got %v, want an engine that connects later", driver, fault, err)
			}
		}
		unknown := strings.Replace(source.at("no-such-host.invalid", "1"), "connect_timeout=1", "connect_timeout=60", 1) // however slow the resolver is
		_, err := sqllimit.Open(t.Context(), openDB(t, driver, unknown), source.dialect, sqllimit.Options{ConnectLater: true})
		if failed, ok := errors.AsType[*sqllimit.OpenError](err); !ok || failed.Unreachable {
			t.Errorf("%s, an unknown host: got %v, want an error that no wait mends", driver, err)
		}
	}
}

// listener serves connections at an address, or refuses them without a function.
func listener(t *testing.T, serve func(net.Conn)) (host, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if serve == nil {
		_ = l.Close()
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
		}
	}()
	host, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

// The first decisions after the server is back are in force, on a table that did not exist before.
func TestAnEngineOpensItsTableWhenTheServerIsBack(t *testing.T) {
	postgres, maria := sqltest.PostgreSQL(t, "fsync=off"), sqltest.MariaDB(t)
	for driver, d := range map[string]struct {
		server  *sqltest.Server
		dialect sqllimit.Dialect
		source  string
	}{
		"pgx":      {postgres, sqllimit.PostgreSQL, postgres.URL()},
		"postgres": {postgres, sqllimit.PostgreSQL, postgres.URL()},
		"mysql":    {maria, sqllimit.MySQL, "root@unix(" + maria.Socket() + ")/test"},
	} {
		d.server.Kill()
		e, err := sqllimit.Open(t.Context(), openDB(t, driver, d.source), d.dialect, sqllimit.Options{ConnectLater: true, Create: true, Table: newTable()})
		if err != nil {
			t.Fatalf("%s: %v", driver, err)
		}
		login := mustRule(t, "login", weir.FixedWindow{Rate: weir.PerDay(5)})
		if _, err := e.Take(t.Context(), login.For("alice", 1)); err == nil || weir.WasCounted(err) != weir.CountedNo {
			t.Errorf("%s: got %v without a server, want an error that nothing was counted", driver, err)
		}
		d.server.Start()
		for i := range 6 {
			if got, err := e.Take(t.Context(), login.For("alice", 1)); err != nil || got.Allowed != (i < 5) {
				t.Errorf("%s: take %d with the server: got %+v and %v", driver, i+1, got, err)
			}
		}
	}
}

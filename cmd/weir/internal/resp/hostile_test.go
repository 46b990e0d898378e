package resp

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

func TestASilentEncryptedClientBeyondTheBoundHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, func(o *setup) { o.Clients = 1 })
		first := d.dial(t)
		_ = first.do("PING")
		here, there := net.Pipe()
		t.Cleanup(func() { _ = here.Close() })
		d.on.conns <- tls.Server(there, &tls.Config{})
		synctest.Wait()
		began := time.Now()
		for range 2 {
			if got := first.do("PING"); got != "+PONG" || time.Since(began) > 0 {
				t.Errorf("another client got %s after %v", got, time.Since(began))
			}
		}
	})
}

// longWrites remembers the longest write.
type longWrites struct {
	net.Conn
	longest int
}

func (l *longWrites) Write(b []byte) (int, error) {
	l.longest = max(l.longest, len(b))
	return l.Conn.Write(b)
}

func TestAnswersThatNobodyReadsTakeLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, nil)
		here, there := net.Pipe()
		t.Cleanup(func() { _ = here.Close() })
		server := &longWrites{Conn: there}
		d.on.conns <- server
		go func() {
			_, _ = io.WriteString(here, encoded("ECHO", strings.Repeat("x", 4096))+strings.Repeat("COMMAND\n", 10_000))
			_ = here.Close()
		}()
		_, _ = io.Copy(io.Discard, here)
		synctest.Wait()
		if most := 2 * mostAnswers; server.longest == 0 || server.longest > most {
			t.Errorf("%d bytes of answers waited for the client, want 1 to %d", server.longest, most)
		}
	})
}

// keys returns what tells callers apart by a file of these lines, and a function that replaces them.
func keys(t *testing.T, lines ...string) (*auth.Keys, func(lines ...string)) {
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(lines ...string) {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(lines...)
	known, err := auth.Open(auth.Files{Tokens: path})
	if err != nil {
		t.Fatal(err)
	}
	return known, func(lines ...string) {
		write(lines...)
		if _, err := known.Reload(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARevokedTokenHasNoRightsOnOpenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, form := auth.NewToken()
		_, other := auth.NewToken()
		known, replace := keys(t, "shop "+form+" take")
		c := start(t, func(o *setup) { o.Auth = &auth.Port{Keys: known} }).dial(t)
		if got := c.do("AUTH", token); got != "+OK" {
			t.Fatal(got)
		}
		if got := c.do("WEIR.TAKE", "login", "k"); !strings.HasPrefix(got, "1 ") {
			t.Fatal(got)
		}
		replace("other " + other + " take")
		if got := c.do("WEIR.TAKE", "login", "k"); !strings.HasPrefix(got, "-NOPERM") {
			t.Errorf("a token that was taken out of the file got %s", got)
		}
	})
}

func TestAStrangerHasLittleMemoryAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, form := auth.NewToken()
		known, _ := keys(t, "shop "+form+" take")
		d := start(t, func(o *setup) { o.Auth = &auth.Port{Keys: known} })
		c := d.dial(t)
		go func() { _, _ = io.WriteString(c.conn, largePeek()) }()
		if got, next := c.answer(), c.answer(); got != "-ERR Protocol error: a command before AUTH has more than 16384 bytes" || next != "EOF" {
			t.Errorf("a large command got %s, then %s", got, next)
		}
		c, began := d.dial(t), time.Now()
		time.Sleep(strangerTimeout - time.Second)
		if got := c.do("PING"); got != "+PONG" {
			t.Errorf("a stranger got %s", got)
		}
		if got := c.answer(); got != "EOF" || time.Since(began) != strangerTimeout {
			t.Errorf("a stranger got %s after %v, want EOF after %v", got, time.Since(began), strangerTimeout)
		}
		c = d.dial(t)
		_ = c.do("AUTH", token)
		time.Sleep(2 * strangerTimeout)
		c.send(largePeek())
		if got := c.answer(); !strings.HasPrefix(got, "1 100 ") {
			t.Errorf("after AUTH, a large command got %s", got)
		}
	})
}

// largePeek is a command of more than usualSpace.
func largePeek() string {
	words := []string{"WEIR.PEEK"}
	for range 5 {
		words = append(words, "day", strings.Repeat("k", 4096), "1")
	}
	return encoded(words...)
}

func TestFewLargeCommandsAreInMemoryAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, text := start(t, nil), largePeek()
		var held [mostLarge]*client
		for i := range held {
			held[i] = d.dial(t)
			held[i].send(text[:usualSpace])
		}
		synctest.Wait()
		late := d.dial(t)
		go func() { _, _ = io.WriteString(late.conn, text) }()
		if got, next := late.answer(), late.answer(); got != "-ERR Protocol error: too many large commands are being read; ask again" || next != "EOF" {
			t.Errorf("one large command too many got %s, then %s", got, next)
		}
		if got := d.dial(t).do("PING"); got != "+PONG" {
			t.Errorf("a small command beside large ones got %s", got)
		}
		held[0].send(text[usualSpace:])
		if got := held[0].answer(); !strings.HasPrefix(got, "1 100 ") {
			t.Errorf("a large command got %s", got)
		}
		_ = held[1].conn.Close()
		synctest.Wait()
		for range 2 {
			c := d.dial(t)
			go func() { _, _ = io.WriteString(c.conn, text) }()
			if got := c.answer(); !strings.HasPrefix(got, "1 100 ") {
				t.Errorf("in a place that is free, a large command got %s", got)
			}
		}
	})
}

func TestACommandArrivesWithinItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, nil).dial(t)
		time.Sleep(idleTimeout / 2)
		if got := c.do("PING"); got != "+PONG" {
			t.Fatal(got)
		}
		began := time.Now()
		var writer sync.WaitGroup
		defer writer.Wait() // it may sleep when the connection ends
		writer.Go(func() {
			for _, octet := range []byte(largePeek()) {
				if _, err := c.conn.Write([]byte{octet}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		if got := c.answer(); got != "EOF" || time.Since(began) != commandTimeout {
			t.Errorf("a command that comes drop by drop got %s after %v, want EOF after %v", got, time.Since(began), commandTimeout)
		}
	})
}

// failing is a listener whose first connections fail.
type failing struct {
	*pipes
	times int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.times--; f.times >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.pipes.Accept()
}

func TestConnectionsThatAreNotAcceptedEndNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, nil)
		on := &failing{&pipes{conns: make(chan net.Conn), closed: make(chan struct{})}, 3}
		ended := make(chan error, 1)
		go func() { ended <- d.Serve(on) }()
		other := &daemon{d.Server, on.pipes}
		if got := other.dial(t).do("PING"); got != "+PONG" {
			t.Errorf("after failures, a client got %s", got)
		}
		_ = on.Close()
		if err := <-ended; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	})
}

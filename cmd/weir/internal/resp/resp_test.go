package resp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// daemon is a server on a memory engine.
type daemon struct {
	*Server
	on *pipes
}

// setup is what a server of tests is made of.
type setup struct {
	Options
	desk decide.Options
}

func start(t testing.TB, change func(*setup)) *daemon {
	log := slog.New(slog.DiscardHandler)
	o := setup{
		Options{Clients: 100, Log: log, Auth: &auth.Port{Open: auth.Anyone("test", auth.All)}},
		decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Log: log},
	}
	for _, text := range []string{"login=token bucket 5/m", "day=fixed window 100/d", "slow=leaky bucket 1/s queue 3", "one=concurrency 2 lease 30s"} {
		r, err := weir.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		o.desk.Rules = append(o.desk.Rules, r)
	}
	if change != nil {
		change(&o)
	}
	o.Desk = decide.New(o.desk)
	d := &daemon{New(o.Options), &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}}
	go func() { _ = d.Serve(d.on) }()
	t.Cleanup(func() {
		_ = d.on.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = d.Shutdown(ctx)
	})
	return d
}

// dial returns a client.
func (d *daemon) dial(t testing.TB) *client {
	here, there := net.Pipe()
	d.on.conns <- there
	t.Cleanup(func() { _ = here.Close() })
	return &client{t, here, bufio.NewReader(here)}
}

type client struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func (c *client) send(text string) {
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// encoded returns a command of these words.
func encoded(words ...string) string {
	b := appendHead(nil, '*', len(words))
	for _, word := range words {
		b = appendBulk(b, word)
	}
	return string(b)
}

func (c *client) do(words ...string) string {
	c.t.Helper()
	c.send(encoded(words...))
	return c.answer()
}

// answer reads a reply and returns it in short.
func (c *client) answer() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case ':':
		return line[1:]
	case '$':
		b := make([]byte, n+2)
		_, _ = io.ReadFull(c.in, b)
		return string(b[:n])
	case '%':
		n *= 2
		fallthrough
	case '*':
		var parts []string
		for range n {
			parts = append(parts, c.answer())
		}
		return strings.Join(parts, " ")
	}
	return line
}

// WEIR.RESET needs the scope admin, and leaves a line. DEL clears keys whose limits calls bring, as part of the traffic.
func TestAResetOfAKeyLeavesALine(t *testing.T) {
	var log strings.Builder
	d := start(t, func(o *setup) { o.desk.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	c := d.dial(t)
	c.do("CL.THROTTLE", "k", "1", "1", "60")
	c.do("DEL", "k")
	c.do("WEIR.TAKE", "login", "k")
	if got := c.do("WEIR.RESET", "login", "k"); got != "1" {
		t.Fatalf("got %s, want 1", got)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "msg=audit who=test from=pipe what=reset rule=login key=k\n") {
		t.Errorf("the log is %q, want one line about the reset", got)
	}
}

func TestCommandsAnswerAsTheTableSays(t *testing.T) {
	text, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		title, _, _ := strings.Cut(strings.TrimPrefix(paragraph, "# "), "\n")
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, sent := start(t, nil).dial(t), ""
				for line := range strings.SplitSeq(paragraph, "\n") {
					switch mark, rest, _ := strings.Cut(line, " "); {
					case mark == ">":
						sent = rest
						c.send(encoded(strings.Fields(rest)...))
					case mark == "<":
						cases++
						if got := c.answer(); got != rest {
							t.Errorf("%s\n got %s\nwant %s", sent, got, rest)
						}
					case strings.HasPrefix(mark, "+"):
						pause, err := time.ParseDuration(mark[1:])
						if err != nil {
							t.Fatal(err)
						}
						time.Sleep(pause)
					}
				}
			})
		})
	}
	if cases < 40 {
		t.Errorf("the table has %d cases, want 40", cases)
	}
}

// counted counts the calls of an engine.
func counted(e weir.Engine, calls *atomic.Int64) weir.Engine {
	return weir.Wrap(e, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		calls.Add(1)
		return next(ctx, call)
	})
}

func TestAPipelineIsOneCallOfTheEngineAndAnsweredInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		d := start(t, func(o *setup) { o.desk.Engine = counted(o.desk.Engine, &calls) })
		c := d.dial(t)
		var pipeline strings.Builder
		for range 100 {
			pipeline.WriteString(encoded("CL.THROTTLE", "k", "49", "1", "3600"))
		}
		pipeline.WriteString(encoded("PING"))
		go c.send(pipeline.String())
		for i := range 100 {
			limited := "0"
			if i >= 50 {
				limited = "1"
			}
			if got := c.answer(); !strings.HasPrefix(got, limited+" 50 ") {
				t.Fatalf("answer %d is %s", i, got)
			}
		}
		if got := c.answer(); got != "+PONG" {
			t.Errorf("got %s, want PONG last", got)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("got %d calls of the engine, want 1", n)
		}
	})
}

func TestCommandsMayArriveByteByByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, nil).dial(t)
		go func() {
			for _, octet := range []byte(encoded("WEIR.TAKE", "login", "alice", "2") + "PING\r\n\r\n" + encoded("PING")) {
				c.send(string(octet))
			}
		}()
		for _, want := range []string{"1 5 3 0 24000 0", "+PONG", "+PONG"} {
			if got := c.answer(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

func TestLargeCommandsAndKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, nil)
		words := []string{"WEIR.TAKE"}
		for i := range weir.MaxRequests {
			words = append(words, "day", strings.Repeat("k", weir.MaxKey-3)+fmt.Sprintf("%03d", i), "1")
		}
		c := d.dial(t)
		go c.send(encoded(words...) + encoded("PING"))
		if got, next := c.answer(), c.answer(); got != "1 100 99 0 0 0" && !strings.HasPrefix(got, "1 100 99 0 ") || next != "+PONG" {
			t.Errorf("a command of 128 longest keys got %.80s, then %s", got, next)
		}
		for text, want := range map[string]string{
			"*99999\r\n":                   "-ERR Protocol error: invalid multibulk length: not 0 to 388",
			"*-1\r\n":                      "-ERR Protocol error: invalid multibulk length: not 0 to 388",
			"*1\r\n+PING\r\n":              "-ERR Protocol error: expected '$', got '+'",
			"*1\r\n$1048577\r\n":           "-ERR Protocol error: invalid bulk length: not 0 to 1048576",
			"*1\r\n$4\r\nPINGxx":           "-ERR Protocol error: a bulk string does not end with CR LF",
			"*1" + strings.Repeat("1", 30): "-ERR Protocol error: invalid multibulk length: not 0 to 388",
			strings.Repeat("x", maxInline): "-ERR Protocol error: too big inline request",
			"*2\n":                         "-ERR Protocol error: invalid multibulk length: not 0 to 388",
		} {
			c := d.dial(t)
			go func() { _, _ = io.WriteString(c.conn, text) }()
			if got := c.answer(); got != want {
				t.Errorf("%.20q got %s, want %s", text, got, want)
			}
			if got := c.answer(); got != "EOF" {
				t.Errorf("%.20q: the connection goes on with %s", text, got)
			}
			_ = c.conn.Close()
			synctest.Wait()
		}
	})
}

// A key that is too long is an error of its command alone, also between others of a pipeline.
func TestAKeyThatIsTooLongIsAnErrorOfItsCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("k", weir.MaxKey+1)
		c := start(t, nil).dial(t)
		for _, words := range [][]string{
			{"WEIR.TAKE", "day", long}, {"WEIR.TAKE", "day", "k", "1", "day", long, "1"}, {"WEIR.PEEK", "day", long}, {"WEIR.RECORD", "day", long},
			{"WEIR.RETURN", "day", long}, {"WEIR.RESET", "day", long}, {"WEIR.RESERVE", "0", "day", long}, {"WEIR.WAIT", "0", "day", long},
			{"CL.THROTTLE", long, "15", "30", "60"}, {"DEL", long},
		} {
			go c.send(encoded("WEIR.PEEK", "day", "k") + encoded(words...) + encoded("WEIR.PEEK", "day", "k"))
			before, got, after := c.answer(), c.answer(), c.answer()
			if !strings.HasPrefix(got, "-ERR ") || !strings.Contains(got, "key of 4097 bytes is longer than 4096") || before != "1 100 100 0 0 0" || after != before {
				t.Errorf("%s: got %s, then %.100s, then %s", words[0], before, got, after)
			}
		}
	})
}

func TestAnHTTPRequestIsNoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, nil)
		for _, text := range []string{"POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\n", "Host: localhost\r\n"} {
			c := d.dial(t)
			go func() { _, _ = io.WriteString(c.conn, text+"WEIR.TAKE login alice 5\r\n") }()
			if got := c.answer(); got != "EOF" {
				t.Errorf("%q got %s", text, got)
			}
			_ = c.conn.Close()
		}
		if got := d.dial(t).do("WEIR.PEEK", "login", "alice"); got != "1 5 5 0 0 0" {
			t.Errorf("the bucket has %s, want it full", got)
		}
	})
}

// A reservation holds a slot until its token settles it, and units come back by their true cost.
func TestATokenSettlesAReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, nil)
		c := d.dial(t)
		token, decision, _ := strings.Cut(c.do("WEIR.RESERVE", "0", "login", "alice", "4"), " ")
		if decision != "1 5 1 0 48000 0" || len(token) < 20 {
			t.Errorf("a reservation got %q and %s", token, decision)
		}
		if got := c.do("WEIR.SETTLE", token, "1", "2"); !strings.HasPrefix(got, "-ERR there is one cost") {
			t.Errorf("too many costs got %s", got)
		}
		if got := c.do("WEIR.SETTLE", token, "1"); got != "+OK" {
			t.Errorf("a settlement got %s", got)
		}
		if got := c.do("WEIR.PEEK", "login", "alice"); got != "1 5 4 0 12000 0" {
			t.Errorf("three of four units are to come back: %s", got)
		}
		if got := c.do("WEIR.SETTLE", token); !strings.HasPrefix(got, "-ERR the token is unknown") {
			t.Errorf("a second settlement got %s", got)
		}
		first, _, _ := strings.Cut(c.do("WEIR.RESERVE", "0", "one", "job", "2"), " ")
		if got := c.do("WEIR.RESERVE", "0", "one", "job"); !strings.HasPrefix(got, " 0 2 0 ") {
			t.Errorf("a third slot of two got %q", got)
		}
		if got := c.do("WEIR.WAIT", "0", "one", "job"); !strings.HasPrefix(got, "-ERR the rule holds slots") {
			t.Errorf("a wait for slots got %q", got)
		}
		other := d.dial(t)
		other.send(encoded("WEIR.RESERVE", "5000", "one", "job"))
		synctest.Wait()
		if got := c.do("WEIR.SETTLE", first); got != "+OK" {
			t.Errorf("a release got %s", got)
		}
		if got := other.answer(); !strings.Contains(got, " 1 2 1 ") {
			t.Errorf("the waiting caller got %q, want the slot", got)
		}
	})
}

func TestAWaitHoldsBackOnlyItsConnectionAndEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		defer func() {
			if log.Len() > 0 {
				t.Errorf("the engine has failed by a client that left: %s", &log)
			}
		}()
		d := start(t, func(o *setup) { o.desk.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		waiter, other := d.dial(t), d.dial(t)
		if got := other.do("WEIR.TAKE", "login", "k", "5"); got != "1 5 0 0 60000 0" {
			t.Fatal(got)
		}
		began := time.Now()
		waiter.send(encoded("WEIR.WAIT", "20000", "login", "k") + encoded("PING"))
		synctest.Wait()
		if got := other.do("PING"); got != "+PONG" || time.Since(began) > 0 {
			t.Errorf("another connection got %s after %v", got, time.Since(began))
		}
		if got := waiter.answer(); got != "1 5 0 0 60000 0" || time.Since(began) != 12*time.Second {
			t.Errorf("the waiter got %s after %v, want its unit after 12s", got, time.Since(began))
		}
		if got := waiter.answer(); got != "+PONG" {
			t.Errorf("the command after the wait got %s", got)
		}
		waiter.send(encoded("WEIR.WAIT", "20000", "login", "k"))
		synctest.Wait()
		_ = waiter.conn.Close()
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if got := other.do("WEIR.PEEK", "login", "k"); got != "1 5 1 0 48000 0" {
			t.Errorf("after a waiter left, the bucket has %s, want its unit there", got)
		}
	})
}

func TestShutdownEndsWaitsAndAnswersWhatArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, nil)
		waiter, idle := d.dial(t), d.dial(t)
		_ = waiter.do("WEIR.TAKE", "login", "k", "5")
		waiter.send(encoded("WEIR.WAIT", "20000", "login", "k"))
		synctest.Wait()
		stopped := make(chan time.Duration)
		go func() {
			began := time.Now()
			_ = d.Shutdown(t.Context())
			stopped <- time.Since(began)
		}()
		if got := waiter.answer(); got != "-UNAVAILABLE the daemon is stopping, and the caller was not admitted" {
			t.Errorf("the waiter got %s", got)
		}
		if got := idle.answer(); got != "EOF" {
			t.Errorf("the idle client got %s", got)
		}
		if took := <-stopped; took > 0 {
			t.Errorf("the shutdown took %v", took)
		}
	})
}

func TestClientsBeyondTheBoundAndSilentOnesAreTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, func(o *setup) { o.Clients = 1 })
		first := d.dial(t)
		if got := first.do("PING"); got != "+PONG" {
			t.Fatal(got)
		}
		if got := d.dial(t).answer(); got != "-ERR max number of clients reached" {
			t.Errorf("one too many got %s", got)
		}
		began := time.Now()
		if got := first.answer(); got != "EOF" || time.Since(began) != idleTimeout {
			t.Errorf("a silent client got %s after %v", got, time.Since(began))
		}
		if got := d.dial(t).do("PING"); got != "+PONG" {
			t.Errorf("its place is not free: %s", got)
		}
	})
}

func TestAnEngineThatFailsOrPanicsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		d := start(t, func(o *setup) {
			o.desk.Engine = weir.Wrap(o.desk.Engine, func(context.Context, weir.Call, weir.Next) (weir.Answer, error) {
				return weir.Answer{}, io.ErrUnexpectedEOF
			})
			o.desk.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		c := d.dial(t)
		want := "-UNAVAILABLE the engine could not decide, and admitted nothing, though it may have counted this command"
		if got := c.do("WEIR.TAKE", "login", "k"); got != want || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("got %s and the log %q", got, &log)
		}
		p := start(t, func(o *setup) {
			o.desk.Engine = weir.Wrap(o.desk.Engine, func(context.Context, weir.Call, weir.Next) (weir.Answer, error) { panic("no") })
		})
		if got := p.dial(t).do("WEIR.TAKE", "login", "k"); got != "EOF" {
			t.Errorf("a panic answered %s", got)
		}
		if got := p.dial(t).do("PING"); got != "+PONG" {
			t.Errorf("after a panic, the server answers %s", got)
		}
	})
}

func TestScopesDecideWhatAClientMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commands := map[auth.Scope][]string{
			auth.Take:    {"WEIR.TAKE login k", "WEIR.PEEK login k", "WEIR.RECORD login k", "WEIR.WAIT 1 login k"},
			auth.Refund:  {"WEIR.RETURN login k"},
			auth.Admin:   {"WEIR.RESET login k"},
			auth.Dynamic: {"CL.THROTTLE k 1 1 1"},

			auth.Dynamic | auth.Refund: {"CL.THROTTLE k 1 1 1 -1", "DEL k"},
		}
		for has := range commands {
			c := start(t, func(o *setup) { o.Auth.Open = auth.Anyone("test", has) }).dial(t)
			for scope, lines := range commands {
				for _, line := range lines {
					if got := c.do(strings.Fields(line)...); strings.HasPrefix(got, "-NOPERM") == (has&scope == scope) {
						t.Errorf("with scope %s, %s got %s", has, line, got)
					}
				}
			}
		}
		nobody := start(t, func(o *setup) { o.Auth.Open = nil }).dial(t)
		if got := nobody.do("HELLO", "3", "AUTH", "default", "wrong"); !strings.HasPrefix(got, "-WRONGPASS") {
			t.Errorf("an unknown token got %s", got)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(encoded("CL.THROTTLE", "k", "15", "30", "60")))
	f.Add([]byte("PING\r\n"))
	f.Add([]byte("*0\r\n*1\r\n$0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		args, n, need, err := decode(b, nil)
		switch {
		case err != nil:
			return
		case n == 0 && need <= len(b) || n > len(b) || need > maxCommand:
			t.Fatalf("%d bytes: took %d, needs %d", len(b), n, need)
		case n == 0:
			return
		}
		if len(args) > maxArgs {
			t.Fatalf("%d words", len(args))
		}
		words := make([]string, len(args))
		for i, arg := range args {
			words[i] = string(arg)
		}
		again, m, _, err := decode([]byte(encoded(words...)), nil)
		if err != nil && len(b) < weir.MaxKey || err == nil && (len(again) != len(args) || m != len(encoded(words...))) {
			t.Fatalf("words %q do not survive: %v", words, err)
		}
		for cut := range n { // the same answer, however the bytes arrive
			if _, took, _, err := decode(b[:cut], nil); took != 0 || err != nil {
				t.Fatalf("the first %d of %d bytes are a command: %v", cut, n, err)
			}
		}
	})
}

func TestIntegersAreThoseOfRedis(t *testing.T) {
	for _, text := range []string{"0", "7", "-7", "9223372036854775807", "-9223372036854775808", "1234567890123456789"} {
		want, _ := strconv.ParseInt(text, 10, 64)
		if n, ok := integer([]byte(text)); n != want || !ok {
			t.Errorf("%s got %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{"", "-", "-0", "+1", "01", "1 ", "1e3", "0x1", "9223372036854775808", "-9223372036854775809", "99999999999999999999"} {
		if n, ok := integer([]byte(text)); ok {
			t.Errorf("%q got %d", text, n)
		}
	}
}

func TestManyKnownKeysNeedLittleMemory(t *testing.T) {
	texts, most := &texts{}, 10_000
	keys := make([][]byte, most)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "user:%d", i)
	}
	if made := testing.AllocsPerRun(10, func() { // after a first run
		for _, key := range keys {
			if got := texts.text(key); got != string(key) {
				t.Fatalf("got %q for %q", got, key)
			}
		}
	}); made > float64(most)/10 {
		t.Errorf("%d keys that came before made %v objects, want at most a tenth", most, made)
	}
}

func TestAKnownKeyNeedsNoMemory(t *testing.T) {
	d := start(t, nil)
	c := newConn(d.Server, nil)
	batch := []byte(strings.Repeat(encoded("CL.THROTTLE", "user:1", "15", "30", "60", "1"), 16))
	need := 1
	if allocs := testing.AllocsPerRun(100, func() {
		c.in, c.out = batch, c.out[:0]
		if err := c.commands(&need); err != nil {
			t.Fatal(err)
		}
		c.decide()
	}); allocs != 0 {
		t.Errorf("a batch of 16 commands allocates %v times", allocs)
	}
}

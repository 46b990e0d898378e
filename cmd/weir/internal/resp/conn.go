package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// The space of a connection. It grows for a large command or batch, and shrinks afterwards.
const (
	usualSpace  = 16 << 10
	mostAnswers = 2 * usualSpace   // that wait to be sent, because answers may be much longer than commands
	maxBatch    = weir.MaxRequests // decisions in one call of the engine
)

// conn is one connection. A single goroutine uses it.
type conn struct {
	server *Server
	net    net.Conn
	in     []byte // has arrived and is not decoded
	space  []byte // behind in
	out    []byte // answers
	args   [][]byte
	token  string               // that the client has shown
	tls    *tls.ConnectionState // nil without encryption
	who    *auth.Identity       // by the tokens in force when the present commands arrived
	began  time.Time
	half   time.Time // when the command began that has not fully arrived; zero without one
	large  bool      // that command is counted among the large ones
	three  bool      // the client has chosen RESP3
	closes bool      // after the answers

	// The batch: calls that have no answer yet.
	requests []weir.Request
	calls    []weir.Call
	formats  []format
	results  []weir.Result
}

func newConn(s *Server, accepted net.Conn) *conn {
	return &conn{server: s, net: accepted, space: make([]byte, usualSpace), who: s.Auth.Identify("", nil), began: time.Now()}
}

// serve answers until the client leaves, errs in the protocol, or is silent for too long.
func (c *conn) serve() {
	defer c.server.remove(c)
	defer func() { _ = c.await(0) }()
	defer func() { _ = c.net.Close() }()
	defer func() {
		if problem := recover(); problem != nil {
			c.server.Log.Error("resp: a command panicked", "panic", fmt.Sprint(problem))
		}
	}()
	if c.handshake() != nil {
		return
	}
	need := 1
	for {
		err := c.commands(&need)
		c.decide()
		if _, isProtocol := errors.AsType[protocolError](err); isProtocol && err != errHTTP {
			c.out = appendLine(c.out, '-', "ERR "+err.Error())
		}
		if c.write() != nil || err != nil || c.closes || c.read(need) != nil {
			return
		}
	}
}

// handshake learns who the client is, if it shows a certificate.
func (c *conn) handshake() error {
	encrypted, ok := c.net.(*tls.Conn)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.server.ctx, handshakeTimeout)
	defer cancel()
	err := encrypted.HandshakeContext(ctx)
	state := encrypted.ConnectionState()
	c.tls = &state
	return err
}

// stranger reports whether the client may do nothing. It gets little memory, and little time to show who it is.
func (c *conn) stranger() bool { return !c.who.Some(auth.All) }

// commands runs all commands that have arrived. need is the size that may complete the next one.
func (c *conn) commands(need *int) error {
	c.who = c.server.Auth.Identify(c.token, c.tls)
	for !c.closes {
		args, n, more, err := decode(c.in, c.args[:0])
		c.args = args[:0]
		if *need = more; err != nil {
			return err
		}
		if err := c.await(more); err != nil || n == 0 {
			return err
		}
		if len(args) > 0 {
			c.command(args)
		}
		c.in = c.in[n:]
		if len(c.out) > mostAnswers {
			if err := c.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

// await prepares for the rest of a command of need bytes that is still arriving, or notes that a command has arrived.
func (c *conn) await(need int) error {
	if c.large && need <= usualSpace {
		c.server.large.Add(-1)
	}
	c.large = c.large && need > usualSpace
	switch {
	case need == 0:
		c.half = time.Time{}
	case need <= usualSpace || c.large:
	case c.stranger():
		return protocolError(fmt.Sprintf("a command before AUTH has more than %d bytes", usualSpace))
	case c.server.large.Add(1) > mostLarge:
		c.server.large.Add(-1)
		return protocolError("too many large commands are being read; ask again")
	default:
		c.large = true
	}
	return nil
}

// command runs one command. Only those that decide may be answered later, so all others first wait for the batch.
func (c *conn) command(args [][]byte) {
	var capitals [16]byte // hold the longest name and more
	n := copy(capitals[:], args[0])
	for i, letter := range capitals[:n] {
		if 'a' <= letter && letter <= 'z' {
			capitals[i] = letter - 'a' + 'A'
		}
	}
	found, ok := commands[string(capitals[:n])]
	if !ok {
		c.fail(fmt.Errorf("ERR unknown command %.64q", args[0]))
		return
	}
	if !found.decides || len(c.calls) == maxBatch {
		c.decide()
	}
	if err := found.run(c, args); err != nil {
		c.fail(err)
	}
}

// fail answers with an error, in its turn.
func (c *conn) fail(err error) {
	c.decide()
	c.out = appendLine(c.out, '-', err.Error())
}

// ask adds a call to the batch.
func (c *conn) ask(call weir.Call, f format, requests ...weir.Request) {
	from := len(c.requests)
	c.requests = append(c.requests, requests...)
	call.Requests = c.requests[from:len(c.requests):len(c.requests)]
	c.calls, c.formats = append(c.calls, call), append(c.formats, f)
}

// decide makes the calls of the batch and writes their answers.
func (c *conn) decide() {
	if len(c.calls) == 0 {
		return
	}
	c.results = slices.Grow(c.results[:0], len(c.calls))[:len(c.calls)]
	if len(c.calls) == 1 {
		made, err := c.server.Desk.Do(context.Background(), c.calls[0])
		c.results[0] = weir.Result{Decision: made.Decision, Paid: made.On, Err: err}
	} else if err := c.server.Desk.Each(context.Background(), c.calls, c.results); err != nil {
		for i := range c.results {
			c.results[i].Err = err
		}
	}
	for i := range c.calls {
		c.answer(&c.calls[i], c.formats[i], &c.results[i])
	}
	clear(c.results) // which would keep the keys
	clear(c.requests)
	c.requests, c.calls, c.formats = c.requests[:0], c.calls[:0], c.formats[:0]
	if cap(c.requests) > 4*maxBatch {
		c.requests = nil
	}
}

func (c *conn) answer(call *weir.Call, f format, r *weir.Result) {
	if r.Err != nil {
		c.out = appendLine(c.out, '-', c.failure(r.Err).Error())
		return
	}
	made := decide.MadeOf(call, r)
	if call.Op == weir.OpTake {
		c.server.Desk.Took(c.who, call.Requests, nil, made)
	}
	c.appendDecision(f, made)
}

// appendDecision writes a decision. That of a WEIR command also says when the window of a quota ends,
// and last that a ban refuses.
func (c *conn) appendDecision(f format, made decide.Made) {
	at, d := len(c.out), made.Decision
	d.Limit = c.server.Desk.LimitOf(d, made.On)
	c.out = appendDecision(c.out, f, d)
	if f != asDecision {
		return
	}
	if end, ok := c.server.Desk.QuotaEnd(d, made.On); ok {
		c.out[at+1]++ // the number of elements, a digit
		c.out = appendBulk(c.out, end.Format(time.RFC3339))
	}
	if d.Cause == weir.ByBan {
		c.out[at+1]++
		c.out = appendBulk(c.out, d.Cause.String())
	}
}

// failure describes an error of the engine. UNAVAILABLE admits nothing.
func (c *conn) failure(err error) error {
	if bad, ok := errors.AsType[*weir.RequestError](err); ok {
		return fmt.Errorf("ERR %w", bad)
	}
	c.server.Desk.Failed(context.Background(), err)
	counted := ""
	switch weir.WasCounted(err) {
	case weir.CountedYes:
		counted = ", though it has counted this command"
	case weir.CountedUnknown:
		counted = ", though it may have counted this command"
	}
	return errors.New("UNAVAILABLE the engine could not decide, and admitted nothing" + counted)
}

// write sends the answers.
func (c *conn) write() error {
	if len(c.out) == 0 {
		return nil
	}
	_ = c.net.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := c.net.Write(c.out)
	if c.out = c.out[:0]; cap(c.out) > 4*usualSpace {
		c.out = nil
	}
	return err
}

// read waits for more, until in has at least need bytes.
func (c *conn) read(need int) error {
	for len(c.in) < need {
		c.makeRoom(need)
		if err := c.server.wantsMore(c); err != nil {
			return err
		}
		n, err := c.net.Read(c.space[len(c.in):])
		c.in = c.space[:len(c.in)+n]
		if err != nil {
			return err
		}
	}
	return nil
}

// makeRoom moves what has not been decoded to the start of a space that holds need bytes.
func (c *conn) makeRoom(need int) {
	space := c.space
	if size := max(usualSpace, need); len(space) < size || len(space) > 4*usualSpace && size == usualSpace {
		space = make([]byte, max(size, min(2*need, maxCommand)))
	}
	c.in = space[:copy(space, c.in)]
	c.space = space
}

// arrives reads while a command waits. It cancels when the client leaves. Further bytes of the client stay for later;
// once there is no room for it, the departure of the client is noticed after the wait only.
func (c *conn) arrives(cancel context.CancelFunc) (end func()) {
	c.makeRoom(len(c.in))
	done := make(chan int)
	go func() {
		held := len(c.in)
		for held < len(c.space) {
			n, err := c.net.Read(c.space[held:])
			held += n
			if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
				break // the wait is over
			}
			if err != nil {
				cancel()
				break
			}
		}
		done <- held
	}()
	return func() {
		_ = c.net.SetReadDeadline(time.Now())
		c.in = c.space[:<-done]
	}
}

// text returns the bytes of a key as a string.
func (c *conn) text(b []byte) string { return c.server.texts.text(b) }

func (c *conn) ok() error {
	c.out = appendLine(c.out, '+', "OK")
	return nil
}

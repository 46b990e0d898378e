package grpclimit

import (
	"cmp"
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// ClientOptions configure a Client. The zero value obeys servers and has no limits of its own.
type ClientOptions struct {
	// Rules are limits that the client keeps itself. Each call waits until all of them admit it. There are up to 16.
	Rules []Rule
	// Engine remembers and decides. Default: a weir.Memory of its own.
	Engine weir.Engine
	// EachMessage makes each message that is sent on a stream wait, instead of the opening of the stream.
	EachMessage bool

	// Scope names the calls that a server limits together. When the server refuses one of them, all of them wait for
	// the RetryInfo. Default: Method.
	Scope Key
	// MaxWait bounds how long a call waits, for its own limits and for servers. A call that would have to wait longer
	// fails at once. The context of the call bounds it too. Default: 30 s.
	MaxWait time.Duration
	// Undecided says what calls do while the engine fails. Default: RefuseUndecided.
	Undecided Undecided
}

// Client keeps limits in a client: its own, and those that servers tell by RetryInfo. Its methods Unary and Stream are
// interceptors.
//
// A unary call that a server refuses with ResourceExhausted and a RetryInfo is repeated after the delay, up to four
// times. A stream cannot be repeated, because its messages are gone; the next one waits.
type Client struct {
	o      ClientOptions
	limits Options
	rules  rules
	queue  *pace.Queue
	pauses pauses
}

var (
	_ grpc.UnaryClientInterceptor  = (*Client)(nil).Unary
	_ grpc.StreamClientInterceptor = (*Client)(nil).Stream
)

const (
	defaultClientWait = 30 * time.Second
	maxAttempts       = 5
)

// NewClient returns a Client. Its errors are joined *weir.OptionError, *weir.LimitError and *weir.SyntaxError values.
func NewClient(o ClientOptions) (*Client, error) {
	o.MaxWait = cmp.Or(o.MaxWait, defaultClientWait)
	if o.Scope == nil {
		o.Scope = Method
	}
	c := &Client{o: o, limits: Options{Rules: o.Rules, Engine: o.Engine, MaxWait: o.MaxWait, Undecided: o.Undecided}}
	c.limits.setDefaults()
	if err := c.rules.compile(&c.limits, Everyone); err != nil && len(o.Rules) > 0 {
		return nil, err
	}
	if o.MaxWait < 0 {
		return nil, optionError("maxWait", "%v is negative", o.MaxWait)
	}
	var err error
	c.queue, err = pace.NewQueue(c.limits.Engine, pace.QueueOptions{})
	return c, err
}

// Unary makes a call when the limits admit it, and repeats it as the server says.
func (c *Client) Unary(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	until, scope := time.Now().Add(c.o.MaxWait), c.scope(ctx, method)
	for attempt := 1; ; attempt++ {
		if err := c.pauses.await(ctx, scope, until); err != nil {
			return err
		}
		done, err := c.await(ctx, method, request, until, all)
		if err != nil {
			return err
		}
		err = func() error {
			defer done()
			return invoke(ctx, method, request, reply, conn, options...)
		}()
		if !c.pauses.note(scope, err) || attempt == maxAttempts {
			return err
		}
	}
}

// Stream opens a stream when the limits admit it or, with EachMessage, sends its messages when they do.
func (c *Client) Stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	part := all
	if c.o.EachMessage {
		part = slotsOnly
	}
	until, scope := time.Now().Add(c.o.MaxWait), c.scope(ctx, method)
	if err := c.pauses.await(ctx, scope, until); err != nil {
		return nil, err
	}
	done, err := c.await(ctx, method, nil, until, part)
	if err != nil {
		return nil, err
	}
	opened := false
	defer func() {
		if !opened { // also when open panics
			done()
		}
	}()
	stream, err := open(ctx, desc, conn, method, options...)
	if err != nil {
		c.pauses.note(scope, err)
		return nil, err
	}
	opened = true
	stop := context.AfterFunc(ctx, done)
	end := func() {
		stop()
		done()
	}
	return &clientStream{ClientStream: stream, client: c, ctx: ctx, method: method, scope: scope, one: !desc.ServerStreams, end: end}, nil
}

// clientStream makes messages wait, and notes what the server says when it refuses.
type clientStream struct {
	grpc.ClientStream
	client *Client
	ctx    context.Context
	method string
	scope  string
	one    bool // the server sends one message, which ends the stream
	end    func()
}

// SendMsg sends a message when the limits admit it.
func (s *clientStream) SendMsg(message any) error {
	if s.client.o.EachMessage {
		done, err := s.client.await(s.ctx, s.method, message, time.Now().Add(s.client.o.MaxWait), ratesOnly)
		if err != nil {
			return err
		}
		done()
	}
	return s.ClientStream.SendMsg(message)
}

// RecvMsg receives a message. An error or a panic ends the stream.
func (s *clientStream) RecvMsg(message any) error {
	ended := true
	defer func() {
		if ended {
			s.end()
		}
	}()
	err := s.ClientStream.RecvMsg(message)
	if ended = err != nil || s.one; ended {
		s.client.pauses.note(s.scope, err)
	}
	return err
}

func (c *Client) scope(ctx context.Context, method string) string {
	return boundedKey(c.o.Scope(ctx, method))
}

func doNothing() {}

// settle calls a function of a reservation, also after the end of the call's context. The engine may hang: the
// reservation then tries once more, for another second.
func settle(ctx context.Context, done func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	_ = done(ctx)
}

// await waits for the client's own limits, until an instant. The caller calls done when its call has ended.
func (c *Client) await(ctx context.Context, method string, message any, until time.Time, p part) (done func(), err error) {
	var v visit
	if err := v.addRequests(&c.limits, &c.rules, ctx, method, message, p); err != nil {
		return nil, err
	}
	if len(v.requests) == 0 {
		return doNothing, nil
	}
	return c.turn(ctx, &v, until)
}

// turn waits until the engine admits the requests.
func (c *Client) turn(ctx context.Context, v *visit, until time.Time) (done func(), err error) {
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if v.lease != 0 {
		acquired, err := c.queue.Acquire(waiting, v.requests...)
		if err != nil {
			return doNothing, c.failure(ctx, v, err)
		}
		return func() { settle(ctx, acquired.Done) }, nil
	}
	if _, err := c.queue.Wait(waiting, v.requests...); err != nil {
		return doNothing, c.failure(ctx, v, err)
	}
	return doNothing, nil
}

// failure returns the error of a call whose turn did not come, or nil if it goes ahead undecided.
func (c *Client) failure(ctx context.Context, v *visit, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	rule := v.sets[0].rule
	if late, ok := errors.AsType[*weir.WaitError](err); ok {
		return exhausted(rule, late.Need)
	}
	switch {
	case errors.Is(err, weir.ErrNever):
		return exhausted(rule, weir.Never)
	case errors.Is(err, weir.ErrQueueFull), errors.Is(err, context.DeadlineExceeded):
		return status.Errorf(codes.ResourceExhausted, "grpclimit: wait for the limit %q: %v", rule.Name(), err)
	case c.o.Undecided == AdmitUndecided && !errors.Is(err, weir.ErrRequest):
		return nil
	}
	return status.Errorf(codes.Unavailable, "grpclimit: wait for the limit %q: %v", rule.Name(), err)
}

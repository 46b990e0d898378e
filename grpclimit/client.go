package grpclimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/pace"
)

// ClientOptions configure a Client. The zero value obeys servers and has no limits of its own.
type ClientOptions struct {
	// Rules are limits that the client keeps itself. Each call waits until all of them admit it. There are up to 16.
	Rules []Rule
	// Engine remembers and decides. An engine on a network gets a layer.Guard and a layer.DenyUntil, unless it has a Guard.
	// Default: a weir.Memory of its own.
	Engine weir.Engine
	// EachMessage makes each message that is sent on a stream wait, instead of the opening of the stream.
	EachMessage bool

	// Scope names the calls that a server limits together. When the server refuses one of them, all of them wait for
	// the RetryInfo. Default: Method.
	Scope Key
	// MaxWait bounds how long a call waits, for its own limits and for servers. A call that would have to wait longer
	// fails at once. The context of the call bounds it too. Default: 30 s.
	MaxWait time.Duration
	// Guard says what answers while an engine on a network is away. Default: nothing, so that calls wait for it up to MaxWait.
	Guard layer.GuardOptions
}

// Client keeps limits in a client: its own, and those that servers announce by RetryInfo. Its methods Unary and Stream
// are interceptors.
//
// A unary call that a server refuses with ResourceExhausted and a RetryInfo is repeated after the delay, up to four
// times. A stream cannot be repeated, because its messages are gone; the next one waits.
type Client struct {
	o      ClientOptions
	rules  *front.Rules[RPC, error]
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
	rules, err := front.NewRules(front.Options[RPC, error]{
		Name: name, Rules: o.Rules, Key: Everyone, Engine: o.Engine, Guard: o.Guard, MaxWait: o.MaxWait,
	})
	if err != nil {
		return nil, err
	}
	if rules.Settle() {
		return nil, optionError("rules", "have an After or are Settled, which only a Server does")
	}
	c := &Client{o: o, rules: rules}
	c.queue, err = pace.NewQueue(rules.Engine, pace.QueueOptions{})
	return c, err
}

// Unary makes a call when the limits admit it, and repeats it as the server says.
func (c *Client) Unary(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	until, scope := time.Now().Add(c.o.MaxWait), c.scope(ctx, method)
	for attempt := 1; ; attempt++ {
		if err := c.pauses.await(ctx, scope, until); err != nil {
			return err
		}
		done, err := c.await(RPC{ctx, method, request}, until, front.Whole)
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
	part := front.Whole
	if c.o.EachMessage {
		part = front.Slots
	}
	until, scope := time.Now().Add(c.o.MaxWait), c.scope(ctx, method)
	if err := c.pauses.await(ctx, scope, until); err != nil {
		return nil, err
	}
	done, err := c.await(RPC{ctx, method, nil}, until, part)
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
		done, err := s.client.await(RPC{s.ctx, s.method, message}, time.Now().Add(s.client.o.MaxWait), front.Rates)
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
	return front.BoundedKey(c.o.Scope(RPC{ctx, method, nil}))
}

func doNothing() {}

// releaseWithin bounds a release, which continues after the end of the call.
const releaseWithin = time.Second

// settle calls a function of a reservation, also after the end of the call's context. The engine may hang: the
// reservation then tries once more, for another second.
func settle(ctx context.Context, done func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	_ = done(ctx)
}

// await waits for the client's own limits, until an instant. The caller calls done when its call has ended.
func (c *Client) await(call RPC, until time.Time, p front.Part) (done func(), err error) {
	ask, err := c.rules.For(call, p)
	switch {
	case err != nil:
		return nil, undecided(call, err)
	case ask.Missing != nil:
		return nil, missingKey(ask)
	case len(ask.Requests) == 0:
		return doNothing, nil
	}
	defer ask.Done()
	waiting, cancel := context.WithDeadline(call.Context, until)
	defer cancel()
	if ask.Lease == 0 {
		_, err = c.queue.Wait(waiting, ask.Requests...)
	} else if acquired, failed := c.queue.Acquire(waiting, ask.Requests...); failed == nil {
		return func() { settle(call.Context, acquired.Done) }, nil
	} else {
		err = failed
	}
	return doNothing, c.failure(call, ask.Sets[0].Rule, err)
}

// failure returns the error of a call whose turn did not come, or nil.
func (c *Client) failure(call RPC, rule *weir.Rule, err error) error {
	late, isLate := errors.AsType[*weir.WaitError](err)
	large, isLarge := errors.AsType[*weir.CostError](err)
	switch {
	case err == nil:
		return nil
	case call.Context.Err() != nil:
	case isLate:
		return exhausted(rule, front.Why(rule.Name(), &weir.Decision{}, false), late.Need)
	case isLarge:
		return exhausted(rule, front.Why(rule.Name(), &weir.Decision{Limit: large.Capacity}, true), weir.Never)
	case errors.Is(err, weir.ErrQueueFull), errors.Is(err, context.DeadlineExceeded) && !c.rules.Away():
		return status.Errorf(codes.ResourceExhausted, "grpclimit: wait for the limit %q: %v", rule.Name(), err)
	}
	return undecided(call, fmt.Errorf("grpclimit: wait for the limit %q: %w", rule.Name(), err))
}

// undecided returns the error of a call that was not decided.
func undecided(call RPC, err error) error {
	if call.Context.Err() != nil {
		return status.FromContextError(call.Context.Err()).Err()
	}
	return status.Error(codes.Unavailable, err.Error())
}

// Package grpclimit puts limits in front of gRPC handlers, and makes gRPC clients keep them.
//
// The shortest way limits each client by the address of its connection:
//
//	limited, err := grpclimit.PerClient("60/m and 1000/d")
//	if err != nil { … }
//	grpc.NewServer(grpc.UnaryInterceptor(limited.Unary), grpc.StreamInterceptor(limited.Stream))
//
// A refused call fails with ResourceExhausted. Its details are a RetryInfo, which says when to retry, and a
// QuotaFailure, which names the limit. [PerKey] limits users or tenants. [NewServer] takes several rules, plans, costs
// and another engine: see [Options]. The rules are those of package front, which httplimit shares.
//
// [NewClient] makes the interceptors of a client. They wait for limits of the client's own, and obey the RetryInfo of
// servers.
//
// Make a [Server] or a [Client] once, when the program starts, because its engine remembers what callers have used.
// Everything here is safe for concurrent use.
package grpclimit

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/weirflow/weir/front"
)

// Server limits the calls that a server handles. Its methods Unary and Stream are interceptors.
type Server struct {
	front *front.Front[RPC, error]
	skip  func(RPC) bool
	each  bool // message of a stream is charged
}

var (
	_ grpc.UnaryServerInterceptor  = (*Server)(nil).Unary
	_ grpc.StreamServerInterceptor = (*Server)(nil).Stream
)

// PerClient limits each client address, with its own memory engine. It is NewServer with one rule named "client".
// [weir.ParseLimits] reads the text.
func PerClient(limits string) (*Server, error) {
	return NewServer(Options{Rules: []Rule{{Limit: limits}}})
}

// PerKey limits each key that the function finds, such as [Metadata] of "x-user", with its own memory engine. It is
// NewServer with one rule named "key". Calls without a key share one limit.
func PerKey(limits string, key Key) (*Server, error) {
	if key == nil {
		return nil, optionError("key", "is nil: name a function such as Metadata(\"x-user\")")
	}
	return NewServer(Options{Rules: []Rule{{Limit: limits, Key: key}}})
}

// NewServer returns a Server. Its errors are joined *weir.OptionError, *weir.LimitError and *weir.SyntaxError values.
func NewServer(o Options) (*Server, error) {
	if o.EachMessage && slices.ContainsFunc(o.Rules, func(r Rule) bool { return r.Estimate != nil }) {
		return nil, optionError("eachMessage", "charges messages, which have no true costs for an Estimate to learn from: leave one of them out")
	}
	f, err := front.New(front.Options[RPC, error]{
		Name: name, Rules: o.Rules, Key: Peer, Engine: o.Engine, Guard: o.Guard, Prefetch: o.Prefetch, DryRun: o.DryRun,
		MaxWait: o.MaxWait, Observe: o.Observe, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Server{front: f, skip: o.Skip, each: o.EachMessage}, nil
}

// Unary handles a call if the limits admit it.
func (s *Server) Unary(ctx context.Context, message any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	c := RPC{ctx, info.FullMethod, message}
	granted, err := s.admit(c, front.Whole)
	if err != nil {
		return nil, err
	}
	defer granted.End(ctx) // also when the handler panics
	reply, err = handler(s.front.Context(ctx, granted), message)
	granted.Answered(ctx, c, err)
	return reply, err
}

// Stream handles a stream if the limits admit its opening or, with EachMessage, as long as they admit its messages.
func (s *Server) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	c, part := RPC{Context: stream.Context(), Method: info.FullMethod}, front.Whole
	if s.each {
		part, stream = front.Slots, &chargedStream{stream, s, c}
	}
	granted, err := s.admit(c, part)
	if err != nil {
		return err
	}
	defer granted.End(c.Context)
	if ctx := s.front.Context(c.Context, granted); ctx != c.Context && !s.each {
		stream = &grantedStream{stream, ctx}
	}
	err = handler(srv, stream)
	granted.Answered(c.Context, c, err)
	return err
}

// admit decides on a call or a message. It returns what the call holds, if anything, or the error of a refusal.
func (s *Server) admit(c RPC, part front.Part) (*front.Grant[RPC, error], error) {
	if s.skip != nil && s.skip(c) {
		return nil, nil
	}
	ask := s.front.Ask(c.Context, c, part)
	granted, err := ask.Grant, refusal(c, ask)
	ask.Done()
	return granted, err
}

// chargedStream charges each message that arrives.
type chargedStream struct {
	grpc.ServerStream
	server *Server
	call   RPC
}

// RecvMsg receives a message. If the limits refuse it, the handler gets the error, and the client too when the handler
// returns it.
func (s *chargedStream) RecvMsg(message any) error {
	if err := s.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	c := s.call
	c.Message = message
	_, err := s.server.admit(c, front.Rates)
	return err
}

// grantedStream has a context for front.Settle, with the charges of the stream.
type grantedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *grantedStream) Context() context.Context { return s.ctx }

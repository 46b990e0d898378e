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
// and another engine, in the words of package httplimit: see [Options].
//
// [NewClient] makes the interceptors of a client. They wait for limits of the client's own, and obey the RetryInfo of
// servers.
//
// Make a [Server] or a [Client] once, when the program starts, because its engine remembers what callers have used.
// Everything here is safe for concurrent use.
package grpclimit

import (
	"context"
	"sync"

	"google.golang.org/grpc"
)

// Server limits the calls that a server handles. Its methods Unary and Stream are interceptors.
type Server struct {
	o      Options
	rules  rules
	visits sync.Pool
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
func NewServer(options Options) (*Server, error) {
	options.setDefaults()
	s := &Server{o: options}
	if err := s.rules.compile(&s.o, Peer); err != nil {
		return nil, err
	}
	return s, nil
}

// Unary handles a call if the limits admit it.
func (s *Server) Unary(ctx context.Context, message any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	held, err := s.admit(ctx, info.FullMethod, message, all)
	if err != nil {
		return nil, err
	}
	defer held.release(ctx) // also when the handler panics
	return handler(ctx, message)
}

// Stream handles a stream if the limits admit its opening or, with EachMessage, as long as they admit its messages.
func (s *Server) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, part := stream.Context(), all
	if s.o.EachMessage {
		part, stream = slotsOnly, &serverStream{stream, s, info.FullMethod}
	}
	held, err := s.admit(ctx, info.FullMethod, nil, part)
	if err != nil {
		return err
	}
	defer held.release(ctx)
	return handler(srv, stream)
}

// serverStream charges each message that arrives.
type serverStream struct {
	grpc.ServerStream
	server *Server
	method string
}

// RecvMsg receives a message. If the limits refuse it, the handler gets the error, and the client too when the handler
// returns it.
func (s *serverStream) RecvMsg(message any) error {
	if err := s.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	_, err := s.server.admit(s.Context(), s.method, message, ratesOnly)
	return err
}

// admit decides a call or a message. It returns what the call holds, if anything, or the error of a refusal.
func (s *Server) admit(ctx context.Context, method string, message any, part part) (*held, error) {
	if s.o.Skip != nil && s.o.Skip(ctx, method) {
		return nil, nil
	}
	v, _ := s.visits.Get().(*visit)
	if v == nil {
		v = &visit{}
	}
	defer func() {
		v.clear()
		s.visits.Put(v)
	}()
	if err := v.addRequests(&s.o, &s.rules, ctx, method, message, part); err != nil {
		return nil, err
	}
	if len(v.requests) == 0 {
		return nil, nil
	}
	return s.take(ctx, method, v)
}

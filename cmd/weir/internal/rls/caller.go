package rls

import (
	"context"
	"crypto/tls"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/weirflow/weir/cmd/weir/internal/door"
)

// callerKey is the context key of the identity that turnAway has found.
type callerKey struct{}

// caller returns who asks over gRPC.
func (s *Server) caller(ctx context.Context) *door.Identity {
	if who, ok := ctx.Value(callerKey{}).(*door.Identity); ok {
		return who
	}
	return s.identify(ctx, metadata.ValueFromIncomingContext(ctx, "authorization"))
}

// turnAway refuses a call of a stranger before its message is read, which may take many times the memory of its bytes.
func (p *Port) turnAway(ctx context.Context, call *tap.Info) (context.Context, error) {
	if p.limits[call.FullMethodName] {
		who := p.envoy.identify(ctx, call.Header["authorization"])
		if !who.Some(door.Take) {
			return nil, denied(who, door.Take, "")
		}
		ctx = context.WithValue(ctx, callerKey{}, who)
	}
	return ctx, nil
}

func (s *Server) identify(ctx context.Context, authorization []string) *door.Identity {
	var state *tls.ConnectionState
	if p, ok := peer.FromContext(ctx); ok {
		if over, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			state = &over.State
		}
	}
	token := ""
	if len(authorization) == 1 {
		token = door.Bearer(authorization[0])
	}
	return s.Door.Identify(token, state)
}

// allowed returns an error for a caller that lacks a scope. Limits in the call need a scope of their own, and so do hits
// that come back.
func (c *call) allowed(who *door.Identity) error {
	if who.May(door.Take, "") && who.May(door.Dynamic, "") && who.May(door.Refund, "") {
		return nil
	}
	for i := range c.parts {
		p := &c.parts[i]
		if p.own != nil && !who.May(door.Dynamic, "") {
			return denied(who, door.Dynamic, "")
		}
		scope := door.Take
		if p.op == giveBack {
			scope = door.Refund
		}
		for _, q := range append(p.requests, p.told...) {
			if p.own == nil && !who.May(scope, q.Rule.Name()) || p.own != nil && scope == door.Refund && !who.May(scope, "") {
				return denied(who, scope, q.Rule.Name())
			}
		}
	}
	return nil
}

func denied(who *door.Identity, scope door.Scope, rule string) error {
	d := who.Deny(scope, rule)
	code := codes.PermissionDenied
	if d.Status == http.StatusUnauthorized {
		code = codes.Unauthenticated
	}
	return status.Error(code, "rls: "+d.Detail)
}

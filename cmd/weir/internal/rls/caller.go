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

	"github.com/weirflow/weir/cmd/weir/internal/auth"
)

// callerKey is the context key of the identity that turnAway has found.
type callerKey struct{}

// caller returns who asks over gRPC.
func (s *Server) caller(ctx context.Context) *auth.Identity {
	if who, ok := ctx.Value(callerKey{}).(*auth.Identity); ok {
		return who
	}
	return s.identify(ctx, metadata.ValueFromIncomingContext(ctx, "authorization"))
}

// turnAway refuses a call of a stranger before its message is read, which may take many times the memory of its bytes.
func (p *Port) turnAway(ctx context.Context, call *tap.Info) (context.Context, error) {
	if p.limits[call.FullMethodName] {
		who := p.envoy.identify(ctx, call.Header["authorization"])
		if !who.Some(auth.Take) {
			return nil, denied(who, auth.Take, "")
		}
		ctx = context.WithValue(ctx, callerKey{}, who)
	}
	return ctx, nil
}

func (s *Server) identify(ctx context.Context, authorization []string) *auth.Identity {
	var state *tls.ConnectionState
	if p, ok := peer.FromContext(ctx); ok {
		if over, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			state = &over.State
		}
	}
	token := ""
	if len(authorization) == 1 {
		token = auth.Bearer(authorization[0])
	}
	return s.Auth.Identify(token, state)
}

// allowed returns an error for a caller that lacks a scope. Limits in the call need a scope of their own, and so do hits
// that come back.
func (c *call) allowed(who *auth.Identity) error {
	if who.May(auth.Take, "") && who.May(auth.Dynamic, "") && who.May(auth.Refund, "") {
		return nil
	}
	for i := range c.parts {
		p := &c.parts[i]
		if p.own != nil && !who.May(auth.Dynamic, "") {
			return denied(who, auth.Dynamic, "")
		}
		scope := auth.Take
		if p.op == giveBack {
			scope = auth.Refund
		}
		for _, q := range append(p.requests, p.told...) {
			if p.own == nil && !who.May(scope, q.Rule.Name()) || p.own != nil && scope == auth.Refund && !who.May(scope, "") {
				return denied(who, scope, q.Rule.Name())
			}
		}
	}
	return nil
}

func denied(who *auth.Identity, scope auth.Scope, rule string) error {
	d := who.Deny(scope, rule)
	code := codes.PermissionDenied
	if d.Status == http.StatusUnauthorized {
		code = codes.Unauthenticated
	}
	return status.Error(code, "rls: "+d.Detail)
}

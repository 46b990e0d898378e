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

	"github.com/weirflow/weir/cmd/weir/internal/door"
)

// caller returns who asks over gRPC.
func (s *Server) caller(ctx context.Context) *door.Identity {
	var state *tls.ConnectionState
	if p, ok := peer.FromContext(ctx); ok {
		if over, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			state = &over.State
		}
	}
	token := ""
	if values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) == 1 {
		token = door.Bearer(values[0])
	}
	return s.Door.Identify(token, state)
}

// allowed returns an error for a caller that lacks a scope. Limits in the call need a scope of their own, and so do hits
// that come back.
func (c *call) allowed(who *door.Identity) error {
	if who.May(door.Take, "") && who.May(door.Dynamic, "") && who.May(door.Refund, "") {
		return nil
	}
	if !who.Some(door.Take) {
		return denied(who, door.Take, "")
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
		for _, q := range p.requests {
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

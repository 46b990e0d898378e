package grpclimit

import (
	"net"
	"net/http"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/httplimit"
)

// Key finds the address, user or tenant that a call is charged to. An empty key means that the call has none: see
// front.Rule.Missing.
type Key = func(RPC) string

// Peer is the address of the connection. An IPv6 address counts as its /64, because one client has that many
// addresses. The key is missing on a Unix socket.
func Peer(c RPC) string {
	p, ok := peer.FromContext(c.Context)
	if !ok {
		return ""
	}
	tcp, ok := p.Addr.(*net.TCPAddr)
	if !ok {
		return plainClient.Key(&http.Request{RemoteAddr: p.Addr.String()})
	}
	addr := tcp.AddrPort().Addr()
	if !addr.IsValid() {
		return ""
	}
	return front.AddressKey(addr, front.IPv6Prefix)
}

var plainClient httplimit.Client

// PeerBehind is the address of the client behind the proxies that an [httplimit.Client] trusts. It reads the metadata
// of the Client's header, such as x-forwarded-for.
func PeerBehind(client *httplimit.Client) Key {
	return func(c RPC) string {
		r := &http.Request{Header: http.Header{}}
		if p, ok := peer.FromContext(c.Context); ok {
			r.RemoteAddr = p.Addr.String()
		}
		md, _ := metadata.FromIncomingContext(c.Context)
		for name, values := range md {
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
		return client.Key(r)
	}
}

// Metadata is the value of a metadata field, such as x-user. The engine gets the value itself: use [Hashed] for a secret, such
// as an API key. A client can send any value: use it for fields that an
// earlier interceptor has verified, or that a proxy overwrites. A repeated field counts as missing.
func Metadata(name string) Key {
	name = strings.ToLower(name)
	return func(c RPC) string {
		if values := metadata.ValueFromIncomingContext(c.Context, name); len(values) == 1 {
			return values[0]
		}
		return ""
	}
}

// Hashed keeps secrets out of the engine. The key of an API key is then the first 128 bits of its SHA-256, in hex, so
// that the API key itself stands in no Redis, log, metric or list of busy keys. An operator finds the key with
// printf %s VALUE | sha256sum | cut -c1-32.
//
// The hash has no secret of its own, so that all processes and releases make the same key of a value without sharing one.
// That protects values that nobody can guess, such as API keys and session tokens. A reader of the engine can find
// values that can be guessed, such as email addresses, by hashing guesses: make their keys with a function that uses an
// HMAC under a secret.
func Hashed(key Key) Key { return front.Hashed(key) }

// Method is the method, so that each has a limit of its own.
func Method(c RPC) string { return c.Method }

// Everyone is one key for all calls, which share one limit.
func Everyone(RPC) string { return "all" }

// Combine makes one key from several, such as a user and a method. Different parts never make the same key. The key is
// missing if one part is missing.
func Combine(keys ...Key) Key { return front.Combine(keys...) }

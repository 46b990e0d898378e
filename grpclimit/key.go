package grpclimit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weirflow/weir/httplimit"
)

// Key finds the address, user or tenant that a call is charged to. An empty key means that the call has none: see
// Rule.Missing. The method is like "/package.Service/Method". A key of more than 256 bytes is replaced by its SHA-256
// hash.
type Key func(ctx context.Context, method string) string

// Peer is the address of the connection. An IPv6 address counts as its /64, because one client has that many
// addresses. The key is missing on a Unix socket.
func Peer(ctx context.Context, _ string) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	tcp, ok := p.Addr.(*net.TCPAddr)
	if !ok {
		return plainClient.Key(&http.Request{RemoteAddr: p.Addr.String()})
	}
	addr, _ := netip.AddrFromSlice(tcp.IP)
	if addr = addr.Unmap(); addr.Is6() {
		network, _ := addr.Prefix(64)
		return network.String()
	}
	if !addr.IsValid() {
		return ""
	}
	return addr.String()
}

var plainClient httplimit.Client

// PeerBehind is the address of the client behind the proxies that an [httplimit.Client] trusts. It reads the metadata
// of the Client's header, such as x-forwarded-for.
func PeerBehind(client *httplimit.Client) Key {
	return func(ctx context.Context, _ string) string {
		r := &http.Request{Header: http.Header{}}
		if p, ok := peer.FromContext(ctx); ok {
			r.RemoteAddr = p.Addr.String()
		}
		md, _ := metadata.FromIncomingContext(ctx)
		for name, values := range md {
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
		return client.Key(r)
	}
}

// Metadata is the value of a metadata field, such as x-user. A client can send any value: use it for fields that an
// earlier interceptor has verified, or that a proxy overwrites. A repeated field counts as missing.
func Metadata(name string) Key {
	name = strings.ToLower(name)
	return func(ctx context.Context, _ string) string {
		if values := metadata.ValueFromIncomingContext(ctx, name); len(values) == 1 {
			return values[0]
		}
		return ""
	}
}

// Method is the method, so that each has a limit of its own.
func Method(_ context.Context, method string) string { return method }

// Everyone is one key for all calls, which share one limit.
func Everyone(context.Context, string) string { return "all" }

// Combine makes one key from several, such as a user and a method. Different parts never make the same key. The key is
// missing if one part is missing.
func Combine(keys ...Key) Key {
	return func(ctx context.Context, method string) string {
		parts := make([]string, len(keys))
		for i, key := range keys {
			if parts[i] = key(ctx, method); parts[i] == "" {
				return ""
			}
			parts[i] = separators.Replace(parts[i])
		}
		return strings.Join(parts, "|")
	}
}

// separators escapes separators within a part of a key.
var separators = strings.NewReplacer(`\`, `\\`, `|`, `\|`)

const maxKey = 256 // bytes, of a key that is not hashed

// boundedKey returns a key that an engine can hold, so that a client cannot make a call undecidable with a long key.
func boundedKey(key string) string {
	if len(key) <= maxKey {
		return key
	}
	hash := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(hash[:])
}

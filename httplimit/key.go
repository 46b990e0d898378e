package httplimit

import (
	"net/http"

	"github.com/weirflow/weir/front"
)

// Key finds the address, user or tenant that a request is charged to. An empty key
// means that the request has none: see front.Rule.Missing.
type Key func(*http.Request) string

// Header returns the value of a header field, such as X-Api-Key. A client can send any value: use it for fields that
// an earlier handler has verified, or that a proxy overwrites. A repeated field counts as missing.
func Header(name string) Key {
	name = http.CanonicalHeaderKey(name)
	return func(r *http.Request) string {
		if values := r.Header[name]; len(values) == 1 {
			return values[0]
		}
		return ""
	}
}

// PathValue returns the value of a wildcard in the pattern that matched, such as {tenant} in /v1/{tenant}/. Wrap the
// handler that is registered with the mux, because the value is unknown to a middleware around the mux.
func PathValue(name string) Key {
	return func(r *http.Request) string { return r.PathValue(name) }
}

// Everyone returns one key for all requests, so that they share one limit.
func Everyone(*http.Request) string { return "all" }

// Combine makes one key from several, such as a user and a path value. Different parts never make the same key. The
// key is missing if one part is missing.
func Combine(keys ...Key) Key { return front.Combine(keys...) }

package httplimit

import (
	"net/http"

	"github.com/weirflow/weir/front"
)

// Key finds the address, user or tenant that a request is charged to. An empty key
// means that the request has none: see front.Rule.Missing.
type Key func(*http.Request) string

// Header returns the value of a header field, such as X-User. The engine gets the value itself: use [Hashed] for a secret,
// such as an API key. A client can send any value: use it for fields that an earlier handler has verified, or that a proxy
// overwrites. A repeated field counts as missing.
func Header(name string) Key {
	name = http.CanonicalHeaderKey(name)
	return func(r *http.Request) string {
		if values := r.Header[name]; len(values) == 1 {
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

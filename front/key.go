package front

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Combine makes one key from several, such as a user and a path value. Different parts never make the same key. The key
// is missing if one part is missing.
func Combine[K ~func(R) string, R any](keys ...K) K {
	return func(r R) string {
		parts := make([]string, len(keys))
		for i, key := range keys {
			if parts[i] = key(r); parts[i] == "" {
				return ""
			}
			parts[i] = separators.Replace(parts[i])
		}
		return strings.Join(parts, "|")
	}
}

// Hashed makes a key that does not tell the value: the first 128 bits of its SHA-256, in hex. A key that is missing stays
// missing.
func Hashed[K ~func(R) string, R any](key K) K {
	return func(r R) string {
		value := key(r)
		if value == "" {
			return ""
		}
		return HashOf(value)
	}
}

// HashOf returns the key that Hashed makes of a value.
func HashOf(value string) string {
	hash := sha256.Sum256([]byte(value))
	return hex.EncodeToString(hash[:16])
}

// separators escapes separators within a part of a key.
var separators = strings.NewReplacer(`\`, `\\`, `|`, `\|`)

const maxKey = 256 // bytes, of a key that is not hashed

// BoundedKey returns a key that an engine can hold: the key itself, or its hash if it is long. So a client cannot make a
// request undecidable with a long key.
func BoundedKey(key string) string {
	if len(key) <= maxKey {
		return key
	}
	hash := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(hash[:])
}

package front

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
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

// AddressKey returns the key of an address: the address itself for IPv4, or its network for IPv6, because one client
// has a whole network of IPv6 addresses.
func AddressKey(addr netip.Addr, ipv6Prefix int) string {
	if addr = addr.Unmap().WithZone(""); addr.Is4() || ipv6Prefix == 128 {
		return addr.String()
	}
	prefix, _ := addr.Prefix(ipv6Prefix)
	return prefix.String()
}

// Network returns the network of a key that is an address. It is the Parent of the engine that New makes, for engines of
// your own: the key shares the network's limit when the engine has no room for the key. See weir.MemoryOptions.
func Network(key string) (parent string, ok bool) {
	prefix, err := netip.ParsePrefix(key)
	if err != nil {
		addr, err := netip.ParseAddr(key)
		if err != nil {
			return "", false
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	steps := []int{48, 32}
	if prefix.Addr().Is4() {
		steps = []int{24, 16}
	}
	for _, bits := range steps {
		if prefix.Bits() > bits {
			wider, _ := prefix.Addr().Prefix(bits)
			return wider.String(), true
		}
	}
	return "", false
}

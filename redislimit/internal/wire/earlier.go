package wire

import (
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"

	"github.com/weirflow/weir/redislimit/internal/stored"
)

// earlierKey returns the key under which an earlier version kept the state of the part.
func (p *Part) earlierKey(of stored.FormerKey) string {
	brace := strings.IndexByte(p.Key, '{')
	lane, rest, _ := strings.Cut(p.Key[brace:], ":")
	key, _ := url.PathUnescape(rest[len(p.Limit.State):])
	prefix := p.Key[:brace]
	if of.Second {
		prefix += "2:"
	}
	return prefix + lane + ":" + of.State + key
}

// appendEarlier appends the earlier keys of the part whose key has a number in KEYS.
func (p *Part) appendEarlier(to []byte, number int) []byte {
	for place, of := range p.Limit.Earlier {
		name := p.earlierKey(of)
		to = binary.LittleEndian.AppendUint16(to, uint16(number))
		to = append(to, byte(place+1))
		to = binary.LittleEndian.AppendUint16(to, uint16(len(name)))
		to = append(to, name...)
	}
	return to
}

// isEarlier returns the error of a part whose state an earlier version holds at a place, in a value with this first byte.
func (p *Part) isEarlier(place int, first byte) error {
	if place > len(p.Limit.Earlier) {
		return errReply
	}
	of, format := p.Limit.Earlier[place-1], first>>4
	if of.Second {
		format = 2
	}
	return fmt.Errorf("an earlier version of Weir holds the state, in key %q of format %d, and this one reads format %d: see docs/howto/upgrading.md", p.earlierKey(of), format, stored.FormatVersion)
}

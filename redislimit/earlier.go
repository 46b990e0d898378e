package redislimit

import (
	"encoding/binary"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Versions before format 5 gave a state another key: in format 2 PREFIX:2:{LANE}:RULE NUL CODE NUL KEY, one for each limit,
// and in formats 3 and 4 PREFIX:{LANE}:RULE NUL CODE NUL KEY, without a code for the states of fixed size. Beside such a
// version, this one would admit everything a second time. So the engine also looks for these keys with its first
// decisions, and with many more after each that it finds. A decision on a state that such a version holds is an error.
const (
	firstWatched = 1 << 12 // keys
	moreWatched  = 1 << 20
)

// formerKey is where an earlier version kept the state of a limit.
type formerKey struct {
	second bool   // format 2; otherwise the value says 3 or 4
	state  string // what stands between {LANE}: and the key
}

// setEarlier notes where earlier versions kept the states of a rule, of which these are the names by enginekit.
func (c *compiled) setEarlier(states []string) {
	var fixed []formerKey
	for i := range c.limits {
		l, fields := &c.limits[i], strings.Split(states[i], "\x00")
		own := fields[0] + "\x00" + l.earlierCode(fields[2]) + "\x00"
		switch {
		case l.kind == kindNone:
		case l.kind.fixed():
			fixed = append(fixed, formerKey{second: true, state: own})
		default:
			l.earlier = []formerKey{{state: own}, {second: true, state: own}}
		}
	}
	rule, _, _ := strings.Cut(states[0], "\x00")
	fixed = append(fixed, formerKey{state: rule + "\x00\x00"})
	for i := range c.limits {
		if l := &c.limits[i]; l.kind.fixed() {
			l.earlier = fixed
		}
	}
}

func (l *limit) earlierCode(ordinal string) string {
	code := l.letter
	if l.kind > kindLeaky && l.kind != kindSlots {
		code += strconv.FormatInt(l.period, 36)
	}
	if l.origin != 0 {
		code += "+" + strconv.FormatInt(l.origin, 36)
	}
	if ordinal != "0" {
		code += "." + ordinal
	}
	return code
}

// earlierKey returns the key under which an earlier version kept the state of the part.
func (p *part) earlierKey(of formerKey) string {
	brace := strings.IndexByte(p.key, '{')
	lane, rest, _ := strings.Cut(p.key[brace:], ":")
	key, _ := url.PathUnescape(rest[len(p.limit.state):])
	prefix := p.key[:brace]
	if of.second {
		prefix += "2:"
	}
	return prefix + lane + ":" + of.state + key
}

// watched appends the earlier keys of the part whose key has a number in KEYS.
func (b *batch) watched(p *part, number int) {
	for place, of := range p.limit.earlier {
		name := p.earlierKey(of)
		b.earlier = binary.LittleEndian.AppendUint16(b.earlier, uint16(number))
		b.earlier = append(b.earlier, byte(place+1))
		b.earlier = binary.LittleEndian.AppendUint16(b.earlier, uint16(len(name)))
		b.earlier = append(b.earlier, name...)
	}
}

// isEarlier returns the error of a part whose state an earlier version holds at a place, in a value with this first byte.
func (p *part) isEarlier(place int, first byte) error {
	if place > len(p.limit.earlier) {
		return errReply
	}
	of, format := p.limit.earlier[place-1], first>>4
	if of.second {
		format = 2
	}
	return fmt.Errorf("an earlier version of Weir holds the state, in key %q of format %d, and this one reads format %d: see docs/upgrading.md", p.earlierKey(of), format, formatVersion)
}

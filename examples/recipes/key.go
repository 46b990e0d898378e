package recipes

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Key identifies a count. Keys that differ in any part are counted separately. The parts may contain any bytes.
type Key struct {
	Namespace string // the program's, so that several programs can share a server
	Resource  string // what is used, like "login"
	Subject   string // the user, such as an account or an address
}

// Naming names the Redis key of a count, so that a program can share it with others. A counter has a key for each
// window, which begins at start. A log has one key, and its start is zero. In a cluster the keys of one subject have to be
// in one slot.
type Naming func(key Key, start time.Time) string

// Plain is the Naming that most programs with these recipes write themselves: NAMESPACE:RESOURCE:SUBJECT, and for
// counters :START behind it, in seconds since 1970. Unlike the default it has nothing about the recipe and the window, and
// does not tell parts with colons apart.
func Plain(key Key, start time.Time) string {
	name := key.Namespace + ":" + key.Resource + ":" + key.Subject
	if start.IsZero() {
		return name
	}
	name += ":" + strconv.FormatInt(start.Unix(), 10)
	if rest := start.Nanosecond(); rest > 0 { // windows below a second begin within one
		name += "." + strings.TrimRight(fmt.Sprintf("%09d", rest), "0")
	}
	return name
}

// counter returns the key of the window with a number.
func (n Naming) counter(key Key, recipe string, window time.Duration, number int64) string {
	if n != nil {
		return n(key, time.Unix(0, number*int64(window)).UTC())
	}
	return key.name(recipe, window) + ":" + strconv.FormatInt(number, 10)
}

// log returns the key of a log.
func (n Naming) log(key Key, window time.Duration) string {
	if n != nil {
		return n(key, time.Time{})
	}
	return key.name("log", window)
}

// name returns the Redis key of a recipe for a window. It begins with the namespace, which suits access rules like
// ~shop:*. The part in braces keeps all keys of a subject in one slot of a cluster.
func (k Key) name(recipe string, window time.Duration) string {
	return fmt.Sprintf("%s:%s:%d:{%s:%s}", escape(k.Namespace), recipe, window.Microseconds(), escape(k.Resource), escape(k.Subject))
}

// escape percent-encodes every byte that would end a part early, and the percent sign.
func escape(part string) string {
	special := func(c byte) bool { return c <= ' ' || c > '~' || strings.IndexByte("%:{}", c) >= 0 }
	var b strings.Builder
	for i := range len(part) {
		if c := part[i]; special(c) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

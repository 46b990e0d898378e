package recipes

import (
	"fmt"
	"strings"
	"time"
)

// Key says whose use of what is counted. Two keys that differ in any part are
// never counted together, whatever bytes the parts hold.
type Key struct {
	Namespace string // of the program, so that several can share a server
	Resource  string // what is used, like "login"
	Subject   string // who uses it, like a user or an address
}

// name is the Redis key of a recipe over a window. It begins with the
// namespace, as access rules like ~shop:* want it. The part in braces makes all
// keys of a subject share a slot of a cluster.
func (k Key) name(recipe string, window time.Duration) string {
	return fmt.Sprintf("%s:%s:%d:{%s:%s}", escape(k.Namespace), recipe, window.Microseconds(), escape(k.Resource), escape(k.Subject))
}

// escape writes every byte that would end a part early, and the sign of
// escaping itself, as a percent sign and two digits.
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

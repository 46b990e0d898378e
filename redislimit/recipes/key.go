package recipes

import (
	"fmt"
	"strings"
	"time"
)

// Key identifies what is counted. Keys that differ in any part are counted separately, whatever bytes the parts
// contain.
type Key struct {
	Namespace string // of the program, so that several programs can share a server
	Resource  string // what is used, like "login"
	Subject   string // the user, such as an account or an address
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

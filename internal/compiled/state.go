package compiled

import (
	"strconv"
	"strings"
	"time"
)

// The bounds of a rule. Package weir documents them.
const (
	MaxLimits = 16
	MaxName   = 256 // bytes
	MaxPeriod = 366 * 24 * time.Hour
)

// IsName reports whether the name of a rule is valid.
func IsName(name string) bool {
	return name != "" && len(name) <= MaxName && !strings.ContainsAny(name, "=\x00")
}

// IdentityOf returns the identity in the name of a state. ok is false if no part can have that name.
func IdentityOf(state string) (identity string, ok bool) {
	name, rest, _ := strings.Cut(state, "\x00")
	identity, ordinal, _ := strings.Cut(rest, "\x00")
	return identity, IsName(name) && isOrdinal(ordinal)
}

// isOrdinal reports whether text is the number of a limit among equal limits.
func isOrdinal(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0 && n < MaxLimits && strconv.Itoa(n) == text
}

package weir

import "strconv"

// isOrdinal says that text is the number of a limit among its equals in a rule.
func isOrdinal(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0 && n < maxLimits && strconv.Itoa(n) == text
}

package redislimit

// plainBytes are the bytes that stand for themselves in the parts of a key. They have no meaning to a shell, to xargs, in a
// pattern of Redis, or between the parts.
const plainBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/@+=,"

var plain = func() (table [256]bool) {
	for i := range len(plainBytes) {
		table[plainBytes[i]] = true
	}
	return table
}()

// appendEscaped appends a text in which every byte that is not plain is %XX.
func appendEscaped(to []byte, text string) []byte {
	const digits = "0123456789ABCDEF"
	done := 0
	for i := range len(text) {
		if c := text[i]; !plain[c] {
			to = append(append(to, text[done:i]...), '%', digits[c>>4], digits[c&15])
			done = i + 1
		}
	}
	return append(to, text[done:]...)
}

package nginx

import (
	"errors"
	"strings"
)

// skipLua passes over a block of Lua, up to the brace that closes it. Braces in its comments and strings do not count.
func (w *words) skipLua() error {
	from := w.at
	defer func() { w.line += strings.Count(w.text[from:w.at], "\n") }()
	for depth := 1; w.at < len(w.text); {
		rest := w.text[w.at:]
		switch {
		case strings.HasPrefix(rest, "--"):
			if end := longString(rest[2:]); end > 0 {
				w.at += 2 + end
				continue
			}
			line, _, _ := strings.Cut(rest, "\n")
			w.at += len(line)
			continue
		case rest[0] == '[':
			if end := longString(rest); end > 0 {
				w.at += end
				continue
			}
		case rest[0] == '"' || rest[0] == '\'':
			w.at += luaString(rest)
			continue
		case rest[0] == '{':
			depth++
		case rest[0] == '}':
			depth--
		}
		if w.at++; depth == 0 {
			return nil
		}
	}
	return errors.New("a block of Lua has no end")
}

// longString returns the length of [[TEXT]] or [==[TEXT]==] at the beginning of a text, or 0.
func longString(text string) int {
	if !strings.HasPrefix(text, "[") {
		return 0
	}
	level := len(text[1:]) - len(strings.TrimLeft(text[1:], "="))
	if !strings.HasPrefix(text[1+level:], "[") {
		return 0
	}
	end := strings.Index(text, "]"+text[1:1+level]+"]")
	if end < 0 {
		return len(text)
	}
	return end + level + 2
}

// luaString returns the length of a quoted string at the beginning of a text.
func luaString(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return len(text)
}

package accesslog

import (
	"fmt"
	"slices"
	"strings"
)

// The fields of JSON lines that a user may name, besides header.NAME. Each is the variable that sources look for.
var namable = []string{"time", "client", "forwarded", "request", "method", "path", "query", "uri", "status", "user", "referer", "agent", "host"}

// namedJSON returns the format of JSON lines whose fields the words name: time=FIELD, client=FIELD and so on.
func namedJSON(words []string) (format, error) {
	f := format{name: "json", shape: byJSON, told: true, named: map[string]string{}}
	for _, word := range words {
		said, at, ok := strings.Cut(word, "=")
		name := said
		header, isHeader := strings.CutPrefix(name, "header.")
		switch {
		case !ok || at == "" || header == "":
			return f, fmt.Errorf("format: %q is not NAME=FIELD, such as time=log_time", word)
		case isHeader:
			name = headerVariable(header)
		case !slices.Contains(namable, name):
			return f, fmt.Errorf("format: %q is none of %s and header.NAME", name, strings.Join(namable, ", "))
		}
		if name == "forwarded" {
			name = forwardedNames[0]
		}
		if f.named[name] != "" {
			return f, fmt.Errorf("format: %q occurs twice", said)
		}
		f.named[name] = at
	}
	f.time, f.client = f.named["time"], f.named["client"]
	return f, nil
}

// forwardedList are the variables that may have a list of addresses that proxies have forwarded, the best first.
func (f *format) forwardedList() []string {
	if at := f.named[forwardedNames[0]]; at != "" {
		return []string{at}
	}
	return forwardedNames
}

// sourcesOf are the sources of a field in this format: first those that the user has named.
func (f *format) sourcesOf(w field) []source {
	if len(f.named) == 0 {
		return w.sources
	}
	var named []source
	for _, s := range w.sources {
		if at := f.named[s.name]; at != "" {
			named = append(named, source{name: at, take: s.take})
		}
	}
	return append(named, w.sources...)
}

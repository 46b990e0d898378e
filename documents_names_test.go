package weir_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

// limitText is a limit in backquotes, with or without the name of a rule.
var limitText = regexp.MustCompile("`(?:[a-z]+=)?((?:token bucket|leaky bucket|fixed window|sliding window|sliding log|rate gate|cycle|concurrency|bursty|warm up) [0-9][^`]*)`")

func TestLimitsInDocumentsParse(t *testing.T) {
	found := 0
	for _, document := range documents(t) {
		for _, match := range limitText.FindAllStringSubmatch(readFile(t, document), -1) {
			found++
			if _, err := weir.ParseLimits(match[1]); err != nil {
				t.Errorf("%s: %v", document, err)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d limits in the documents, want 20 at least", found)
	}
}

// methodName is `(*Memory).Take`, with or without arguments.
var methodName = regexp.MustCompile("`\\(\\*?([A-Za-z]+)\\)\\.([A-Za-z]+)(?:\\([^`]*\\))?`")

func TestDocumentsNameMethodsThatExist(t *testing.T) {
	var sources strings.Builder
	for _, f := range goFiles(t) {
		if !f.test {
			sources.WriteString(readFile(t, f.path))
		}
	}
	for _, document := range documents(t) {
		for _, match := range methodName.FindAllStringSubmatch(readFile(t, document), -1) {
			method := regexp.MustCompile(`(?m)^func \([a-z]+ \*?` + match[1] + `(\[[A-Z]\])?\) ` + match[2] + `\(`)
			if !method.MatchString(sources.String()) {
				t.Errorf("%s names %s, and there is no such method", document, match[0])
			}
		}
	}
}

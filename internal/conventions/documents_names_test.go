package conventions

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

// placeholder matches a word of docs/reference/limits.md that stands for others.
var placeholder = regexp.MustCompile(`\b(?:RATE|TIME|UNIT|WHEN|HH:MM|ZONE|N)\b`)

// Every text of docs/reference/limits.md parses, bare and with each of its optional words.
func TestTheTextsOfLimitsAreThoseOfTheParser(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `([^`|]*)` \\|([^|]*)\\|")
	backquoted := regexp.MustCompile("`([^`]+)`")
	table, _, _ := strings.Cut(readFile(t, "docs/reference/limits.md"), "\n## ")
	found := row.FindAllStringSubmatch(table, -1)
	if len(found) < 13 {
		t.Fatalf("%d texts in the table, want one for each limit", len(found))
	}
	values := map[string]string{"RATE": "10/s", "TIME": "1s", "N": "3", "UNIT": "month", "WHEN": "day 15", "HH:MM": "06:00", "ZONE": "Europe/Paris"}
	for _, match := range found {
		texts := []string{match[1]}
		for _, word := range backquoted.FindAllStringSubmatch(match[2], -1) {
			texts = append(texts, match[1]+" "+word[1])
		}
		for _, text := range texts {
			text = placeholder.ReplaceAllStringFunc(text, func(word string) string { return values[word] })
			if _, err := weir.ParseLimit(text); err != nil {
				t.Error(err)
			}
		}
	}
}

// methodName is `(*Memory).Take`, with or without arguments.
var methodName = regexp.MustCompile("`\\(\\*?([A-Za-z]+)\\)\\.([A-Za-z]+)(?:\\([^`]*\\))?`")

// methodDefinition is the definition of a method in Go.
var methodDefinition = regexp.MustCompile(`(?m)^func \([a-z]+ \*?([A-Za-z]+)(?:\[[A-Z]\])?\) ([A-Za-z]+)\(`)

func TestDocumentsNameMethodsThatExist(t *testing.T) {
	exists := map[[2]string]bool{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		for _, match := range methodDefinition.FindAllStringSubmatch(readFile(t, f.path), -1) {
			exists[[2]string{match[1], match[2]}] = true
		}
	}
	found := 0
	for _, document := range documents(t) {
		for _, match := range methodName.FindAllStringSubmatch(readFile(t, document), -1) {
			found++
			if !exists[[2]string{match[1], match[2]}] {
				t.Errorf("%s names %s, and there is no such method", document, match[0])
			}
		}
	}
	if found < 5 {
		t.Errorf("found %d methods in the documents, want 5 at least", found)
	}
}

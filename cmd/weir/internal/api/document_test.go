package api

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// asked matches a curl line of docs/reference/api.md and the answer below it.
var asked = regexp.MustCompile(`(?m)^\$ curl (?:-d '([^']*)' )?http://127\.0\.0\.1:8080(/\S+)\n(\{.*)?`)

// token matches a token of a document or of an answer.
var token = regexp.MustCompile(`"token":"([^"]+)"`)

// The test runs the document from top to bottom, with the daemon's default rule and the one that the text names, on a
// clock that stands still. It skips the numbers of the statistics, which depend on the machine. A token of the document
// stands for the one that the daemon has given.
func TestAnswersInTheDocumentAreThoseThatCome(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/reference/api.md")
	if err != nil {
		t.Fatal(err)
	}
	f := newDynamic(t, usual, "jobs=concurrency 2 lease 1m")
	answers, given := 0, map[string]string{}
	for _, line := range asked.FindAllStringSubmatch(string(text), -1) {
		body, path, want := line[1], line[2], line[3]
		if body == "" {
			if w := get(f, path); w.Code != 200 {
				t.Errorf("GET %s: got %d %s", path, w.Code, w.Body)
			}
			continue
		}
		for shown, answered := range given {
			body = strings.ReplaceAll(body, shown, answered)
		}
		w := post(f, path, body)
		if shown, answered := token.FindStringSubmatch(want), token.FindStringSubmatch(w.Body.String()); shown != nil && answered != nil {
			given[shown[1]] = answered[1]
			want = strings.ReplaceAll(want, shown[1], answered[1])
		}
		if want != "" && strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("curl -d '%s' %s\n got %s\nwant %s", body, path, w.Body, want)
		}
		if answers++; want == "" && w.Code != 200 {
			t.Errorf("curl -d '%s' %s: got %d %s", body, path, w.Code, w.Body)
		}
	}
	if answers < 11 || len(given) < 2 {
		t.Errorf("found %d curl lines with a body and %d tokens, want 11 and 2 at least", answers, len(given))
	}
}

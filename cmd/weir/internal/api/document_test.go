package api

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// asked matches a curl line of docs/api.md and the answer below it.
var asked = regexp.MustCompile(`(?m)^\$ curl (?:-d '([^']*)' )?http://127\.0\.0\.1:8080(/\S+)\n(\{.*)?`)

// The test runs the document from top to bottom, with the daemon's default rule and the one that the text names, on a
// clock that stands still. It skips the numbers of the statistics, which depend on the machine.
func TestAnswersInTheDocumentAreThoseThatCome(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, usual, "jobs=concurrency 2 lease 1m")
	answers := 0
	for _, line := range asked.FindAllStringSubmatch(string(text), -1) {
		body, path, want := line[1], line[2], line[3]
		if body == "" {
			if w := get(f, path); w.Code != 200 {
				t.Errorf("GET %s: got %d %s", path, w.Code, w.Body)
			}
			continue
		}
		w := post(f, path, body)
		if want != "" && strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("curl -d '%s' %s\n got %s\nwant %s", body, path, w.Body, want)
		}
		if answers++; want == "" && w.Code != 200 {
			t.Errorf("curl -d '%s' %s: got %d %s", body, path, w.Code, w.Body)
		}
	}
	if answers < 4 {
		t.Errorf("found %d curl lines with a body, want 4 at least", answers)
	}
}

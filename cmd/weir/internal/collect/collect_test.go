package collect_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/collect"
	"github.com/weirflow/weir/fetch"
)

func unlocked(*os.File) error { return nil }

func open(t *testing.T, dir string) *collect.Folder {
	t.Helper()
	f, err := collect.Open(dir, unlocked)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func record(t *testing.T, f *collect.Folder, r fetch.Result) {
	t.Helper()
	if _, err := f.Record(r); err != nil {
		t.Fatal(err)
	}
}

func TestAJournalTellsWhatIsDone(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	for _, r := range []fetch.Result{
		{URL: "http://a/", Outcome: fetch.Fetched, Links: []string{"http://a/done", "http://a/left"}},
		{URL: "http://a/done", Outcome: fetch.Refused, Depth: 1},
		{URL: "http://a/failed", Outcome: fetch.Failed, Status: 503},
		{URL: "http://a/robots", Outcome: fetch.Skipped},
		{URL: "http://a/long", Outcome: fetch.Skipped, Status: 200},
		{URL: "http://a/deep", Outcome: fetch.Failed, Depth: 3, Links: []string{"http://a/deeper"}},
	} {
		record(t, f, r)
	}
	f.Close()
	f = open(t, dir)
	for url, want := range map[string]bool{
		"http://a/": true, "http://a/done": true, "http://a/long": true,
		"http://a/left": false, "http://a/failed": false, "http://a/robots": false, "http://a/other": false,
	} {
		if got := f.Known(url); got != want {
			t.Errorf("%s is done: %v, want %v", url, got, want)
		}
	}
	if want := []fetch.Link{{URL: "http://a/left", Depth: 1}, {URL: "http://a/deeper", Depth: 4}}; !slices.Equal(f.Left(), want) || f.Followed() != 3 {
		t.Errorf("links %v of %d are left, want %v of 3", f.Left(), f.Followed(), want)
	}
}

// A process that is killed in the middle of a write leaves a part of a line.
func TestAPartOfALineIsCutOff(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, collect.JournalName)
	f := open(t, dir)
	record(t, f, fetch.Result{URL: "http://a/1", Outcome: fetch.Fetched})
	record(t, f, fetch.Result{URL: "http://a/2", Outcome: fetch.Fetched})
	f.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		f := open(t, dir)
		record(t, f, fetch.Result{URL: "http://a/3", Outcome: fetch.Fetched})
		f.Close()
		again := open(t, dir)
		lines := bytes.Count(whole[:cut], []byte("\n"))
		if !again.Known("http://a/3") || again.Known("http://a/1") != (lines > 1) || again.Known("http://a/2") != (lines > 2) {
			t.Errorf("after a cut at byte %d: 1 is done %v, 2 %v, 3 %v", cut, again.Known("http://a/1"), again.Known("http://a/2"), again.Known("http://a/3"))
		}
		again.Close()
	}
}

func TestAStrangeJournalIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"hello\n":                   "fetch.jsonl, line 1: not a journal of weir fetch",
		"{}\n":                      "fetch.jsonl, line 1: not a journal of weir fetch",
		`{"weir_fetch":2}` + "\n":   "fetch.jsonl, line 1: a journal of version 2, this program writes version 1",
		`{"weir_fetch":1}` + "\n\n": "fetch.jsonl, line 2: unexpected end of JSON input",
		`{"weir_fetch":1}` + "\n" + `{"url":"x"}` + "\n": `fetch.jsonl, line 2: outcome "" is unknown`,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, collect.JournalName)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := collect.Open(dir, unlocked)
		if _, is := errors.AsType[*collect.JournalError](err); !is || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
		if after, _ := os.ReadFile(path); string(after) != text {
			t.Errorf("%q: the file was changed to %q", text, after)
		}
	}
}

// FuzzJournal holds that no file breaks a folder, and that one which is opened takes and keeps a line.
func FuzzJournal(f *testing.F) {
	for _, text := range []string{"", "{", `{"weir_fetch":1}`, `{"weir_fetch":1}` + "\n" + `{"url":"http://a/","outcome":"fetched","depth":-1,"links":["",null]}` + "\n{"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, collect.JournalName), text, 0o600); err != nil {
			t.Fatal(err)
		}
		opened, err := collect.Open(dir, unlocked)
		if err != nil {
			return
		}
		line, err := opened.Record(fetch.Result{URL: "http://new/", Outcome: fetch.Fetched})
		if err != nil || !json.Valid(line) {
			t.Errorf("recorded %q, %v", line, err)
		}
		opened.Close()
		if again := open(t, dir); !again.Known("http://new/") {
			t.Error("a recorded URL is not done")
		}
	})
}

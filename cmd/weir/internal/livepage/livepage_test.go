package livepage

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// dangerous finds what could make markup or script of text, keep a token, or ask a stranger.
var dangerous = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|localStorage|sessionStorage|indexedDB|cookie|\bon[a-z]+="|style="|<style|(?:src|href)="(?:https?:)?/|url\(|@import`)

func TestThePageMakesNoMarkupOfTextAndKeepsNothing(t *testing.T) {
	files, err := fs.Glob(assets, "assets/*")
	if err != nil || len(files) < 10 {
		t.Fatalf("the files are %v (%v)", files, err)
	}
	for _, name := range files {
		text, _ := assets.ReadFile(name)
		if found := dangerous.FindString(string(text)); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
}

func TestFilesAreServedWithAStrictPolicy(t *testing.T) {
	for path, want := range map[string]string{"/": "text/html", "/live/main.js": "text/javascript", "/live/page.js": "text/javascript", "/live/page.css": "text/css", "/live/live.css": "text/css",
		"/live/": "", "/live/none.js": "", "/live/index.css": "", "/live/..%2flivepage.go": "", "/other": ""} {
		w := httptest.NewRecorder()
		Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		got := w.Header().Get("Content-Type")
		if want == "" {
			if w.Code != http.StatusNotFound {
				t.Errorf("%s: got status %d, want 404", path, w.Code)
			}
			continue
		}
		if w.Code != http.StatusOK || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %d %s, want %s", path, w.Code, got, want)
		}
		if p := w.Header().Get("Content-Security-Policy"); strings.Contains(p, "unsafe") || !strings.HasPrefix(p, "default-src 'none'") || !strings.Contains(p, "frame-ancestors 'none'") {
			t.Errorf("%s: the policy is %s", path, p)
		}
	}
}

package rules

import "testing"

// The paths are those of nginx 1.22; the import of its configurations is compared with a running nginx, too.
func TestAURIIsReadAsNginxReadsIt(t *testing.T) {
	for target, want := range map[string]string{
		"/":                  "/",
		"/a?b":               "/a",
		"/a#b":               "/a",
		"//a///b/":           "/a/b/",
		"/a/./b":             "/a/b",
		"/a/.":               "/a/",
		"/a/..":              "/",
		"/a/../":             "/",
		"/a/b/../c/..":       "/a/",
		"/a/.b/..c/d..":      "/a/.b/..c/d..",
		"/%61%2fb%2F%2e%2E/": "/a/",
		"/%3f%23%25":         "/?#%",
		"/A;b=c/":            "/A;b=c/",
		"/..":                "",
		"/a/../..":           "",
		"/%":                 "",
		"/%0":                "",
		"/%0g":               "",
		"/%00":               "",
		"*":                  "",
		"http://a/b":         "",
	} {
		if got, ok := uri(target); got != want || ok != (want != "") {
			t.Errorf("uri(%q) = %q, %v, want %q", target, got, ok, want)
		}
	}
}

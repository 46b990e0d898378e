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

func TestFormsOfThePathAreMadeOfItUnlessTheyAreSent(t *testing.T) {
	config := parsed(t, "rules: [{name: a, match: {uri: '/A/*', request_uri: '*?q'}, limit: 1/h}]")
	for _, c := range []struct {
		request Attributes
		want    int
	}{
		{Attributes{"path": "/A//b?q"}, 1}, {Attributes{"path": "/a/b?q"}, 0}, {Attributes{"path": "/A/b"}, 0},
		{Attributes{"path": "/", "uri": "/A/b", "request_uri": "/?q"}, 1}, {Attributes{"uri": "/A/b"}, 0},
	} {
		if got := len(config.Matches(c.request)); got != c.want {
			t.Errorf("%v: %d rules match, want %d", c.request, got, c.want)
		}
	}
}

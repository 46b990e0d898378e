package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/gatewaytest"
	"github.com/weirflow/weir/internal/testprocess"
)

// sevenLocations are those of a site, in place of the one of docs/howto/gateways.md. One of them is its block nginx/own, and the location
// that it asks is the eighth, for nginx alone.
const sevenLocations = `    root FOLDER;
    location / { proxy_pass http://PAGES; }
    location = /login { proxy_pass http://PAGES; }
    location /api/ { proxy_pass http://PAGES/v2/; }
    location ~ \.png$ { add_header Cache-Control public; }
    location /files/ { try_files $uri $uri/ /none.html; error_page 404 /; error_page 403 = @refused; }
    location /secret/ { deny all; }
OWN
    location = /session { internal; proxy_pass http://PAGES; }
`

// The check stands at the server, so a site with seven locations has it in all of them, and once for each request: also where try_files, an
// index file or an error page sends it on, and before the location's own auth_request. The site's own refusals stay.
func TestACheckAtTheServerCountsEachRequestOfSevenLocationsOnce(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"a.png": "picture", "files/a": "file", "files/dir/index.html": "index"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(folder, name), text)
	}
	documented := gatewaytest.Documented(t, "nginx/check")
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/session" && r.Header.Get("Cookie") == "" || r.URL.Path == "/forbidden" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, "page "+r.URL.Path)
	}))
	defer pages.Close()
	admin := filepath.Join(t.TempDir(), "admin.sock")
	daemon, _ := serveProcess(t, "127.0.0.1:0", append(replaceWord(documented.Command, "web=60/m", "web=fixed window 8/1d"), "--admin", "unix:"+admin)...)
	locations := strings.NewReplacer("FOLDER", folder, "OWN", gatewaytest.Documented(t, "nginx/own").Text).Replace(sevenLocations)
	config := replaced(t, documented.Text, `(?s)    location / \{.*?\n    }\n`, locations)
	port := strconv.Itoa(testprocess.FreePort(t))
	gatewaytest.Nginx(t, "127.0.0.1:"+port, replaceAll(t, patient(config), map[string]string{
		"127.0.0.1:8080": daemon, "127.0.0.1:9000": pages.Listener.Addr().String(), "8000": port, "PAGES": pages.Listener.Addr().String(),
	}))
	asked := 0
	for _, c := range []struct {
		path, cookie string
		status       int
		body         string
		counts       int
	}{
		{"/", "", 200, "page /", 1},
		{"/login", "", 200, "page /login", 1},
		{"/api/orders", "", 200, "page /v2/orders", 1},
		{"/a.png", "", 200, "picture", 1},
		{"/files/a", "", 200, "file", 1},
		{"/files/dir/", "", 200, "index", 1},
		{"/files/nothing", "", 200, "page /none.html", 1},
		{"/files/absent", "", 200, "page /none.html", 1},
		{"/account/me", "session=1", 200, "page /account/me", 1},
		{"/account/me", "", 403, "403 Forbidden", 1},
		{"/forbidden", "", 403, "page /forbidden", 1},
		{"/secret/a", "", 403, "403 Forbidden", 0},
	} {
		// Each row has an address of its own, with eight requests.
		asked++
		from := fmt.Sprintf("127.0.0.%d", 10+asked)
		for i := range 8 {
			response, body := askFrom(t, from, "http://127.0.0.1:"+port+c.path, "Cookie", c.cookie)
			if response.StatusCode != c.status || !strings.Contains(body, c.body) {
				t.Errorf("request %d of %s with the cookie %q: got %d %q, want %d %q", i+1, c.path, c.cookie, response.StatusCode, body, c.status, c.body)
				break
			}
			want := fmt.Sprintf("r=%d;", 7-i)
			if got := response.Header.Get("RateLimit"); c.status == 200 && c.path != "/a.png" && !strings.Contains(got, want) {
				t.Errorf("request %d of %s: RateLimit is %q, want %s", i+1, c.path, got, want)
			}
		}
		response, body := askFrom(t, from, "http://127.0.0.1:"+port+c.path, "Cookie", c.cookie)
		if refused := response.StatusCode == http.StatusTooManyRequests; refused != (c.counts > 0) {
			t.Errorf("the ninth request of %s: got %d %q, want a refusal: %v", c.path, response.StatusCode, body, c.counts > 0)
		}
	}
	if got := refusals(t, admin); got["web"] != 11 {
		t.Errorf("Weir counts the refusals %v, want 11", got)
	}
}

// What the page says of a location that has two auth_request, or that has its own.
func TestNginxHasOneAuthRequestAPlace(t *testing.T) {
	config := gatewaytest.Documented(t, "nginx/check").Text
	twice := strings.Replace(config, "    auth_request /weir;\n", "    auth_request /weir;\n    auth_request /session;\n", 1)
	if text := gatewaytest.RefusedByNginx(t, twice); !regexp.MustCompile(`"auth_request" directive is duplicate in .*site.conf`).MatchString(text) {
		t.Errorf("nginx says of two auth_request: %s", text)
	}
}

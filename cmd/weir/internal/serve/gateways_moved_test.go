package serve

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weirflow/weir/cmd/weir/internal/nginx"
	"github.com/weirflow/weir/internal/gatewaytest"
	"github.com/weirflow/weir/internal/testprocess"
)

// movedLimits are ten limits of a site, in the context http of nginx. The rates are the lowest that nginx has, so that bursts decide.
const movedLimits = `limit_req_status 429;
limit_req_zone $binary_remote_addr zone=login:1m rate=1r/m;
limit_req_zone $binary_remote_addr zone=search:1m rate=1r/m;
limit_req_zone $binary_remote_addr zone=api:1m rate=1r/m;
limit_req_zone $http_x_api_key zone=keys:1m rate=1r/m;
limit_req_zone $binary_remote_addr zone=images:1m rate=1r/m;
limit_req_zone $server_name zone=export:1m rate=1r/m;
limit_req_zone $binary_remote_addr zone=upload:1m rate=1r/m;
limit_req_zone $binary_remote_addr zone=comments:1m rate=1r/m;
limit_req_zone $http_x_api_key zone=webhook:1m rate=1r/m;
limit_req_zone $binary_remote_addr zone=rest:1m rate=1r/m;
server {
    listen PORT;
    server_name shop.test;
    location = /login { limit_req zone=login burst=4 nodelay; proxy_pass http://PAGES; }
    location /search { limit_req zone=search burst=19 nodelay; proxy_pass http://PAGES; }
    location /api/ { limit_req zone=api burst=9 nodelay; limit_req zone=keys burst=14 nodelay; proxy_pass http://PAGES; }
    location ~ \.(png|jpg)$ { limit_req zone=images burst=29 nodelay; proxy_pass http://PAGES; }
    location /export { limit_req zone=export burst=7 nodelay; proxy_pass http://PAGES; }
    location /upload { limit_req zone=upload burst=2 nodelay; proxy_pass http://PAGES; }
    location ^~ /comments/ { limit_req zone=comments burst=5 nodelay; proxy_pass http://PAGES; }
    location /webhook { limit_req zone=webhook burst=11 nodelay; proxy_pass http://PAGES; }
    location / { limit_req zone=rest burst=24 nodelay; proxy_pass http://PAGES; }
}
`

// movedPaths are what clients ask for.
var movedPaths = []string{"/login", "/login?next=/", "/search?q=a", "/search/more", "/api/v1/orders", "/api/v1/users", "/a.png", "/img/b.jpg", "/export", "/upload", "/comments/7", "/comments/x.png", "/webhook", "/", "/about"}

// Ten limits of nginx, moved to Weir by its import, refuse what nginx alone refuses: the same of 682 requests.
func TestTenLimitsOfNginxMoveWithEqualRefusals(t *testing.T) {
	testprocess.Require(t, "nginx", "nginx-light")
	pages := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer pages.Close()
	site := strings.NewReplacer("PAGES", pages.Listener.Addr().String())
	alone, moved := strconv.Itoa(testprocess.FreePort(t)), strconv.Itoa(testprocess.FreePort(t))
	gatewaytest.Nginx(t, "127.0.0.1:"+alone, strings.ReplaceAll(site.Replace(movedLimits), "PORT", alone))

	made, err := nginx.Import(fstest.MapFS{"nginx.conf": {Data: []byte("events {}\nhttp {\n" + strings.ReplaceAll(site.Replace(movedLimits), "PORT", moved) + "}\n")}}, "", "nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.YAML("nginx.conf", "nginx")
	if err != nil || len(made.Rules) != 10 {
		t.Fatalf("%d rules, %v, want 10:\n%s", len(made.Rules), err, text)
	}
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	inFiles, config := gatewaytest.Documented(t, "nginx/rules"), gatewaytest.Documented(t, "nginx/check").Text
	daemon, _ := serveProcess(t, "127.0.0.1:0", replaceWord(inFiles.Command, "weir.yaml", file)...)
	gatewaytest.Nginx(t, "127.0.0.1:"+moved, replaceAll(t, patient(described(t, config)), map[string]string{
		"127.0.0.1:8080": daemon, "127.0.0.1:9000": pages.Listener.Addr().String(), "8000": moved,
	}))

	random := rand.New(rand.NewPCG(56, 682))
	refused := map[string]int{}
	for i := range 682 {
		path, from := movedPaths[random.IntN(len(movedPaths))], fmt.Sprintf("127.0.0.%d", 1+random.IntN(5))
		var fields []string
		if random.IntN(3) > 0 {
			fields = []string{"X-Api-Key", fmt.Sprint("key", random.IntN(3))}
		}
		by, beside := statusAt(t, alone, from, path, fields), statusAt(t, moved, from, path, fields)
		if by != beside {
			t.Fatalf("request %d, %s from %s with %v: nginx alone answers %d, nginx beside Weir %d\n%s", i, path, from, fields, by, beside, text)
		}
		if by == http.StatusTooManyRequests {
			refused[path]++
		}
	}
	total := 0
	for _, n := range refused {
		total += n
	}
	t.Logf("%d of 682 requests are refused by both: %v", total, refused)
	if total < 100 || total > 582 || len(refused) < 8 {
		t.Errorf("%d refusals of %d paths prove little", total, len(refused))
	}
}

// statusAt asks a port of this machine for a path, as the host of the site.
func statusAt(t *testing.T, port, from, path string, fields []string) int {
	t.Helper()
	response, _ := askFrom(t, from, "http://127.0.0.1:"+port+path, fields...)
	return response.StatusCode
}

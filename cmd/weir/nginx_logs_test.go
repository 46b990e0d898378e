package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/gatewaytest"
	"github.com/weirflow/weir/internal/testprocess"
)

// twoServers share an address, and the rules of one read the host and a header field. PORT, FOLDER and LOG stand for those of the test.
const twoServers = `limit_req_zone $binary_remote_addr zone=login:1m rate=1r/m;
limit_req_zone $http_x_api_key zone=api:1m rate=1r/m;
server {
	listen PORT;
	server_name shop.test;
	access_log FOLDER/combined.log;
	LOG
	location = /login { limit_req zone=login burst=2 nodelay; try_files /no =204; }
	location /api/ { limit_req zone=api burst=1 nodelay; try_files /no =204; }
}
server {
	listen PORT;
	server_name blog.test;
	LOG
	location / { return 204; }
}
`

// Two servers of nginx share a log. What rules import nginx --log-format prints lets nginx log what the rules read, so that a replay
// decides every request; of a combined log --host does, and without it nothing is decided.
func TestALogOfServersThatShareAnAddressIsDecided(t *testing.T) {
	folder, port := t.TempDir(), strconv.Itoa(testprocess.FreePort(t))
	site := strings.NewReplacer("PORT", port, "FOLDER", folder).Replace(twoServers)
	conf, rules := filepath.Join(folder, "site.conf"), filepath.Join(folder, "weir.yaml")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(conf, strings.ReplaceAll(site, "LOG", ""))
	write(rules, said(t, "rules", "import", "nginx", conf))
	logged := said(t, "rules", "import", "nginx", "--log-format", conf)
	directives := regexp.MustCompile(`(?s)\n(log_format [^\n]*\n)(access_log [^\n]*\n).*--log-format '([^']*)'`).FindStringSubmatch(logged)
	if directives == nil {
		t.Fatalf("--log-format prints %s", logged)
	}
	own := filepath.Join(folder, "weir.log")
	gatewaytest.Nginx(t, "127.0.0.1:"+port, directives[1]+strings.ReplaceAll(site, "LOG", strings.Replace(directives[2], "/var/log/nginx/weir.log", own, 1)))
	for i := range 12 {
		for _, path := range []string{"/login", "/api/a"} {
			r, _ := http.NewRequest(http.MethodGet, "http://127.0.0.1:"+port+path, nil)
			r.Host = []string{"shop.test", "blog.test"}[i%2]
			r.Header.Set("X-Api-Key", fmt.Sprint("key", i%4))
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
		}
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // nginx logs when a request has ended
		text, _ := os.ReadFile(own)
		if strings.Count(string(text), "\n") == 24 {
			break
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("nginx has logged %s", text)
		}
	}
	const undecided = "could not be decided"
	for _, args := range [][]string{
		{"replay", "--config", rules, "--log-format", directives[3], own},
		{"replay", "--config", rules, "--host", "shop.test:" + port, filepath.Join(folder, "combined.log"), "--where", "path=/login"},
	} {
		if text := said(t, args...); strings.Contains(text, "undecided") || !strings.Contains(text, "would have been refused") {
			t.Errorf("weir %q decides not every request:\n%s", args, text)
		}
	}
	if text := said(t, "replay", "--config", rules, filepath.Join(folder, "combined.log")); !strings.Contains(text, "12 "+undecided) || !strings.Contains(text, "--host NAME") {
		t.Errorf("without --host: got\n%s\nwant no decision, and what to do", text)
	}
	if text := said(t, "rules", "diff", "--log", own, "--log-format", directives[3], rules, rules); strings.Contains(text, "undecided") {
		t.Errorf("rules diff --log decides not every request:\n%s", text)
	}
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shadowFiles are what the commands of the two pages read: the limits of a site, its log, and clients that ask the daemon.
const shadowFiles = `-- nginx.conf --
limit_req_zone $binary_remote_addr zone=login:1m rate=1r/m;
limit_req_zone $binary_remote_addr zone=api:1m rate=600r/m;
server {
	listen 80;
	server_name shop.example;
	location /login { limit_req zone=login burst=2 nodelay; }
	location /api/ { limit_req zone=api burst=20 nodelay; }
}
server {
	listen 80;
	server_name blog.example;
}
-- access.log --
LINE
LINE
LINE
LINE
LINE
-- ask.sh --
ask() {
  curl -sS -o body -w '%{http_code}\n' -H "X-Forwarded-Uri: $1" -H 'X-Forwarded-Method: POST' -H 'X-Forwarded-Host: shop.example' -H "X-Forwarded-For: 203.0.113.7" -H 'X-Forwarded-Port: 80' $URL/v1/check
}
for i in 1 2 3 4 5; do ask /login; done
ask /api/orders
-- admitted --
204
204
204
204
204
204
-- enforced --
CHECK
CHECK
CHECK
CHECK
CHECK
204
`

// shadowLine is a line of the log. The five of it come at once.
const shadowLine = `203.0.113.7 - - [28/Nov/2026:10:00:06 +0000] "POST /login HTTP/1.1" 200 5 "-" "curl"`

// moment matches what differs from run to run: how long until a unit is free.
var moment = regexp.MustCompile(`\b[0-9]+(\\\.[0-9]+)?(ms|s)\b`)

// Each line of how to watch rules, compare and enforce them, and go back, runs and prints what the page shows, as does each line of how to
// move nginx's limits. Clients ask after the daemon starts, and nobody is refused until a rule is enforced, and again once it is not.
func TestTheLinesOfWatchFirstEnforceLaterRun(t *testing.T) {
	runPage(t, "changing-limits.md", "### Watch first, enforce later", map[string]string{
		"weir serve ":       "exec sh ask.sh\ncmp stdout admitted\nexec sh -c 'until weir ctl --admin unix:admin.sock peek api 203.0.113.7 | grep \"^20 of 21\\|^21 of 21\"; do :; done'\n",
		"weir ctl enforce ": "exec sh ask.sh\ncmp stdout enforced\n",
		"weir ctl shadow ":  "exec sh ask.sh\ncmp stdout admitted\nend\n",
	})
}

func TestTheLinesOfMovingNginxsLimitsRun(t *testing.T) {
	runPage(t, "gateways.md", "## Move nginx's limits", map[string]string{
		"weir serve ": "exec sh ask.sh\ncmp stdout admitted\nexec weir ctl enforce login --admin unix:admin.sock\nexec sh ask.sh\ncmp stdout enforced\nend\n",
	})
}

// runPage runs the lines of the first block without a language below a heading. after has what happens behind lines that begin so.
func runPage(t *testing.T, page, heading string, after map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/howto", page))
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), "\n"+heading+"\n")
	block := regexp.MustCompile("(?s)\n```\n(.*?)```").FindStringSubmatch(below)
	if !found || block == nil {
		t.Fatalf("%s has no block below %s", page, heading)
	}
	var script strings.Builder
	commands, then := 0, ""
	for line := range strings.Lines(block[1]) {
		command, isCommand := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ ")
		if !isCommand {
			if command != "…" {
				script.WriteString("stdout '^" + moment.ReplaceAllString(regexp.QuoteMeta(command), "[0-9.]+m?s") + "$'\n")
			}
			continue
		}
		commands++
		script.WriteString(then + ranInPage(command))
		then = ""
		for begins, happens := range after {
			if strings.HasPrefix(command, begins) {
				then = happens
			}
		}
	}
	script.WriteString(then)
	if commands < 4 {
		t.Fatalf("%s has %d commands below %s, want more", page, commands, heading)
	}
	check := "429"
	if strings.Contains(block[1], "--check-status 403") {
		check = "403"
	}
	files := strings.NewReplacer("LINE", shadowLine, "CHECK", check).Replace(shadowFiles)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "page.txtar"), []byte(script.String()+files), 0o600); err != nil {
		t.Fatal(err)
	}
	runScripts(t, folder)
}

// ranInPage returns a command of a page as lines of a script.
func ranInPage(command string) string {
	command = strings.ReplaceAll(command, "/etc/nginx/nginx.conf", "nginx.conf")
	switch {
	case strings.HasPrefix(command, "weir serve "):
		trusted := " --check-trust 127.0.0.1"
		if strings.Contains(command, trusted) {
			trusted = ""
		}
		return strings.TrimPrefix(command, "weir ") + " --http 127.0.0.1:0 --admin unix:admin.sock" + trusted + "\n"
	case strings.HasPrefix(command, "weir ctl "):
		return "exec " + command + " --admin unix:admin.sock\n"
	case strings.HasPrefix(command, "weir rules diff "):
		return "! exec " + command + "\n" // the files differ
	}
	return "exec sh -c '" + strings.ReplaceAll(command, "'", "''") + "'\n"
}

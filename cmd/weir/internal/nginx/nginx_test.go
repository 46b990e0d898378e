package nginx

import (
	"flag"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weirflow/weir/cmd/weir/internal/imported"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

var update = flag.Bool("update", false, "write the rules of testdata/import.txtar")

// testdata/import.txtar has configurations in folders, with the rules that they become in want.
func TestConfigurationsBecomeTheseRules(t *testing.T) {
	const name = "testdata/import.txtar"
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, f := range a.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	for i, f := range a.Files {
		folder, ok := strings.CutSuffix(f.Name, "/want")
		if !ok {
			continue
		}
		r, err := Import(files, "", folder+"/nginx.conf")
		if err != nil {
			t.Errorf("%s: %v", folder, err)
			continue
		}
		got, err := r.YAML("nginx.conf", "nginx")
		if a.Files[i].Data = got; err != nil || !*update && string(got) != string(f.Data) {
			t.Errorf("%s: %v\n got %s\nwant %s", folder, err, got, f.Data)
		}
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// importOf returns the rules of a configuration.
func importOf(t *testing.T, text string) *rules.Config {
	t.Helper()
	r, err := Import(fstest.MapFS{"nginx.conf": {Data: []byte(text)}}, "", "nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	made, err := r.YAML("nginx.conf", "nginx")
	if err != nil {
		t.Fatal(err)
	}
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: made})
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, made)
	}
	return config
}

// nginx decides a request by the longest location that fits, or by what is around it.
func TestRequestsMatchTheLimitsOfTheirLocation(t *testing.T) {
	config := importOf(t, `
limit_req_zone $binary_remote_addr zone=server:1m rate=1r/s;
limit_req_zone $binary_remote_addr zone=root:1m rate=1r/s;
limit_req_zone $binary_remote_addr zone=login:1m rate=1r/s;
limit_req_zone $binary_remote_addr zone=new:1m rate=1r/s;
server {
	limit_req zone=server burst=5;
	location / { limit_req zone=root burst=5; }
	location /free { }
	location /login { limit_req zone=login burst=5; location /login/new { limit_req zone=new burst=5; } location /login/old { } }
	location = /login/exact { limit_req zone=new burst=5; }
}`)
	for path, want := range map[string]string{
		"/": "root", "/x": "root", "/free": "server", "/free/x": "server", "/login": "login", "/login/old/x": "login", "/login/new/x": "new",
		"/login/exact": "new", "/login/exact/x": "login",
	} {
		matched := config.Matches(rules.Attributes{"path": path, "client": "192.0.2.1", "host": "a"})
		if len(matched) != 1 || matched[0].Name != want {
			t.Errorf("%s matches %v, want %s alone", path, matched, want)
		}
	}
}

// A client chooses its Host. nginx gives a host that no server names to the default server of the address.
func TestUnknownHostsMatchTheLimitsOfTheDefaultServer(t *testing.T) {
	for name, c := range map[string]struct {
		servers string
		want    map[string]string // the rule by host, or "" for none
	}{
		"the first server, beside a redirect": {
			`server { listen 80; server_name shop.example www.shop.example; return 301 https://shop.example; }
			 server { listen 443 ssl; server_name shop.example; limit_req zone=a; }`,
			map[string]string{"shop.example": "a", "other": "a", "www.shop.example": "a"},
		},
		"the server that says so": {
			`server { server_name one; limit_req zone=a; }
			 server { listen *:80 default_server; server_name two; limit_req zone=b; }
			 server { listen 80; server_name three; limit_req zone=c; }`,
			map[string]string{"one": "a", "two": "b", "three": "c", "other": "b"},
		},
		"a server without limits": {
			`server { listen 127.0.0.1; server_name _; return 444; } server { listen 127.0.0.1:80; server_name two; limit_req zone=a; }`,
			map[string]string{"two": "a", "other": ""},
		},
		"another server has a pattern of its name": {
			`server { server_name shop.example; limit_req zone=a; } server { server_name *.example; }`,
			map[string]string{"shop.example": "a", "x.example": "", "other": "a-2"},
		},
	} {
		config := importOf(t, `
limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;
limit_req_zone $binary_remote_addr zone=b:1m rate=1r/s;
limit_req_zone $binary_remote_addr zone=c:1m rate=1r/s;
`+c.servers)
		for host, want := range c.want {
			got := ""
			for _, m := range config.Matches(rules.Attributes{"path": "/", "client": "192.0.2.1", "host": host}) {
				got += m.Name
			}
			if got != want {
				t.Errorf("%s: host %s matches %q, want %q", name, host, got, want)
			}
		}
	}
}

func TestBadConfigurationsAreRefusedWithTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"http {\n server {":                  "nginx.conf:2: the file ends within a directive or a block",
		"http { server { } } }":              "nginx.conf:1: unexpected '}'",
		"http {\n\n limit_req 'zone=a; }":    "nginx.conf:3: a quoted word has no end",
		"http { include nosuch.conf; }":      "nosuch.conf: file does not exist",
		"http { include nginx.conf; }":       "more than 64 blocks and includes within one another",
		"{ }":                                `nginx.conf:1: unexpected '{'`,
		strings.Repeat("a {", 70):            "more than 64 blocks",
		"http { content_by_lua_block { if {": "a block of Lua has no end",
	} {
		_, err := Import(fstest.MapFS{"nginx.conf": {Data: []byte(text)}}, "", "nginx.conf")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q got %v, want %s", text, err, want)
		}
	}
}

func FuzzImport(f *testing.F) {
	a, err := txtar.ParseFile("testdata/import.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range a.Files {
		f.Add(string(file.Data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Import(fstest.MapFS{"nginx.conf": {Data: []byte(text)}}, "", "nginx.conf")
		if err != nil || len(r.Rules) == 0 {
			return
		}
		made, err := r.YAML("nginx.conf", "nginx")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: made}); err != nil {
			t.Fatalf("%v\nin\n%s", err, made)
		}
	})
}

// importNotes returns the rules and notes of a configuration.
func importNotes(t *testing.T, text string) ([]imported.Rule, string) {
	t.Helper()
	r, err := Import(fstest.MapFS{"nginx.conf": {Data: []byte(text)}}, "", "nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, n := range r.Notes {
		notes = append(notes, n.String())
	}
	return r.Rules, strings.Join(notes, "\n")
}

// A limit that delays stands alone. Only a zone that meets another limit admits at once instead, and its lines are named.
func TestOnlyZonesThatMeetAnotherLimitDelayNothing(t *testing.T) {
	made, notes := importNotes(t, `
limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;
limit_req_zone $host zone=b:1m rate=9r/s;
limit_req_zone $host zone=c:1m rate=9r/s;
limit_conn_zone $host zone=conn:1m;
server {
	limit_conn conn 1;
	limit_req zone=a burst=5;
	limit_req zone=b burst=7;
	location /c { limit_req zone=c burst=3; }
}`)
	limits := map[string]string{}
	for _, r := range made {
		limits[r.Name] = r.Limit
	}
	if want := map[string]string{"a": "token bucket 1/s burst 6", "b": "token bucket 9/s burst 8", "c": "leaky bucket 9/s queue 3"}; !maps.Equal(limits, want) {
		t.Errorf("got %v, want %v", limits, want)
	}
	for _, want := range []string{"nginx.conf:7: limit_conn conn 1: not imported", "nginx.conf:8: limit_req zone=a burst=5: requests that nginx delays", "nginx.conf:9: limit_req zone=b burst=7: requests that nginx delays"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not have %q:\n%s", want, notes)
		}
	}
	if strings.Count(notes, "\n") != 2 {
		t.Errorf("got more notes than three:\n%s", notes)
	}
}

// What rules cannot decide as nginx does is left out with all uses of its zone, each named with its line.
func TestWhatIsNotDecidedAsInNginxIsNamed(t *testing.T) {
	const zone = "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;\n"
	for _, c := range []struct{ text, line, why string }{
		{"limit_req_zone $arg_x zone=a:1m rate=1r/s;\nserver { limit_req zone=a; }", ":2", "$arg_x is no attribute"},
		{"limit_req_zone $host$remote_addr zone=a:1m rate=1r/s;\nserver { limit_req zone=a; }", ":2", "does not mark where $host ends"},
		{"limit_req_zone $http_x$host zone=a:1m rate=1r/s;\nserver { limit_req zone=a; }", ":2", "$http_x, which may be empty"},
		{"limit_req_zone $server_name zone=a:1m rate=1r/s;\nserver { limit_req zone=a rate=3; }", ":2", "unexpected"},
		{"map $host $k { hostnames; *.a x; }\nlimit_req_zone $k zone=a:1m rate=1r/s;\nserver { limit_req zone=a; }", ":3", "has hostnames"},
		{"map $http_x $k { ~*(?=b) x; }\nlimit_req_zone $k zone=a:1m rate=1r/s;\nserver { limit_req zone=a; }", ":3", "(?=, which rules do not read"},
		{"geo $k { ranges; 10.0.0.0-10.0.0.9 x; }\nlimit_req_zone $k zone=a:1m rate=1r/s;\nserver { limit_req zone=a; }", ":3", "which is no network"},
		{zone + "server { listen unix:/x;\nlimit_req zone=a; }", ":3", "is no single port"},
		{zone + "server { listen 10.0.0.1:80;\nlimit_req zone=a; }\nserver { listen 10.0.0.2:80; }", ":3", "several addresses"},
		{zone + "server { server_name $hostname;\nlimit_req zone=a; }", ":3", "has a name that rules cannot match"},
		{zone + "server { location ~ x\\s {\nlimit_req zone=a; } }", ":3", `has \s, which rules do not read`},
		{zone + "server { location /a { location ~ x {\nlimit_req zone=a; } } }", ":3", "has locations within it that rules cannot distinguish"},
		{zone + "server { rewrite ^/x /y last; location /y {\nlimit_req zone=a; } }", ":3", "sends requests to other locations"},
		{zone + "server { location / { try_files $uri /index.php; }\nlocation = /index.php {\nlimit_req zone=a; } }", ":4", "sends requests that no limit has counted"},
		{zone + "server { location / { }\nlocation = /index.html {\nlimit_req zone=a; } }", ":4", "index index.html"},
		{zone + "server { error_page 404 /e; location / { return 404; }\nlocation = /e {\nlimit_req zone=a; } }", ":4", "error_page 404 /e"},
		{zone + "server { location / { limit_req_dry_run on;\nlimit_req zone=a; }\nlocation /x {\nlimit_req zone=a; } }", ":5", "a dry run of the zone"},
		{zone + "server { merge_slashes off;\nlimit_req zone=a; }", ":3", "makes other paths"},
	} {
		made, notes := importNotes(t, c.text)
		if len(made) > 0 || !strings.Contains(notes, "nginx.conf"+c.line+": limit_req zone=a") || !strings.Contains(notes, "not imported: zone a: ") || !strings.Contains(notes, c.why) {
			t.Errorf("%s\ngot %+v\n%s\nwant no rule, and a note of line %s: %s", c.text, made, notes, c.line, c.why)
		}
	}
}

func TestLuaIsPassedOver(t *testing.T) {
	for _, lua := range []string{
		"-- don't }", "s = '}' .. \"\\\"}\"", "--[[ } ]] --[==[ ]] } ]==]", "s = [[ }' ]]", "t = {a = {}}", "string.gsub(s, \"{\", '')", "t[1] = 2",
	} {
		made, _ := importNotes(t, "limit_req_zone $host zone=a:1m rate=1r/s;\nserver { access_by_lua_block {\n"+lua+"\n}\nlimit_req zone=a; }")
		if len(made) != 1 {
			t.Errorf("%s: got %+v, want the rule behind it", lua, made)
		}
	}
}

// An index file has another path than its folder, which may lead to another location.
func TestExpressionsThatMayFitIndexFilesAlone(t *testing.T) {
	for text, want := range map[string][2]bool{ // may need a part of index.html, may fit folders
		`\.php$`: {false, false}, `\.html$`: {true, false}, `^/api/`: {false, true}, `^/x[0-9]+$`: {false, false}, `/$`: {false, true}, `^/api/.+`: {true, true}, `\.(css|html)$`: {true, false}, `index`: {true, true},
	} {
		p, err := expression(text, false)
		if err != nil || p.mayEnd("index.html") != want[0] || p.fitsFolders() != want[1] {
			t.Errorf("%s: got %v, %v, %v, want %v", text, p.mayEnd("index.html"), p.fitsFolders(), err, want)
		}
	}
}

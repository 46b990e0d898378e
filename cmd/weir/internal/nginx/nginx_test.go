package nginx

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// archive returns the files of testdata/import.txtar.
func archive(t *testing.T) (files fstest.MapFS, cases []string) {
	a, err := txtar.ParseFile("testdata/import.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files = fstest.MapFS{}
	for _, f := range a.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
		if name, ok := strings.CutSuffix(f.Name, "/want"); ok {
			cases = append(cases, name)
		}
	}
	return files, cases
}

func TestConfigurationsBecomeTheseRules(t *testing.T) {
	files, cases := archive(t)
	for _, name := range cases {
		r, err := Import(files, "", name+"/nginx.conf")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := r.YAML("nginx.conf", "nginx")
		want, _ := fs.ReadFile(files, name+"/want")
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, want)
		}
	}
}

// imported returns the rules of a configuration.
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
			map[string]string{"shop.example": "a", "other": "a", "www.shop.example": ""},
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
			map[string]string{"shop.example": "a", "x.example": "", "other": ""},
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
		"http { content_by_lua_block { if {": "a block has no end",
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

// A limit that delays stands alone, so beside another one it admits at once.
func TestDelaysGiveWayToLimitsThatDecideTogether(t *testing.T) {
	r, err := Import(fstest.MapFS{"nginx.conf": {Data: []byte(`
limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;
limit_req_zone $server_name zone=b:1m rate=9r/s;
server { limit_req zone=a burst=5; limit_req zone=b burst=7; }`)}}, "", "nginx.conf")
	if err != nil || len(r.Rules) != 2 || r.Rules[0].Limit != "token bucket 1/s burst 6" || r.Rules[1].Limit != "token bucket 9/s burst 8" || len(r.Notes) != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
}

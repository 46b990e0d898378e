package nginx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// generator draws configurations of nginx with limits, and requests.
type generator struct {
	*rand.Rand
	ports     []string
	zones     int
	variables []string // of maps and geo blocks
	addresses []string
	out       strings.Builder
	depth     int
}

func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// line writes one directive, so that a note of a line is of that directive.
func (g *generator) line(format string, args ...any) {
	fmt.Fprintf(&g.out, strings.Repeat("\t", g.depth)+format+"\n", args...)
}

func (g *generator) block(head string, inside func()) {
	g.line("%s {", head)
	g.depth++
	inside()
	g.depth--
	g.line("}")
}

// configuration returns what stands in the http block.
func (g *generator) configuration() string {
	for range g.IntN(3) {
		g.geo()
	}
	for range g.IntN(4) {
		g.table()
	}
	g.zones = 1 + g.IntN(4)
	for i := range g.zones {
		g.line("limit_req_zone %s zone=z%d:32k rate=1r/m;", g.key(), i)
	}
	if g.chance(20) {
		g.uses(1)
	}
	if g.chance(5) {
		g.line("index x.php index.html;")
	}
	g.addresses = []string{"127.0.0.1"}
	if g.chance(7) {
		g.addresses = append(g.addresses, "127.0.0.2")
	}
	defaults := map[string]bool{}
	for range 1 + g.IntN(4) {
		g.block("server", func() { g.server(defaults) })
	}
	return g.out.String()
}

func (g *generator) key() string {
	if len(g.variables) > 0 && g.chance(45) {
		return "$" + g.one(g.variables...)
	}
	return g.one("$binary_remote_addr", "$binary_remote_addr", "$remote_addr", "$host", "$server_name", "$uri", "$document_uri", "$request_uri", "$request_method",
		"$http_x_key", "$http_x_api_key", "$binary_remote_addr$request_uri", "$host$uri", "$server_name:$uri", "${server_name}-$binary_remote_addr", "all", "$server_port",
		"$remote_addr|$request_method", "$request_method$host$remote_addr", "$http_x_key$uri", "$arg_user", "$host$http_x_key", `"$request_method $uri"`, `"$host $request_uri"`)
}

func (g *generator) geo() {
	name := fmt.Sprintf("v%d", len(g.variables))
	g.block("geo $"+name, func() {
		if g.chance(70) {
			g.line("default %s;", g.one("0", "1", "k1", `""`, "$binary_remote_addr"))
		}
		for _, network := range []string{"10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24", "10.1.1.1", "192.0.2.0/24", "10.1.0.0/20"} {
			if g.chance(50) {
				g.line("%s %s;", network, g.one("0", "1", "k1", `""`, "$binary_remote_addr"))
			}
		}
	})
	g.variables = append(g.variables, name)
}

func (g *generator) table() {
	name := fmt.Sprintf("v%d", len(g.variables))
	source := g.one("http_x_key", "http_x_key", "http_x_api_key", "host", "uri", "remote_addr", "request_method", "request_uri", "server_port")
	if len(g.variables) > 0 && g.chance(40) {
		source = g.one(g.variables...)
	}
	patterns := map[string][]string{
		"host": {"A.test", "b.test", "x.a.test", `~^x`, `~*TEST$`}, "uri": {"/A", "/", "/a/b", `~\.php$`, `~*^/A/`, "~/b"}, "remote_addr": {"10.0.0.1", "192.0.2.1", "~^10"},
		"request_method": {"get", "POST", "~^P"}, "request_uri": {"/a/B", "/a", `~\?`, "~*/B$"}, "server_port": slices.Concat(g.ports, []string{"~1$"}),
		"http_x_key": {"k", "BAD", `"x y"`, "-", "~^k$", "~*b.d", "~."}, "http_x_api_key": {"1", "A*b", "~[0-9]", `\~`},
	}[source]
	if patterns == nil {
		patterns = []string{"0", "1", "K1", "~^k", "$binary_remote_addr"}
	}
	values := g.one("$binary_remote_addr", "$binary_remote_addr", "$http_x_api_key", "$uri", "k1", "$host$uri") // one key, most often
	g.block("map $"+source+" $"+name, func() {
		if g.chance(10) {
			g.line("hostnames;")
		}
		value := func() string {
			if g.chance(10) {
				return g.one("k1", "0", "$remote_addr")
			}
			return g.one(values, `""`)
		}
		if g.chance(70) {
			g.line("default %s;", value())
		}
		if g.chance(40) {
			g.line(`"" %s;`, value())
		}
		for _, p := range patterns {
			if g.chance(50) {
				g.line("%s %s;", p, value())
			}
		}
	})
	g.variables = append(g.variables, name)
}

// uses writes up to n limits, and what belongs to them.
func (g *generator) uses(n int) {
	first := g.IntN(g.zones)
	for i := range min(1+g.IntN(n), g.zones) {
		g.line("limit_req zone=z%d%s;", (first+i)%g.zones, g.one("", "", " nodelay", " burst=1 nodelay", " burst=2 nodelay", " burst=2 nodelay", " burst=1", " burst=2 delay=1"))
	}
	if g.chance(4) {
		g.line("limit_req_dry_run %s;", g.one("on", "off"))
	}
}

func (g *generator) server(defaults map[string]bool) {
	for _, port := range g.ports {
		if !g.chance(75) && port != g.ports[0] {
			continue
		}
		address := g.one(g.addresses...) + ":" + port
		mark := ""
		if !defaults[address] && g.chance(30) {
			mark, defaults[address] = " default_server", true
		}
		g.line("listen %s%s;", address, mark)
	}
	var names []string
	for range g.IntN(4) {
		name := g.one("a.test", "b.test", "B.test", "*.test", "*.a.test", ".b.test", "www.*", "a.*", `~^x\d+\.test$`, `~^(A|b)\.`, `~^\w+$`, `~^(?<n>x)\.`, "_", `""`, "x.a.test")
		if !slices.Contains(names, name) && !(name == "B.test" && slices.Contains(names, "b.test")) && !(name == "b.test" && slices.Contains(names, "B.test")) {
			names = append(names, name)
		}
	}
	if slices.Contains(names, ".b.test") {
		names = slices.DeleteFunc(names, func(name string) bool { return strings.EqualFold(name, "b.test") })
	}
	if len(names) > 0 {
		g.line("server_name %s;", strings.Join(names, " "))
	}
	if g.chance(50) {
		g.uses(2)
	}
	g.rare()
	if g.chance(2) {
		g.line("merge_slashes %s;", g.one("on", "off"))
	}
	g.locations("", "", 0)
	if g.chance(15) {
		g.block("location @named", func() {
			if g.chance(50) {
				g.uses(1)
			}
			g.line("try_files /nosuch =404;")
		})
	}
}

// rare writes directives that move or answer requests.
func (g *generator) rare() {
	if g.chance(3) {
		g.line("error_page 404 %s;", g.one("/a/b", "/x.php", "=200 /a", "/nosuch"))
	}
	if g.chance(3) {
		g.block("if ($request_method = PUT)", func() { g.line("%s;", g.one("return 410", "return 410", "rewrite ^/b /a last")) })
	}
	if g.chance(2) {
		g.line("rewrite ^/ab(.*) /a$1%s;", g.one("", " last", " break", " redirect"))
	}
}

// locations writes locations within another one. Those in a regular expression are regular expressions, too.
func (g *generator) locations(kind, around string, depth int) {
	seen := map[string]bool{}
	for range g.IntN(6 - 2*depth) {
		mark := g.one("", "", "", "^~ ", "= ")
		text := strings.ReplaceAll(around+g.one("/", "/a", "/a/", "/a/b", "/A", "/ab", "/x.php", "/b", "b", "/a/index.html", "/a/b/"), "//", "/")
		if text == "b" {
			text = "/b"
		}
		if kind == "~ " || kind == "~* " || g.chance(30) {
			mark, text = g.one("~ ", "~ ", "~* "), g.one(`\.php$`, `^/a`, `/b/`, `\.PNG$`, `^/a/[bc]+$`, `.`, `^/(ab|b)`, `^/a\w`, `"^/a{1}b?$"`, `\.(php|html)$`, `^/[^/]+$`)
		}
		if key := strings.TrimPrefix(mark, "^~ ") + text; seen[key] {
			continue
		} else {
			seen[key] = true
		}
		space := mark
		if g.chance(10) && !strings.HasPrefix(text, `"`) {
			space = strings.TrimSpace(mark)
		}
		g.block("location "+space+text, func() { g.location(mark, text, depth) })
	}
}

func (g *generator) location(mark, text string, depth int) {
	if g.chance(55) {
		g.uses(2)
	}
	if depth < 2 && mark != "= " && g.chance(25) {
		g.locations(mark, text, depth+1)
	}
	switch n := g.IntN(100); {
	case n < 60:
		g.line("try_files /nosuch =404;")
	case n < 64:
		g.line("try_files %s;", g.one("$uri =404", "$uri $uri/ =404", "/nosuch /a/b", "/nosuch /x.php", "/nosuch /nosuch"))
	case n < 68:
		g.line("return 204;")
	case n < 71:
		g.line("internal;")
	case n < 73:
		g.line("empty_gif;")
	}
	g.rare()
}

// request is what a client sends.
type request struct {
	address, port, host, method, target, client string
	fields                                      []string // names and values
}

// requests returns what clients of a configuration send: few different hosts, paths and addresses, so that limits are reached.
func (g *generator) requests(n int) (all []request) {
	few := func(count int, of ...string) (some []string) {
		for range count {
			some = append(some, g.one(of...))
		}
		return some
	}
	hosts := few(3, "a.test", "b.test", "A.TEST", "x.a.test", "y.test", "www.foo.example", "x1.test", "a.other", "unknown", "a.test:80", "a.test.", "b.b.test", "_", ".test", "A.b", "127.0.0.1")
	targets := few(5, "/", "/a", "/a/", "/a/b", "/a/b/", "/a/b/c", "/A", "/ab", "/x.php", "/a/x.php", "/x.php%0a", "//a//b", "/a/../b", "/%61", "/a%2fb", "/a?x.php", "/a/./b/", "/a/b.PNG", "/b;c",
		"/a/%2e%2e/x.php", "/a/index.html", "/%C3%A9", "/a/.", "/a/b/..", "/a%3fb", "/a/%ff.php", "/b/b/b", "/a/b?", "/?a#b")
	clients := few(2, "10.0.0.1", "10.1.0.1", "10.1.1.1", "10.1.1.2", "192.0.2.1")
	values := few(2, "", "k", "K", "bad", "Bad", "x y", "1", "a*B", "-", "~")
	for range n {
		r := request{address: g.one(g.addresses...), port: g.one(g.ports...), host: g.one(hosts...), method: g.one("GET", "GET", "GET", "HEAD", "PUT"), target: g.one(targets...), client: g.one(clients...)}
		for _, name := range []string{"X-Key", "X-Api-Key"} {
			if g.chance(60) {
				r.fields = append(r.fields, name, g.one(values...))
			}
		}
		all = append(all, r)
	}
	return all
}

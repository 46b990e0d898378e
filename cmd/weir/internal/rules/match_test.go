package rules

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func parsed(t testing.TB, text string) *Config {
	t.Helper()
	c, err := Parse(Options{}, File{"weir.yaml", []byte(text)})
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	return c
}

func names(rules []*Rule) (names []string) {
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return names
}

func TestPatternsFitWhatTheyPromise(t *testing.T) {
	for _, c := range []struct {
		attribute, pattern, value string
		want                      bool
	}{
		{"method", "post", "POST", true},
		{"method", "~^P", "post", true},
		{"host", "~^a\\.", "A.example:80", true},
		{"uri", "~\\.php$", "/A//b/../x.php?q", true},
		{"uri", "~\\.php$", "/x.PHP", false},
		{"uri", "~*\\.php$", "/x.PHP", true},
		{"uri", "~\\.php$", "/x.php%0a", true},
		{"uri", "~\\.php$", "/x.php%0a%0a", false},
		{"uri", "~^/.$", "/%ff", true},
		{"uri", "~^/..$", "/%c3%a9", true},
		{"uri", "~*^/k$", "/%e2%84%aa", false}, // which folds to k
		{"uri", "/a/*", "/a", false},
		{"uri", "/A;x*", "/A;x/", true},
		{"uri", "\\~a", "/~a", false},
		{"request_uri", "/a?b*", "/a?bc", true},
		{"port", "80", "80", true},
		{"port", "80*", "8080", true},
		{"method", "~^get$", "get", true},
		{"host", "~^API\\.", "api.example", true},
		{"header.x-a", "~^[é]{2}$", "é", true},
		{"header.x-a", "~é", "\xe9", false},
		{"header.x-a", "\\~a", "~a", true},
		{"header.x-a", "~.", "", false},
		{"method", "POST", "post", true},
		{"method", "POST", "PUT", false},
		{"host", "api.example.com", "API.Example.COM.:443", true},
		{"host", "*.example.com", "api.EXAMPLE.com", true},
		{"host", "*.example.com", "a.b.example.com", true},
		{"host", "*.example.com", "example.com", false},
		{"host", "*.example.com", "api.example.com.evil.org", false},
		{"host", "::1", "[::1]:80", true},
		{"host", "::1", "::1", true},
		{"host", "2001:db8::1", "[2001:DB8:0:0::1]:443", true},
		{"host", "2001:db8::1", "2001:db8:0::1", true},
		{"host", "api.example.com", "api.example.com:443:443", true},
		{"host", "api.example.com", "api.example.com..", true},
		{"header.Host", "api.example.com", "API.example.com.:443", true},
		{"path", "/login", "/login", true},
		{"path", "/login", "/login/", true},
		{"path", "/login/", "/login", true},
		{"path", "/login", "/.//login", true},
		{"path", "/login", "/./a/../login", true},
		{"path", "/login", "/%6cogin", true},
		{"path", "/login", "/%256cogin", false},
		{"path", "/login", "/login%2f", true},
		{"path", "/login", "/login?next=/", true},
		{"path", "/login", "/login#top", true},
		{"path", "/login", "/LOGIN", true},
		{"path", "/Login", "/%4cogin", true},
		{"path", "/login", "/login;v=1", true},
		{"path", "/login", "/;a/login;b=1/", true},
		{"path", "/login", "/login%3bv=1", false},
		{"path", "/login", `\login`, true},
		{"path", "/login", "/%5clogin", true},
		{"path", "/login", "/loginx", false},
		{"path", "/login", "login", true},
		{"path", "/login", "http://api.example.com/login", true},
		{"path", "/", "http://api.example.com", true},
		{"path", "/a/*", "/a/http://b/c", true},
		{"path", "/", "/", true},
		{"path", "/", "/../..", true},
		{"path", "/v1/*", "/v1", true},
		{"path", "/v1/*", "/v1/", true},
		{"path", "/v1/*", "/v1/a/b", true},
		{"path", "/v1/*", "/v11", false},
		{"path", "/v1*", "/v11", true},
		{"path", "/*", "/", true},
		{"path", "/users/*/orders", "/users/7/orders", true},
		{"path", "/users/*/orders", "/users/7/orders/", true},
		{"path", "/users/*/orders", "/users/7/x/orders", true},
		{"path", "/users/*/orders", "/users/orders", false},
		{"path", "/users/*/orders/*", "/users/7/orders", true},
		{"path", "*.php", "/a/b.php", true},
		{"path", "*.php", "/a/b.php7", false},
		{"path", `/a\*`, "/a*", true},
		{"path", `/a\*`, "/ab", false},
		{"path", "*", "/", true},
		{"client", "10.0.0.0/8", "10.1.2.3", true},
		{"client", "10.0.0.0/8", "::ffff:10.1.2.3", true},
		{"client", "10.0.0.0/8", "11.1.2.3", false},
		{"client", "192.0.2.7", "192.0.2.7", true},
		{"client", "2001:db8::/32", "2001:db8:1::1", true},
		{"client", "2001:db8::/32", "2001:db9::1", false},
		{"client", "fe80::/10", "fe80::1%eth0", true},
		{"client", "0.0.0.0/0", "2001:db8::1", false},
		{"client", "*", "unknown", false},
		{"client", "*", "192.0.2.7", true},
		{"header.X-Api-Key", "abc", " abc ", true},
		{"header.X-Api-Key", "abc", "ABC", false},
		{"header.X-Api-Key", "*", "", true},
		{"domain", "a*a", "a", false},
		{"domain", "a*a", "aa", true},
	} {
		config := parsed(t, fmt.Sprintf("rules: [{name: r, limit: 5/m, match: {%s: '%s'}}]", c.attribute, c.pattern))
		got := len(config.Matches(Attributes{strings.ToLower(c.attribute): c.value})) == 1
		if got != c.want {
			t.Errorf("%s: %q of %q: got %v, want %v", c.attribute, c.value, c.pattern, got, c.want)
		}
	}
}

// A path that servers may resolve to different ones is refused, whatever the rules say of it.
func TestAPathThatServersReadDifferentlyIsRefused(t *testing.T) {
	config := parsed(t, "rules: [{name: free, match: {path: '/health/*'}, unlimited: true}, {name: api, match: {path: '/api/*'}, limit: 5/m}]")
	for path, want := range map[string]Verdict{
		"/api/%2e%2e/health": Allow, "/health/../api": Ask, "/health//x": Allow, "/HEALTH;a=1/x": Allow, "/api%2fx": Ask,
		"/api/x%2f..%2f..%2fhealth": Refuse, "/health/..;/api": Refuse, "/health/..;a=1/api": Refuse, "/health/.;/x": Refuse,
		"/api/..%5chealth": Refuse, "/health/..%2Fapi": Refuse, "/health/%00/../api": Refuse, "/api\n": Refuse, `/health\..\api`: Refuse,
		"/api//../health": Refuse, "/health//../api": Refuse, "/api/;/../health": Refuse, "/api/x%2fy/../health": Refuse, `/api/x\y/../health`: Refuse,
		"/api/x%5cy/../../health": Refuse, "/health#/../api": Refuse, "/health#": Refuse, "/health?#/../api": Allow,
		"//x/health": Refuse, "//health": Refuse, `/\\x/api`: Refuse, "/%2fhealth": Refuse, "http:/health": Refuse, "http:health": Refuse, "http://x/health": Allow,
		"/api//..x": Ask, "/api/x;y/../z": Ask,
	} {
		var o Outcome
		config.Decide(Attributes{"path": path}, 1, &o)
		if o.Verdict != want || want == Refuse && o.Reason != ByPath {
			t.Errorf("%q: got verdict %d by %q, want %d", path, o.Verdict, o.Reason, want)
		}
	}
}

// slowFits is the model: a pattern as a regular expression, or as a network.
func slowFits(attribute, pattern, value string) bool {
	if pattern == "*" {
		return true
	}
	if attribute == "client" {
		if !strings.Contains(pattern, "/") {
			return netip.MustParseAddr(pattern) == netip.MustParseAddr(value)
		}
		return netip.MustParsePrefix(pattern).Contains(netip.MustParseAddr(value))
	}
	if attribute == "path" {
		value = strings.TrimSuffix(value, "/") + "/"
		if !strings.HasSuffix(pattern, "*") {
			pattern = strings.TrimSuffix(pattern, "/") + "/"
		}
	}
	expression := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	return regexp.MustCompile("^" + expression + "$").MatchString(value)
}

// drawn is a random configuration of few values, so that rules share and nest patterns.
type drawn struct {
	matches []map[string][]string
	excepts []map[string][]string
	text    string
}

var (
	drawnPatterns = map[string][]string{
		"path":   {"/", "/a", "/a/b", "/a/*", "/a*", "/a/b/*", "/*", "*", "/a/*/c", "*/c", "/ab", "/ab*", "/b/a", "/a/*b*"},
		"client": {"10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "0.0.0.0/0", "2001:db8::/32", "2001:db8::1", "::/0", "*", "10.0.0.0/9"},
		"domain": {"a", "b", "ab", "a*", "*b", "a*b", "*", "ab*", "b*a*"},
	}
	drawnValues = map[string][]string{
		"path":   {"/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/abc", "/b/a", "/c", "/a/x/c"},
		"client": {"10.1.2.3", "10.200.0.1", "192.0.2.1", "2001:db8::1", "2001:db9::1"},
		"domain": {"a", "b", "ab", "abb", "ba", "bab", "c"},
	}
	drawnAttributes = []string{"path", "client", "domain"}
)

func draw(random *rand.Rand, count int) drawn {
	var d drawn
	var b strings.Builder
	patterns := func(most int) map[string][]string {
		all := map[string][]string{}
		for _, a := range drawnAttributes {
			for n := random.IntN(most) - most + 3; n > 0; n-- {
				all[a] = append(all[a], drawnPatterns[a][random.IntN(len(drawnPatterns[a]))])
			}
		}
		return all
	}
	write := func(field, empty string, all map[string][]string) {
		fmt.Fprintf(&b, "    %s:", field)
		if len(all) == 0 {
			b.WriteString(empty)
		}
		b.WriteString("\n")
		for _, a := range drawnAttributes {
			if all[a] != nil {
				fmt.Fprintf(&b, "      %s: ['%s']\n", a, strings.Join(all[a], "', '"))
			}
		}
	}
	b.WriteString("rules:\n")
	for i := range count {
		match, except := patterns(4), patterns(8)
		d.matches, d.excepts = append(d.matches, match), append(d.excepts, except)
		fmt.Fprintf(&b, "  - name: r%d\n    limit: 5/m\n", i)
		write("match", " any", match)
		if len(except) > 0 {
			write("except", "", except)
		}
	}
	d.text = b.String()
	return d
}

// matching returns the rules that the model matches.
func (d *drawn) matching(request Attributes) (names []string) {
	for i, match := range d.matches {
		fits := func(a string, patterns []string) bool {
			value, present := request[a]
			return present && slices.ContainsFunc(patterns, func(p string) bool { return slowFits(a, p, value) })
		}
		all := true
		for a, patterns := range match {
			all = all && fits(a, patterns)
		}
		for a, patterns := range d.excepts[i] {
			all = all && !fits(a, patterns)
		}
		if all {
			names = append(names, fmt.Sprintf("r%d", i))
		}
	}
	return names
}

func FuzzTheIndexFindsWhatASlowModelMatches(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		d := draw(random, 1+random.IntN(40))
		config := parsed(t, d.text)
		for range 50 {
			request := Attributes{}
			for _, a := range drawnAttributes {
				if random.IntN(5) > 0 {
					request[a] = drawnValues[a][random.IntN(len(drawnValues[a]))]
				}
			}
			matched := config.Matches(request)
			if got, want := names(matched), d.matching(request); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %v matches %v, want %v\n%s", seed, request, got, want, d.text)
			}
			for _, a := range matched {
				for _, b := range matched {
					if !a.meets(b) {
						t.Fatalf("seed %d: %v matches %s and %s, which do not meet\n%s", seed, request, a.Name, b.Name, d.text)
					}
				}
			}
		}
	})
}

// Different values never share a key, except that bytes that are no UTF-8 are all read as U+FFFD; a missing value differs from every
// value.
func FuzzKeysAreInjective(f *testing.F) {
	f.Add("a", "b", "a|b", "", uint8(0))
	f.Add("a|b", "c", "a", "b|c", uint8(0))
	f.Add(`a\`, "|b", `a`, `\|b`, uint8(0))
	f.Add(`\-`, "", "", `\-`, uint8(5))
	f.Add("\xdb", "\xad", "\x99", "0", uint8(58))
	f.Add(strings.Repeat("a", 257), "", strings.Repeat("a", 258), "", uint8(0))
	config := parsed(f, "attributes: [a, b]\nrules: [{name: r, limit: 5/m, match: any, key: [a, b]}]")
	f.Fuzz(func(t *testing.T, a1, b1, a2, b2 string, missing uint8) {
		request := func(a, b string, missing uint8) Attributes {
			r := Attributes{"a": normal(asText, a).key, "b": normal(asText, b).key}
			if missing&1 != 0 {
				delete(r, "a")
			}
			if missing&2 != 0 {
				delete(r, "b")
			}
			return r
		}
		one, two := request(a1, b1, missing), request(a2, b2, missing>>2)
		same := fmt.Sprint(len(one), one["a"] == two["a"], one["b"] == two["b"])
		_, oneA := one["a"]
		_, twoA := two["a"]
		equal := len(one) == len(two) && oneA == twoA && same == fmt.Sprint(len(one), true, true)
		var first, second Outcome
		config.Decide(one, 1, &first)
		config.Decide(two, 1, &second)
		if got := first.Requests[0].Key == second.Requests[0].Key; got != equal {
			t.Errorf("%q and %q: keys %q and %q", one, two, first.Requests[0].Key, second.Requests[0].Key)
		}
		if len(first.Requests[0].Key) > maxKeyBytes {
			t.Errorf("a key has %d bytes", len(first.Requests[0].Key))
		}
	})
}

// No input crashes the parser, and each problem of a line names the line.
func FuzzFilesAreReadOrExplained(f *testing.F) {
	f.Add("rules:\n  - name: a\n    limit: 5/m\n")
	f.Add("rules: [{name: a, match: {path: '/*'}, key: [client, path], limit: [5/m, 100/d], cost: {from: header.x}}]")
	f.Add("rules: [{name: a, match: any, limit: 5/m, charge: {when: after, most: 3}, estimate: {quantile: p95, min: 1, max: 4}}]")
	f.Add("rules: [{name: a, limit: [5/m, concurrency 2], charge: after, estimate: p99}]")
	f.Add("rules: [{name: a, match: any, limit: 5/m, otherwise: b}, {name: b, match: otherwise, key: client, missing: skip, limit: 9/m, otherwise: c}, {name: c, match: otherwise, limit: deny all, cost: 0}]")
	f.Add("rules: [{name: a, match: otherwise, limit: 5/m, otherwise: b}, {name: b, match: otherwise, limit: 5/m, otherwise: a}]")
	f.Add("a: &a [*a]\n")
	f.Add("\xff\x00")
	f.Add("? - a\n: {")
	f.Fuzz(func(t *testing.T, text string) {
		config, err := Parse(Options{}, File{"f", []byte(text)})
		if (config == nil) == (err == nil) {
			t.Fatalf("%q: config %v, error %v", text, config, err)
		}
		if err != nil {
			for _, p := range err.(Problems) {
				if p.Text == "" || p.String() == "" || p.Line > 1+strings.Count(text, "\n")+strings.Count(text, "\r") {
					t.Errorf("%q: problem %+v", text, p)
				}
			}
			return
		}
		var o Outcome
		config.Decide(Attributes{"path": text, "client": "10.0.0.1", "host": text, "header.x": text}, 1, &o)
	})
}

// An exception keeps two limits apart that cannot be decided together.
func TestRulesWithAnExceptionDoNotMeet(t *testing.T) {
	const text = `rules:
  - {name: all, match: {path: "/*"}, except: {path: ["/login/*", "*.css"], client: 10.0.0.0/8}, limit: leaky bucket 5/s queue 5}
  - {name: login, match: {path: ["/login", "/login/new"]}, limit: leaky bucket 1/s queue 5}
  - {name: style, match: {path: "*.css"}, limit: leaky bucket 1/s queue 5, except: {path: "/login/*"}}
  - {name: office, match: {path: "/a", client: 10.1.0.0/16}, limit: leaky bucket 1/s queue 5}
`
	config := parsed(t, text)
	for request, want := range map[[2]string]string{
		{"/x", "192.0.2.1"}: "all", {"/login/new", "192.0.2.1"}: "login", {"/login/old", "192.0.2.1"}: "", {"/a.css", "10.1.2.3"}: "style", {"/a", "10.1.2.3"}: "office",
		{"/a", "192.0.2.1"}: "all", {"/b", "10.1.2.3"}: "",
	} {
		if got := strings.Join(names(config.Matches(Attributes{"path": request[0], "client": request[1]})), " "); got != want {
			t.Errorf("%v matches %q, want %q", request, got, want)
		}
	}
	if _, err := Parse(Options{}, File{"weir.yaml", []byte(strings.Replace(text, `"/login/*", "*.css"`, `"/login/n*", "*.css"`, 1))}); err == nil {
		t.Error("a request of /login may match two limits that stand alone, and the file has no problem")
	}
}

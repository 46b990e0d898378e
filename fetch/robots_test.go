package fetch

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// robotsCases are those that Google publishes with its parser (github.com/google/robotstxt, robots_test.cc). Two are
// left out: there the caller passes an agent with a space, and a URL that is not percent-encoded; here an agent is a
// whole User-Agent field, and URLs are encoded first.
var robotsCases = []struct {
	name      string
	robots    string
	agent     string
	allowed   string // paths, divided by spaces
	forbidden string
}{
	{"empty", "", "FooBot", "/ /x", ""},
	{"no agent", "user-agent: FooBot\ndisallow: /\n", "", "/", ""},
	{"lines", "user-agent: FooBot\ndisallow: /\n", "FooBot", "", "/x/y"},
	{"unknown names", "foo: FooBot\nbar: /\n", "FooBot", "/x/y", ""},
	{"missing colons", "user-agent FooBot\ndisallow /\n", "FooBot", "", "/x/y"},
	{"groups, FooBot", groups, "FooBot", "/x/b /z/d", "/y/c /foo/bar/"},
	{"groups, BarBot", groups, "BarBot", "/y/c /w/a", "/z/d /foo/bar/"},
	{"groups, BazBot", groups, "BazBot", "/z/d", "/foo/bar/"},
	{"a sitemap ends no group", "User-agent: BarBot\nSitemap: https://foo.bar/sitemap\nUser-agent: *\nDisallow: /\n", "BarBot", "", "/"},
	{"nor does an unknown line", "User-agent: FooBot\nInvalid-Unknown-Line: unknown\nUser-agent: *\nDisallow: /\n", "FooBot", "", "/"},
	{"upper case", "USER-AGENT: FooBot\nALLOW: /x/\nDISALLOW: /\n", "FooBot", "/x/y", "/a/b"},
	{"mixed case", "uSeR-aGeNt: FooBot\nAlLoW: /x/\ndIsAlLoW: /\n", "FooBot", "/x/y", "/a/b"},
	{"agents ignore case", "User-Agent: FOO BAR\nAllow: /x/\nDisallow: /\n", "foo", "/x/y", "/a/b"},
	{"an agent ends at a space", "User-Agent: *\nDisallow: /\nUser-Agent: Foo Bar\nAllow: /x/\nDisallow: /\n", "Foo", "/x/y", "/a"},
	{"a named group comes first", "user-agent: *\nallow: /\nuser-agent: FooBot\ndisallow: /\n", "FooBot", "", "/x/y"},
	{"others have the common one", "user-agent: *\nallow: /\nuser-agent: FooBot\ndisallow: /\n", "BarBot", "/x/y", ""},
	{"no group at all", "user-agent: FooBot\nallow: /\nuser-agent: BarBot\ndisallow: /\n", "QuxBot", "/x/y", ""},
	{"paths keep case", "user-agent: FooBot\ndisallow: /X/\n", "FooBot", "/x/y", "/X/y"},
	{"longest disallows", "user-agent: FooBot\ndisallow: /x/page.html\nallow: /x/\n", "FooBot", "/x/", "/x/page.html"},
	{"longest allows", "user-agent: FooBot\nallow: /x/page.html\ndisallow: /x/\n", "FooBot", "/x/page.html", "/x/"},
	{"both empty", "user-agent: FooBot\ndisallow: \nallow: \n", "FooBot", "/x/page.html", ""},
	{"equal length allows", "user-agent: FooBot\ndisallow: /\nallow: /\n", "FooBot", "/x/page.html", ""},
	{"one byte longer", "user-agent: FooBot\ndisallow: /x\nallow: /x/\n", "FooBot", "/x/", "/x"},
	{"asterisks count", "user-agent: FooBot\nallow: /page\ndisallow: /*.html\n", "FooBot", "/page", "/page.html"},
	{"asterisks lose to longer", "user-agent: FooBot\nallow: /x/page.\ndisallow: /*.html\n", "FooBot", "/x/page.html", "/x/y.html"},
	{"the named group alone", "User-agent: *\nDisallow: /x/\nUser-agent: FooBot\nDisallow: /y/\n", "FooBot", "/x/page", "/y/page"},
	{"a query", "User-agent: FooBot\nDisallow: /\nAllow: /foo/bar?qux=taz&baz=http://foo.bar?tar&par\n", "FooBot", "/foo/bar?qux=taz&baz=http://foo.bar?tar&par", "/foo/bar"},
	{"three bytes", "User-agent: FooBot\nDisallow: /\nAllow: /foo/bar/ツ\n", "FooBot", "/foo/bar/%E3%83%84 /foo/bar/%e3%83%84", "/foo/bar"},
	{"three bytes, encoded", "User-agent: FooBot\nDisallow: /\nAllow: /foo/bar/%e3%83%84\n", "FooBot", "/foo/bar/%E3%83%84", "/foo/bar"},
	{"escapes with digits", "User-agent: FooBot\nDisallow: /a%c3%a9\n", "FooBot", "/a", "/a%C3%A9 /a%c3%a9 /aé"},
	{"needless encoding", "User-agent: FooBot\nDisallow: /\nAllow: /foo/bar/%62%61%7A\n", "FooBot", "/foo/bar/%62%61%7A", "/foo/bar/baz"},
	{"a text between", "User-agent: FooBot\nDisallow: /foo/bar/quz\nAllow: /foo/*/qux\n", "FooBot", "/foo/quz /foo//quz /foo/bax/quz", "/foo/bar/quz"},
	{"the end", "User-agent: FooBot\nDisallow: /foo/bar$\nAllow: /foo/bar/qux\n", "FooBot", "/foo/bar/qux /foo/bar/ /foo/bar/baz", "/foo/bar"},
	{"comments", "User-agent: FooBot\n# Disallow: /\nDisallow: /foo/quz#qux\nAllow: /\n", "FooBot", "/foo/bar", "/foo/quz"},
	{"index.html", "User-Agent: *\nAllow: /allowed-slash/index.html\nDisallow: /\n", "foobot", "/allowed-slash/ /allowed-slash/index.html", "/allowed-slash/index.htm /anyother-url"},
	{"a long line is cut off", "user-agent: FooBot\ndisallow: /x/" + strings.Repeat("a", 2083*8-12) + "/qux\n", "FooBot", "/fux", "/x/" + strings.Repeat("a", 2083*8-12) + "/fux"},
	{"fish", only("/fish"), "FooBot", "/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.html?id=anything", "/bar /Fish.asp /catfish /?id=fish"},
	{"fish*", only("/fish*"), "FooBot", "/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.html?id=anything", "/bar /Fish.bar /catfish /?id=fish"},
	{"fish/", only("/fish/"), "FooBot", "/fish/ /fish/salmon /fish/?salmon /fish/salmon.html /fish/?id=anything", "/bar /fish /fish.html /Fish/Salmon.html"},
	{"*.php", only("/*.php"), "FooBot", "/filename.php /folder/filename.php /folder/filename.php?parameters //folder/any.php.file.html /filename.php/ /index?f=filename.php/", "/bar /php/ /index?php /windows.PHP"},
	{"*.php$", only("/*.php$"), "FooBot", "/filename.php /folder/filename.php", "/bar /filename.php?parameters /filename.php/ /filename.php5 /php/ /filename?php /aaaphpaaa //windows.PHP"},
	{"fish*.php", only("/fish*.php"), "FooBot", "/fish.php /fishheads/catfish.php?parameters", "/bar /Fish.PHP"},
	{"precedence 1", "user-agent: FooBot\nallow: /p\ndisallow: /\n", "FooBot", "/page", ""},
	{"precedence 2", "user-agent: FooBot\nallow: /folder\ndisallow: /folder\n", "FooBot", "/folder/page", ""},
	{"precedence 3", "user-agent: FooBot\nallow: /page\ndisallow: /*.htm\n", "FooBot", "", "/page.htm"},
	{"precedence 4", "user-agent: FooBot\nallow: /$\ndisallow: /\n", "FooBot", "/", "/page.html"},
	{"DOS lines", "User-Agent: foo\r\nAllow: /some/path\r\nUser-Agent: bar\r\n\r\n\r\nDisallow: /\r\n", "bar", "", "/"},
	{"Mac lines", "User-Agent: foo\rAllow: /some/path\rUser-Agent: bar\r\r\rDisallow: /\r", "bar", "", "/"},
	{"byte order mark", "\xEF\xBB\xBFUser-Agent: foo\nDisallow: /AnyValue\n", "foo", "/", "/AnyValue"},
	{"part of one", "\xEF\xBBUser-Agent: foo\nDisallow: /AnyValue\n", "foo", "/", "/AnyValue"},
	{"a broken one", "\xEF\x11\xBFUser-Agent: foo\nDisallow: /AnyValue\n", "foo", "/AnyValue", ""},
	{"one in the middle", "User-Agent: foo\n\xEF\xBB\xBFDisallow: /AnyValue\n", "foo", "/AnyValue", ""},
	// Of our own.
	{"a version and an address", "user-agent: FooBot\ndisallow: /\n", "FooBot/1.0 (+https://foo.bar)", "", "/x"},
	{"an asterisk and more", "user-agent: * and others\ndisallow: /\n", "FooBot", "", "/x"},
}

const groups = `allow: /foo/bar/

user-agent: FooBot
disallow: /
allow: /x/
user-agent: BarBot
disallow: /
allow: /y/


allow: /w/
user-agent: BazBot

user-agent: FooBot
allow: /z/
disallow: /
`

func only(pattern string) string { return "user-agent: FooBot\ndisallow: /\nallow: " + pattern + "\n" }

func TestRobotsFollowGooglesCases(t *testing.T) {
	for _, c := range robotsCases {
		t.Run(c.name, func(t *testing.T) {
			rules := parseRobots(c.robots, c.agent)
			for want, paths := range map[bool]string{true: c.allowed, false: c.forbidden} {
				for _, path := range strings.Fields(paths) {
					u, err := url.Parse("http://foo.bar" + path)
					if err != nil {
						t.Fatal(err)
					}
					if got := rules.allows(robotsPath(u)); got != want {
						t.Errorf("%s: got allowed %v, want %v", path, got, want)
					}
				}
			}
		})
	}
}

func TestCrawlDelayIsReadForTheAgent(t *testing.T) {
	const other = "user-agent: Other\ncrawl-delay: 7\n"
	for _, c := range []struct {
		robots string
		want   time.Duration
	}{
		{"user-agent: *\ncrawl-delay: 2", 2 * time.Second},
		{"user-agent: *\nCrawl-Delay: 0.2\nallow: /", 200 * time.Millisecond},
		{"user-agent: FooBot\ncrawl-delay: 600\nuser-agent: *\ncrawl-delay: 1", 10 * time.Minute},
		{other + "user-agent: FooBot\nallow: /", 0},
		{other + "disallow: /x\nuser-agent: *\ncrawl-delay: 3", 3 * time.Second},
		{"crawl-delay: 5\nuser-agent: *\nallow: /", 0}, // in no group
		{"user-agent: *\ncrawl-delay: 1\ncrawl-delay: 4\n", 4 * time.Second},
		{"user-agent: *\ncrawl-delay: -1", 0},
		{"user-agent: *\ncrawl-delay: 1,5", 1500 * time.Millisecond},
		{"user-agent: *\ncrawl-delay: 1.5s", 1500 * time.Millisecond},
		{"user-agent: *\ncrawl-delay: 1,5 S # slowly", 1500 * time.Millisecond},
		{"user-agent: *\ncrawl-delay: 500ms", time.Second / 2},
		{"user-agent: *\ncrawl-delay: 2m", 2 * time.Minute},
		{"user-agent: *\ncrawl-delay: -1s", 0},
		{"user-agent: *\ncrawl-delay: 1,5,5", 0},
		{"user-agent: *\ncrawl-delay: nan", 0},
		{"user-agent: *\ncrawl-delay: soon\ndisallow: /", 0},
		{"user-agent: *\ncrawl-delay: inf", 1<<62 - 1},
		{"user-agent: *\ncrawl-delay: 1e300", 1<<62 - 1},
	} {
		if got := parseRobots(c.robots, "FooBot/2.0").delay; got != c.want {
			t.Errorf("%q: got a delay of %v, want %v", c.robots, got, c.want)
		}
	}
}

// A robots.txt of the largest size, made to be slow, has its verdict in a time that a person does not notice. Without a
// bound on the steps of one pattern, or of all, it takes minutes for a page of links.
func TestHostileRobotsHaveAQuickVerdict(t *testing.T) {
	for _, c := range []struct {
		pattern, path, reason string
	}{
		{strings.Repeat("*a", 8000) + "b", strings.Repeat("a", 8000), ""},
		{"/zzzz", strings.Repeat("a", 8000), ""},
		{"/*" + strings.Repeat("ab", 10) + "c", strings.Repeat("ab", 40), ""},
		{"/*" + strings.Repeat("ab", 10) + "c", strings.Repeat("ab", 4000), "robots.txt of http://a has 15058 patterns with an asterisk, too many for a path of 8001 bytes"},
		{"/" + strings.Repeat("a*", 7) + "b", strings.Repeat("a", 8000), "robots.txt of http://a has 18962 patterns with an asterisk"},
	} {
		line := "disallow: " + c.pattern + "\n"
		rules := parseRobots("user-agent: *\n"+strings.Repeat(line, maxRobots/len(line)), "FooBot")
		u, began := &url.URL{Path: "/" + c.path}, time.Now()
		for range 20 {
			if v := rules.verdict("http://a", u); !strings.HasPrefix(v.reason, c.reason) || c.reason == "" && v.reason != "" || v.reason != "" && v.outcome != Skipped {
				t.Fatalf("%.30s: %s because of %q, want %q", c.pattern, v.outcome, v.reason, c.reason)
			}
		}
		if took := time.Since(began) / 20; took > 2*time.Second {
			t.Errorf("%.30s: a verdict takes %v", c.pattern, took)
		}
	}
}

// obviously says what matches does, by trying every end of every text between two asterisks.
func obviously(path, pattern string) bool {
	if pattern == "" {
		return true
	}
	switch c := pattern[0]; {
	case pattern == "$":
		return path == ""
	case c == '*':
		return obviously(path, pattern[1:]) || path != "" && obviously(path[1:], pattern)
	default:
		return path != "" && path[0] == c && obviously(path[1:], pattern[1:])
	}
}

func FuzzPatternsMatchAsObviously(f *testing.F) {
	for _, c := range []string{"/fish", "/fish*", "/*.php$", "/fish*.php", "/$", "*", "$", "**$", "/a$b", "*$*", "/a*a"} {
		f.Add("/fish.php", c)
		f.Add("/aa", c)
	}
	f.Fuzz(func(t *testing.T, path, pattern string) {
		if len(path) > 20 || len(pattern) > 20 {
			return
		}
		if got, want := matches(path, pattern), obviously(path, pattern); got != want {
			t.Errorf("matches(%q, %q) = %v, want %v", path, pattern, got, want)
		}
	})
}

// FuzzRobots holds that no text breaks the parser, and that a group of the agent's own at the end has the last word.
func FuzzRobots(f *testing.F) {
	for _, c := range robotsCases {
		f.Add(c.robots, "x/y")
	}
	f.Add("user-agent: *\ncrawl-delay: 1e9\nallow: /a\xff*$", "a")
	f.Fuzz(func(t *testing.T, text, path string) {
		u, err := url.Parse("http://foo.bar/" + path)
		if err != nil {
			return
		}
		rules := parseRobots(text, "FooBot")
		if rules.delay < 0 {
			t.Errorf("a Crawl-delay of %v", rules.delay)
		}
		rules.allows(robotsPath(u))
		exact := "\nuser-agent: FooBot\ndisallow: /*" + strings.Repeat("*", len(text)) + "\n"
		if parseRobots(text+exact, "FooBot").allows("/") && len(text) < maxRobotsLine/2 && !strings.Contains(text, "llow") {
			t.Errorf("robots.txt %q and a rule that disallows everything allow /", text)
		}
	})
}

package fetch

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// anyWeb answers every request with an empty page.
type anyWeb struct{}

func (anyWeb) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// A list of any number of hosts needs memory for maxIdleSites of them.
func TestIdleSitesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCrawl(t, Options{})
		const hosts = maxIdleSites + 1000
		for i := range hosts {
			c.addSeed(Link{URL: fmt.Sprintf("http://h%d.example/", i)})
		}
		c.fed()
		if c.dispatch(t.Context()); len(c.sites) > maxIdleSites+maxInFlight {
			t.Errorf("after %d hosts, %d sites are remembered, want about %d", hosts, len(c.sites), maxIdleSites)
		}
	})
}

func TestURLsAreCanonical(t *testing.T) {
	for given, want := range map[string]string{
		"http://a.example":                 "http://a.example/",
		" HTTPS://A.Example.:443/x?q#f\r":  "https://a.example/x?q",
		"http://user:secret@a.example:81/": "http://a.example:81/",
		"https://a.example:80/%7Ex":        "https://a.example:80/%7Ex",
		"http://bücher.example/ü":          "http://xn--bcher-kva.example/%C3%BC",
		"http://[2001:DB8::1]:80/":         "http://[2001:db8::1]/",
		"http://my_host.example/":          "http://my_host.example/",
		"http://a.example/?q=a b&\xff\"ü":  "http://a.example/?q=a%20b&%FF%22%C3%BC",
	} {
		u, err := canonical(given)
		if err != nil || u.String() != want {
			t.Errorf("canonical(%q) = %v, %v, want %s", given, u, err, want)
		}
	}
	for _, given := range []string{"", "a.example/", "http:/x", "http://" + strings.Repeat("a.", 200) + "/", "http://a.example/" + strings.Repeat("x", maxURL), "http://a%2fb/", "http://a;b/", "http://a.example/" + strings.Repeat("ü", maxURL/3)} {
		if u, err := canonical(given); err == nil {
			t.Errorf("canonical(%.40q) = %v, want an error", given, u)
		}
	}
}

func TestSitesAreRegistrableDomains(t *testing.T) {
	for given, want := range map[string]string{
		"http://www.example.co.uk/": "example.co.uk", "http://a.b.example.com/": "example.com", "http://ann.github.io/": "ann.github.io",
		"http://github.io/": "github.io", "http://localhost:8080/": "localhost", "http://192.0.2.1:8080/": "192.0.2.1", "http://[2001:db8::1]/": "2001:db8::1",
	} {
		u, err := canonical(given)
		if err != nil || siteOf(u) != want {
			t.Errorf("siteOf(%s) = %q, %v, want %q", given, siteOf(u), err, want)
		}
	}
}

func TestPrivateAddresses(t *testing.T) {
	for _, private := range strings.Fields(`0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.1.2.3 169.254.169.254 172.16.0.1 172.31.255.255 192.168.1.1
		192.0.0.1 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::7f00:1
		fe80::1 fe80::1%eth0 fec0::1 fc00::1 fd00::1 ff02::1 2001:db8::1 2001::1 3fff::1 64:ff9b::10.0.0.1 64:ff9b:1::1 2002:7f00:1:: 2002:c0a8:101::1 100::1`) {
		if privateKind(netip.MustParseAddr(private)) == "" {
			t.Errorf("%s passes as public", private)
		}
	}
	for _, public := range strings.Fields("1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 192.0.1.1 223.255.255.255 2606:4700::1111 2a00:1450::1 64:ff9b::8.8.8.8 2002:808:808::1 ::ffff:8.8.8.8") {
		if kind := privateKind(netip.MustParseAddr(public)); kind != "" {
			t.Errorf("%s passes as %s", public, kind)
		}
	}
	if privateKind(netip.Addr{}) == "" {
		t.Error("no address passes as public")
	}
}

// longHost is the longest name of a host. With a port, it is longer than the name of a file may be.
var longHost = "b.a" + strings.Repeat("a.aaa", 50)

func TestFileNamesAreReadable(t *testing.T) {
	for given, want := range map[string]string{
		"https://example.com/":                     `example\.com/index-[0-9a-f]{16}\.html`,
		"https://example.com:8443/a/b.PDF":         `example\.com_8443/a_b-[0-9a-f]{16}\.pdf`,
		"https://example.com/a?x=1&y=2":            `example\.com/a_x_1_y_2-[0-9a-f]{16}\.html`,
		"https://example.com/../../etc/passwd":     `example\.com/etc_passwd-[0-9a-f]{16}\.html`,
		"https://example.com/%2e%2e/%00x%2fy":      `example\.com/x_y-[0-9a-f]{16}\.html`,
		"https://-x/":                              `host_-x/index-[0-9a-f]{16}\.html`,
		"https://con/a.tar.gz":                     `host_con/a\.tar-[0-9a-f]{16}\.gz`,
		"https://[2001:db8::1]/style.css":          `2001_db8__1/style-[0-9a-f]{16}\.css`,
		"https://e.com/" + strings.Repeat("a", 99): `e\.com/a{80}-[0-9a-f]{16}\.html`,
		"https://" + longHost + ":65535/":          `b\.a[a.]{235}-[0-9a-f]{16}/index-[0-9a-f]{16}\.html`,
	} {
		u, err := canonical(given)
		if err != nil {
			t.Fatal(err)
		}
		if got := FileName(u, "text/html; charset=utf-8"); !regexp.MustCompile("^" + want + "$").MatchString(got) {
			t.Errorf("FileName(%s) = %q, want %s", given, got, want)
		}
	}
}

var safeName = regexp.MustCompile(`^[a-z0-9_][a-z0-9._-]{0,254}/[a-z0-9_][a-z0-9._-]*$`)

func FuzzFileNames(f *testing.F) {
	for _, u := range []string{"https://example.com/", "http://a/..", "http://a/.%2e/%2e.", "http://con/nul.txt", "http://-", "http://a/\x00", "http://a/x.HTML?y=/..", "http://a/é", "http://" + longHost + ":65535/"} {
		f.Add(u, "text/html")
	}
	f.Fuzz(func(t *testing.T, given, kind string) {
		u, err := canonical(given)
		if err != nil {
			return
		}
		name := FileName(u, kind)
		host, file, _ := strings.Cut(name, "/")
		if !safeName.MatchString(name) || len(file) > 120 || len(host) > 255 || strings.Contains(name, "..") && !strings.Contains(u.Host+u.Path+u.RawQuery, "..") {
			t.Errorf("FileName(%q) = %q", given, name)
		}
		if other := *u; true {
			other.RawQuery += "&"
			if FileName(&other, kind) == name {
				t.Errorf("%s and %s have one name, %q", u, &other, name)
			}
		}
	})
}

func FuzzURLs(f *testing.F) {
	for _, u := range []string{"http://a.example/x?y#z", "http://[::1%25eth0]/", "http://bücher/", "http://a:99999/", "//x", "http://a\\b/", "http://../", "http://a../", "http://a。./", "http://[::%25\x82]", "http://a%b/"} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, given string) {
		u, err := canonical(given)
		if err != nil {
			return
		}
		again, err := canonical(u.String())
		if err != nil || again.String() != u.String() {
			t.Errorf("canonical(%q) is %s, whose canonical form is %v, %v", given, u, again, err)
		}
		if _, err := http.NewRequest("GET", u.String(), nil); err != nil || siteOf(u) == "" {
			t.Errorf("canonical(%q) is %s: site %q, %v", given, u, siteOf(u), err)
		}
	})
}

func TestLinksAreFoundInHTML(t *testing.T) {
	base, _ := url.Parse("http://a.example/dir/page")
	const page = `<!doctype html><head><base href="/other/"><base href="/second/"></head>
		<a href=x>1</a> <A HREF=' /y?a=1&amp;b=2 '>2</a> <area href="//b.example/z"> <iframe src="frame.html"></iframe>
		<img src="no.png"> <link href="no.css"> <a name=no> <a href="">3</a> <a href="http://%zz/">4</a>
		<!-- <a href="no"> --> <script>"<a href='no'>"</script> <a href="javascript:no()">5</a>`
	var got []string
	for link, err := range links(base, strings.NewReader(page)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, link)
	}
	want := []string{"http://a.example/other/x", "http://a.example/y?a=1&b=2", "http://b.example/z", "http://a.example/other/frame.html", "javascript:no()"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A page of the largest size is read in a time that a person hardly notices, whatever it holds.
func TestHostilePagesAreReadInLinearTime(t *testing.T) {
	for name, page := range map[string]string{
		"bases":      strings.Repeat("<base href=aaaa/>", 1<<19/17),
		"a long one": "<base href='/" + strings.Repeat("a", 1<<19) + "'>" + strings.Repeat("<a href=x>", 1<<19/10),
		"links":      "<base href='/" + strings.Repeat("a", 8000) + "/'>" + strings.Repeat("<a href=x>", 1<<19/10),
		"attributes": "<a" + strings.Repeat(" href=", 1<<19/6) + ">",
		"dots":       strings.Repeat("<a href='"+strings.Repeat("../", 10000)+"'>", 64),
	} {
		base, _ := url.Parse("http://a.example/dir/page")
		began, size := time.Now(), 0
		for link, err := range links(base, strings.NewReader(page)) {
			if size += len(link); err != nil || len(link) > maxURL {
				t.Errorf("%s: a link of %d bytes, %v", name, len(link), err)
			}
		}
		if took := time.Since(began); took > 10*time.Second || size > maxLinks {
			t.Errorf("%s: %d bytes of links took %v, want at most %d bytes in 10s", name, size, took, maxLinks)
		}
	}
}

func FuzzLinks(f *testing.F) {
	f.Add(`<a href="x"><base href="http://b/">`)
	f.Add("<a href=\"\x00\"><a href=%zz><a href")
	f.Fuzz(func(t *testing.T, page string) {
		base, _ := url.Parse("http://a.example/dir/")
		for link, err := range links(base, strings.NewReader(page)) {
			if _, wrong := url.Parse(link); err != nil || wrong != nil {
				t.Errorf("link %q, %v, %v", link, err, wrong)
			}
		}
	})
}

package accesslog

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"time"
)

// Logs of vendors with names of their own are read by themselves. Each line has the path /a, the method GET, the query b=1 and the
// client 192.0.2.9 unless it says otherwise.
func TestLogsOfVendorsAreReadByThemselves(t *testing.T) {
	for _, c := range []struct{ name, log, format, at string }{
		{"Cloudflare Logpush", `{"ClientIP":"192.0.2.9","ClientRequestHost":"example.com","ClientRequestMethod":"GET","ClientRequestURI":"/a?b=1","EdgeEndTimestamp":"2026-02-25T06:13:21Z","EdgeResponseStatus":200,"EdgeStartTimestamp":"2026-02-25T06:13:20.023Z"}`, "cloudflare", "2026-02-25T06:13:20.023Z"},
		{"Cloudflare in nanoseconds", `{"ClientIP":"192.0.2.9","ClientRequestMethod":"GET","ClientRequestURI":"/a?b=1","EdgeStartTimestamp":1772000000000000000}`, "cloudflare", "2026-02-25T06:13:20Z"},
		{"Cloudflare with ends alone", `{"ClientIP":"192.0.2.9","ClientRequestMethod":"GET","ClientRequestURI":"/a?b=1","EdgeEndTimestamp":1772000000}`, "json", "2026-02-25T06:13:20Z"},
		{"Google Cloud", `{"timestamp":"2026-08-06T07:55:13.5Z","httpRequest":{"remoteIp":"192.0.2.9:49194","requestMethod":"GET","requestUrl":"https://example.com/a?b=1","status":200,"latency":"0.012s"}}`, "gcp", "2026-08-06T07:55:13.5Z"},
		{"log_time and user_ip", `{"user_ip":"192.0.2.9","log_time":"2026-08-09T17:45:09+08:00","method":"GET","uri":"/a?b=1"}`, "json", "2026-08-09T09:45:09Z"},
		{"CloudFront in JSON", `{"date":"2026-11-14","time":"11:19:27","x-edge-location":"LAX1","c-ip":"192.0.2.9","cs-method":"GET","cs-uri-stem":"/a","cs-uri-query":"b=1","time-taken":"0.012"}`, "cloudfront-json", "2026-11-14T11:19:27Z"},
		{"CloudFront in columns", "#Fields: date time x-edge-location c-ip cs-method cs-uri-stem cs-uri-query\n2026-11-14\t11:19:27\tLAX1\t192.0.2.9\tGET\t/a\tb=1", "cloudfront", "2026-11-14T11:19:27Z"},
		{"date and time in JSON", `{"date":"2026-11-14","time":"11:19:27","ip":"192.0.2.9","method":"GET","path":"/a","query":"b=1"}`, "json", "2026-11-14T11:19:27Z"},
		{"ingress-nginx", `192.0.2.9 - alice [24/Aug/2026:21:04:17 +0000] "GET /a?b=1 HTTP/1.1" 200 470 "-" "agent/7.16 (linux)" 2057 0.033 [default-web-9200] [] [2001:db8::1]:9200 470 0.036 200 3db73c6c673c4256ade033a6ce08c2ab`, "ingress-nginx", "2026-08-24T21:04:17Z"},
		{"ingress-nginx after a retry", `192.0.2.9 - - [24/Aug/2026:21:04:17 +0000] "GET /a?b=1 HTTP/1.1" 200 470 "-" "-" 2057 0.033 [default-web-9200] [] 10.0.0.1:80, 10.0.0.2:80 0, 470 0.001, 0.036 502, 200 3db73c6c`, "ingress-nginx", "2026-08-24T21:04:17Z"},
		{"Nginx Proxy Manager", `[24/Aug/2026:21:04:17 +0000] - 200 200 - GET https example.com "/a?b=1" [Client 192.0.2.9] [Length 470] [Gzip 2.1] [Sent-to 10.0.0.2] "curl/8" "-"`, "npm", "2026-08-24T21:04:17Z"},
		{"Nginx Proxy Manager without a backend", `[24/Aug/2026:21:04:17 +0000] 404 - GET http localhost "/a?b=1" [Client 192.0.2.9] [Length 470] [Gzip -] "curl/8" "-"`, "npm-standard", "2026-08-24T21:04:17Z"},
	} {
		got, r := read(t, Options{}, c.log, "ip", "method", "path", "query", "uri")
		if want := "192.0.2.9|GET|/a|b=1|/a?b=1"; len(got) != 1 || got[0] != want || r.Found()[0].Format != c.format {
			t.Errorf("%s: got %q as %+v, want %q as %s", c.name, got, r.Found(), want, c.format)
		}
		if at, _, why := one(t, c.log[strings.LastIndexByte(c.log, '\n')+1:], "ip"); !strings.Contains(c.log, "#") && (why != "" || time.Unix(0, at).UTC().Format(time.RFC3339Nano) != c.at) {
			t.Errorf("%s: got the time %s, %s, want %s", c.name, time.Unix(0, at).UTC().Format(time.RFC3339Nano), why, c.at)
		}
	}
}

// The user can say which field is what, also where a line has the usual names for something else.
func TestTheUserNamesTheFieldsOfJSONLines(t *testing.T) {
	const line = `{"when":"2026-08-09T17:45:09+08:00","who":{"at":"[2001:db8::5]:49194"},"line":"GET /a?b=1 HTTP/1.1","code":"200","key":"k","time":"2001-01-01T00:00:00Z","ip":"198.51.100.1","path":"/other","via":"192.0.2.1, 192.0.2.2"}`
	format := "json time=when client=who.at request=line status=code header.x-api-key=key forwarded=via"
	names := []string{"ip", "method", "path", "uri", "status", "header.x-api-key", "header.x-forwarded-for"}
	got, r := read(t, Options{Format: format}, line, names...)
	if want := "2001:db8::/64|GET|/a|/a?b=1|200|k|192.0.2.1, 192.0.2.2"; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if f := r.Found()[0]; f.Time != "when, in whole seconds" || !strings.HasPrefix(f.Client, "who.at, because no proxy is trusted that has forwarded via") {
		t.Errorf("got %+v", f)
	}
	for format, want := range map[string]string{
		"json clinet=a":          `"clinet" is none of time, client, `,
		"json time":              `"time" is not NAME=FIELD`,
		"json time=":             `"time=" is not NAME=FIELD`,
		"json header.=a":         `"header.=a" is not NAME=FIELD`,
		"json client=a client=b": `"client" occurs twice`,
		"json forwarded=a header.x-forwarded-for=b": `"header.x-forwarded-for" occurs twice`,
	} {
		if _, err := NewReader(Options{Format: format}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want %s", format, err, want)
		}
	}
}

// A key that is an address is that of the daemon: without its port, and a network of IPv6. Other values stand as they are.
func TestAnAddressAsAKeyIsTakenAsTheDaemonTakesIt(t *testing.T) {
	for _, c := range []struct{ format, field, value, want string }{
		{"", "httpRequest.remoteIp", "192.0.2.4:49194", "192.0.2.4"},
		{"", "httpRequest.remoteIp", "2001:db8::5", "2001:db8::/64"},
		{"", "peer_addr", "[2001:db8::5]:49194", "2001:db8::/64"},
		{"", "source.ip", "::ffff:192.0.2.4", "192.0.2.4"},
		{"", "callerIp", "2001:db8::5", "2001:db8::/64"},
		{"", "source.ip", "unknown", "unknown"},
		{"", "tenant", "192.0.2.4:49194", "192.0.2.4:49194"},
		{"", "version", "2001:db8::5", "2001:db8::5"},
		{"json client=tenant", "tenant", "192.0.2.4:49194", "192.0.2.4"},
	} {
		r, err := NewReader(Options{Format: c.format})
		if err != nil {
			t.Fatal(err)
		}
		slot, got := r.WantKey(c.field), ""
		line := `{"timestamp":"2026-08-06T07:55:13Z","` + strings.ReplaceAll(c.field, ".", `":{"`) + `":"` + c.value + `"` + strings.Repeat("}", 1+strings.Count(c.field, "."))
		err = r.Read("log", strings.NewReader(line), func(e *Entry) (string, error) {
			value, _ := e.Value(slot)
			got = string(value)
			return "", nil
		})
		if err != nil || got != c.want {
			t.Errorf("%s of %s: got %q, %v, want %q", c.field, line, got, err, c.want)
		}
	}
}

func TestIPv6WithAPortInAPattern(t *testing.T) {
	const address = "2001:db8:1d0c:29b7:c9b2:7b5a:e7d0:2380"
	for _, c := range []struct{ pattern, client, want string }{
		{"$time_iso8601 $remote_addr:$remote_port $x", address + ":55932", "2001:db8:1d0c:29b7::/64"},
		{"$time_iso8601 $remote_addr:$remote_port $x", "[" + address + "]:55932", "2001:db8:1d0c:29b7::/64"},
		{"$time_iso8601 $remote_addr:$remote_port $x", "2001:db8::1:55932", "2001:db8::/64"},
		{"$time_iso8601 $remote_addr:$remote_port $x", "192.0.2.1:55932", "192.0.2.1"},
		{"$time_iso8601 $client_port $x", address + ":55932", "2001:db8:1d0c:29b7::/64"},
		{"$time_iso8601 $client_port $x", "[" + address + "]:55932", "2001:db8:1d0c:29b7::/64"},
		{"$time_iso8601 $client_port $x", "192.0.2.1:55932", "192.0.2.1"},
		{"$time_iso8601 $remote_addr $x", address + ":55932", "2001:db8:1d0c:29b7::/64"},
		{"$time_iso8601 $remote_addr $x", "[" + address + "]:55932", "2001:db8:1d0c:29b7::/64"},
	} {
		if got, _ := read(t, Options{Format: c.pattern}, "2026-04-29T07:46:43Z "+c.client+" x", "ip", "x"); len(got) != 1 || got[0] != c.want+"|x" {
			t.Errorf("%s of %s: got %q, want %s", c.pattern, c.client, got, c.want)
		}
	}
}

func TestAGzipFileMayEndInZerosAndHaveMembers(t *testing.T) {
	var one bytes.Buffer
	zip := gzip.NewWriter(&one)
	_, _ = zip.Write([]byte(common + "\n"))
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	zeros := strings.Repeat("\x00", 10240)
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"alone":           {one.String(), 1},
		"padded":          {one.String() + zeros, 1},
		"two":             {one.String() + one.String(), 2},
		"two, padded":     {one.String() + zeros + one.String() + "\x00", 2},
		"one zero behind": {one.String() + "\x00", 1},
	} {
		if got, r := read(t, Options{}, c.text, "ip"); len(got) != c.want || r.Lines() != int64(c.want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for _, behind := range []string{"x", zeros + "x", "\x1f", one.String()[:15]} { // it may be anything
		r, _ := NewReader(Options{})
		if err := r.Read("log", strings.NewReader(one.String()+behind), func(*Entry) (string, error) { return "", nil }); err == nil {
			t.Errorf("a file with %q behind it has no error", behind[max(0, len(behind)-20):])
		}
	}
}

func TestALeapSecondIsATime(t *testing.T) {
	for text, want := range map[string]string{
		"2016-12-31T23:59:60Z":       "2017-01-01T00:00:00Z",
		"2016-12-31T23:59:60.5Z":     "2017-01-01T00:00:00.5Z",
		"01/Jan/2017:05:29:60 +0530": "2017-01-01T00:00:00Z",
		"01/Jan/2017:05:44:60 +0545": "2017-01-01T00:00:00Z",
	} {
		if s, why := parseTime([]byte(text)); why != "" || time.Unix(0, s.at).UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%s: got %s, %s, want %s", text, time.Unix(0, s.at).UTC().Format(time.RFC3339Nano), why, want)
		}
	}
	for _, text := range []string{"2016-12-31T23:59:61Z", "2016-12-31T23:58:60Z"} {
		if s, why := parseTime([]byte(text)); why != whyBadTime {
			t.Errorf("%s: got %d, %s", text, s.at, why)
		}
	}
}

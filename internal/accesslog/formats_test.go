package accesslog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// samples are a line of each format, and what it says. The path is /a in each, the status 200, and the client 192.0.2.1
// unless it says otherwise.
var samples = []struct {
	format, log   string
	at            string
	step          time.Duration
	stamp         Stamp
	took          time.Duration
	client, agent string
}{
	{format: "combined", log: `192.0.2.1 - - [11/Oct/2023:22:14:11 +0200] "GET /a?b HTTP/1.1" 200 157 "-" "curl/8"`,
		at: "2023-10-11T20:14:11Z", step: time.Second, stamp: Ends, agent: "curl/8"},
	{format: "nginx-main", log: `192.0.2.1 - bob [11/Oct/2023:22:14:11 +0000] "GET /a HTTP/1.1" 200 157 "-" "curl/8" "203.0.113.9, 10.0.0.1"`,
		at: "2023-10-11T22:14:11Z", step: time.Second, stamp: Ends, agent: "curl/8"},
	{format: "common", log: `192.0.2.1 - - [11/Oct/2023:22:14:11 +0000] "GET /a HTTP/1.1" 200 157`, at: "2023-10-11T22:14:11Z", step: time.Second, stamp: Ends},
	{format: "vhost", log: `www.shop.example:443 192.0.2.1:50711 - - [11/Oct/2023:22:14:11 +0000] "GET /a HTTP/2.0" 200 157 "-" "curl/8"`,
		at: "2023-10-11T22:14:11Z", step: time.Second, stamp: Ends, agent: "curl/8"},
	{format: "forwarded", log: `- 192.0.2.1 - - [11/Oct/2023:22:14:11 +0000] "GET /a HTTP/2.0" 200 157 "-" "curl/8"`,
		at: "2023-10-11T22:14:11Z", step: time.Second, stamp: Ends, agent: "curl/8"},
	{format: "combined-ident", log: `192.0.2.1 id bob [11/Oct/2023:22:14:11 +0000] "GET /a HTTP/1.1" 200 157 "-" "curl/8"`,
		at: "2023-10-11T22:14:11Z", step: time.Second, stamp: Ends, agent: "curl/8"},
	{format: "traefik", log: `192.0.2.1 - - [11/Oct/2023:22:14:11 +0000] "GET /a HTTP/1.1" 200 157 "-" "curl/8" 42 "web@docker" "http://10.0.0.2:80" 17ms`,
		at: "2023-10-11T22:14:11Z", step: time.Second, stamp: Starts, took: 17 * time.Millisecond, agent: "curl/8"},
	{format: "envoy", log: `[2023-10-11T22:14:11.250Z] "GET /a HTTP/1.1" 200 - 0 157 12 11 "192.0.2.1" "curl/8" "cc21d9b0" "shop.example" "10.0.0.2:80"`,
		at: "2023-10-11T22:14:11.25Z", step: time.Millisecond, stamp: Starts, took: 12 * time.Millisecond, agent: "curl/8"},
	{format: "istio", log: `[2023-10-11T22:14:11.250Z] "GET /a HTTP/1.1" 200 - via_upstream - "-" 0 157 12 11 "-" "curl/8" "cc21d9b0" "shop.example" "10.0.0.2:80" ` +
		`outbound|80||web.default.svc.cluster.local 10.0.0.3:4711 10.0.0.2:80 192.0.2.1:50711 - default`,
		at: "2023-10-11T22:14:11.25Z", step: time.Millisecond, stamp: Starts, took: 12 * time.Millisecond, agent: "curl/8"},
	{format: "haproxy in syslog", log: `Feb  6 12:14:14 localhost haproxy[14389]: 192.0.2.1:33317 [06/Feb/2023:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /a HTTP/1.1"`,
		at: "2023-02-06T12:14:14.655Z", step: time.Millisecond, stamp: Starts, took: 109 * time.Millisecond},
	{format: "alb", log: `http 2023-10-11T22:14:11.262000Z app/lb/50dc6c 192.0.2.1:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET http://www.example.com:80/a HTTP/1.1" "curl/8" - - ` +
		`arn:aws:elasticloadbalancing:us-east-2:1:targetgroup/t/73 "Root=1-58337262-36d228ad" "-" "-" 0 2023-10-11T22:14:11.186641Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`,
		at: "2023-10-11T22:14:11.186641Z", step: time.Microsecond, stamp: Starts, agent: "curl/8"},
	{format: "s3", log: `79a59df9 bucket [06/Feb/2019:00:00:38 +0000] 192.0.2.1 79a59df9 3E57427F3 REST.GET.OBJECT s3-dg.pdf "GET /a HTTP/1.1" 200 - 113 - 7 - "-" "S3Console/0.4" - s9lzHYrFp SigV4`,
		at: "2019-02-06T00:00:38Z", step: time.Second, stamp: Starts, took: 7 * time.Millisecond, agent: "S3Console/0.4"},
	{format: "cloudfront", log: "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query time-taken\n" +
		"2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.1\tGET\td111.cloudfront.net\t/a\t200\t-\tcurl/8\t-\t0.012",
		at: "2019-12-04T21:02:31Z", step: time.Second, stamp: Ends, took: 12 * time.Millisecond, agent: "curl/8"},
	{format: "iis", log: "#Software: Microsoft Internet Information Services 10.0\r\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken\r\n" +
		"2019-12-04 21:02:31 10.0.0.9 GET /a b=c 443 - 192.0.2.1 curl/8 - 200 0 0 15\r",
		at: "2019-12-04T21:02:31Z", step: time.Second, stamp: Ends, took: 15 * time.Millisecond, agent: "curl/8"},
	{format: "caddy", log: `{"level":"info","ts":1697062451.25,"request":{"remote_ip":"10.0.0.1","client_ip":"192.0.2.1","method":"GET","host":"h","uri":"/a?b","headers":{"User-Agent":["curl/8"]}},"duration":0.012,"status":200}`,
		at: "2023-10-11T22:14:11.25Z", step: 10 * time.Millisecond, stamp: Ends, took: 12 * time.Millisecond, agent: "curl/8"},
	{format: "traefik-json", log: `{"ClientHost":"192.0.2.1","DownstreamStatus":200,"Duration":12000000,"RequestMethod":"GET","RequestPath":"/a?b","StartUTC":"2023-10-11T22:14:11.123456789Z","request_User-Agent":"curl/8","time":"2023-10-11T22:14:12Z"}`,
		at: "2023-10-11T22:14:11.123456789Z", step: 1, stamp: Starts, took: 12 * time.Millisecond, agent: "curl/8"},
	{format: "envoy-json", log: `{"start_time":"2023-10-11T22:14:11.250Z","method":"GET","path":"/a?b","response_code":200,"duration":12,"x_forwarded_for":"-","user_agent":"curl/8","downstream_remote_address":"192.0.2.1:50711"}`,
		at: "2023-10-11T22:14:11.25Z", step: time.Millisecond, stamp: Starts, took: 12 * time.Millisecond, agent: "curl/8"},
	{format: "nginx-json", log: `{"time_iso8601":"2023-10-11T22:14:11+00:00","remote_addr":"192.0.2.1","request":"GET /a HTTP/1.1","status":"200","request_time":"0.012","http_user_agent":"curl/8"}`,
		at: "2023-10-11T22:14:11Z", step: time.Second, stamp: Ends, took: 12 * time.Millisecond, agent: "curl/8"},
	{format: "cloudflare", log: `{"ClientIP":"192.0.2.1","ClientRequestURI":"/a?b","ClientRequestUserAgent":"curl/8","EdgeResponseStatus":200,"EdgeStartTimestamp":"2023-10-11T22:14:11.25Z"}`,
		at: "2023-10-11T22:14:11.25Z", step: 10 * time.Millisecond, stamp: Starts, agent: "curl/8"},
	{format: "gcp", log: `{"timestamp":"2023-10-11T22:14:11.25Z","httpRequest":{"remoteIp":"192.0.2.1","requestUrl":"https://h/a?b","status":200,"userAgent":"curl/8","latency":"0.012s"}}`,
		at: "2023-10-11T22:14:11.25Z", step: 10 * time.Millisecond, took: 12 * time.Millisecond, agent: "curl/8"},
	{format: "ingress-nginx", log: `192.0.2.1 - bob [11/Oct/2023:22:14:11 +0000] "GET /a HTTP/1.1" 200 157 "-" "curl/8" 2057 0.012 [default-web-80] [] 10.0.0.2:80 157 0.012 200 3db73c6c`,
		at: "2023-10-11T22:14:11Z", step: time.Second, stamp: Ends, took: 12 * time.Millisecond, agent: "curl/8"},
	{format: "npm", log: `[11/Oct/2023:22:14:11 +0000] - 200 200 - GET https h "/a?b" [Client 192.0.2.1] [Length 157] [Gzip -] [Sent-to 10.0.0.2] "curl/8" "-"`,
		at: "2023-10-11T22:14:11Z", step: time.Second, stamp: Ends, agent: "curl/8"},
	{format: "json", log: `{"@timestamp":"2023-10-11T22:14:11Z","clientip":"192.0.2.1","path":"/a","status":200}`, at: "2023-10-11T22:14:11Z", step: time.Second},
	{format: "csv", log: "timestamp;ip;path;status;user_agent\n2023-10-11 22:14:11;192.0.2.1;/a;200;\"a \"\"b\"\"; c\"", at: "2023-10-11T22:14:11Z", step: time.Second, agent: `a "b"; c`},
	{format: "combined in docker", log: `{"log":"192.0.2.1 - - [11/Oct/2023:22:14:11 +0000] \"GET /a HTTP/1.1\" 200 157 \"-\" \"curl/8\"\n","stream":"stdout","time":"2023-10-11T22:14:11.5Z"}`,
		at: "2023-10-11T22:14:11Z", step: time.Second, stamp: Ends, agent: "curl/8"},
	{format: "caddy in cri", log: `2023-10-11T22:14:11.123456789Z stdout F {"ts":1697062451.25,"request":{"client_ip":"192.0.2.1","uri":"/a","headers":{"User-Agent":["curl/8"]}},"status":200}`,
		at: "2023-10-11T22:14:11.25Z", step: 10 * time.Millisecond, stamp: Ends, agent: "curl/8"},
}

func TestEachFormatIsFoundAndRead(t *testing.T) {
	for _, s := range samples {
		r, err := NewReader(Options{})
		if err != nil {
			t.Fatal(err)
		}
		client, path, status, agent := r.Want("ip"), r.Want("path"), r.Want("status"), r.Want("agent")
		entries := 0
		err = r.Read("log", strings.NewReader(s.log+"\n"), func(e *Entry) (string, error) {
			entries++
			want, err := time.Parse(time.RFC3339Nano, s.at)
			if err != nil {
				t.Fatal(err)
			}
			if e.Time != want.UnixNano() || e.Step != s.step || e.Stamp != s.stamp {
				t.Errorf("%s: got %s, step %s, stamp %d, want %s, %s, %d", s.format, time.Unix(0, e.Time).UTC(), e.Step, e.Stamp, s.at, s.step, s.stamp)
			}
			if took, _ := e.Took(); took != s.took {
				t.Errorf("%s: it took %s, want %s", s.format, took, s.took)
			}
			for _, f := range []struct {
				slot Slot
				want string
			}{{client, "192.0.2.1"}, {path, "/a"}, {status, "200"}, {agent, s.agent}} {
				if got, _ := e.Value(f.slot); string(got) != f.want {
					t.Errorf("%s: got %q, want %q (%s)", s.format, got, f.want, e.Why(f.slot))
				}
			}
			return "", nil
		})
		if err != nil || entries != 1 || r.Lines() != 1 || r.Rejected() != 0 {
			t.Errorf("%s: got %d entries of %d lines, %v, %v, want 1", s.format, entries, r.Lines(), r.Reasons(), err)
		}
		if found := r.Found()[0]; found.Format != s.format || !strings.HasPrefix(found.Why, "fits all") {
			t.Errorf("%s: got %+v", s.format, found)
		}
	}
}

// Every sample is read alike whatever collector has wrapped it, and when its format is told.
func TestEachFormatIsReadInAnyWrapperAndWhenTold(t *testing.T) {
	wrap := map[string]string{
		"cri": "2023-10-11T22:14:11.123456789Z stdout F ", "compose": "web-1  | ", "go log": "2023/10/11 22:14:11 ", "kubectl": "[pod/web-7/nginx] ",
		"timestamps": "2023-10-11T22:14:11.123456789Z ", "syslog": "<190>Oct  1 22:14:11 web1 nginx[7]: ",
	}
	for _, s := range samples {
		format, _, wrapped := strings.Cut(s.format, " in ")
		if wrapped || strings.Contains(s.log, "\n") {
			continue
		}
		want, _ := read(t, Options{}, s.log, "ip", "path", "status", "agent")
		told, _ := read(t, Options{Format: format}, s.log, "ip", "path", "status", "agent")
		if told[0] != want[0] {
			t.Errorf("%s: told got %q, want %q", s.format, told, want)
		}
		for name, prefix := range wrap {
			got, r := read(t, Options{}, prefix+s.log, "ip", "path", "status", "agent")
			if len(got) != 1 || got[0] != want[0] || r.Found()[0].Format != format+" in "+name {
				t.Errorf("%s in %s: got %q, %v, want %q", s.format, name, got, r.Found(), want)
			}
		}
	}
}

// A log that was cut anywhere has the values of the whole one, or none: never a part of one.
func TestALineCutAnywhereHasWholeValues(t *testing.T) {
	for _, s := range samples {
		names := []string{"ip", "path", "status", "referer", "user", "host"}
		want, _ := read(t, Options{}, s.log, names...)
		begin := strings.LastIndex(s.log, "\n") + 1
		whole := strings.Split(want[0], "|")
		for end := begin; end < len(s.log); end++ {
			got, _ := read(t, Options{}, s.log+"\n"+s.log[begin:end], names...)
			for _, entry := range got[1:] {
				for i, value := range strings.Split(entry, "|") {
					if value != whole[i] && !strings.HasPrefix(value, "(") {
						t.Errorf("%s: got %q of %q, want %q", s.format, value, s.log[begin:end], whole[i])
					}
				}
			}
		}
	}
}

func TestLogsThatUsersSentAreRead(t *testing.T) {
	files, err := filepath.Glob("testdata/L*.log")
	if err != nil || len(files) < 11 {
		t.Fatalf("got %d samples, %v", len(files), err)
	}
	unread := map[string]string{
		"L5-xff.log": whyClients, "L5b-xff3.log": whyClients, "L7-emptyip.log": whyNotClient,
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		entries, _ := read(t, Options{}, string(text), "ip")
		for _, entry := range entries {
			why := unread[filepath.Base(file)]
			if why != "" && entry != "("+why+")" || why == "" && !strings.HasPrefix(entry, "192.0.2.") {
				t.Errorf("%s: got %q, reason %q wanted", file, entry, why)
			}
		}
		if len(entries) != strings.Count(string(text), "\n") {
			t.Errorf("%s: got %d entries", file, len(entries))
		}
	}
}

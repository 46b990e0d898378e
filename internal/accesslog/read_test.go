package accesslog

import (
	"strings"
	"testing"
	"time"
)

const (
	full   = `10.0.0.1 id bob [17/May/2015:12:00:00 +0000] "GET /a/b?c=d&e HTTP/1.1" 404 12 "http://r.example/" "Agent \"x\" 1.0"`
	common = `10.0.0.1 - - [17/May/2015:12:00:00 +0000] "POST /a HTTP/1.0" 200 -`
	vhost  = `www.example.org:443 2001:db8::1 - - [17/May/2015:12:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "-"`
	flat   = `{"time":"2015-05-17T12:00:00Z","remote_addr":"10.0.0.1","request":"GET /a?b=c HTTP/1.1","status":200,"tls":true,"user_agent":"A \u00e9"}`
	caddy  = `{"level":"info","ts":1431864000,"request":{"remote_ip":"10.0.0.1","method":"GET","host":"example.org","uri":"/x?y","headers":{"User-Agent":["curl/8"]}},"user_id":"","status":200}`
)

func TestFieldsOfEveryFormatMakeKeys(t *testing.T) {
	for _, c := range []struct{ key, line, want string }{
		{"ip", full, "10.0.0.1"},
		{"user", full, "bob"},
		{"method", full, "GET"},
		{"path", full, "/a/b"},
		{"query", full, "c=d&e"},
		{"uri", full, "/a/b?c=d&e"},
		{"status", full, "404"},
		{"referer", full, "http://r.example/"},
		{"agent", full, `Agent \"x\" 1.0`},
		{"path", common, "/a"},
		{"query", common, ""},
		{"status", common, "200"},
		{"user", common, "-"},
		{"ip", vhost, "2001:db8::/64"},
		{"host", vhost, "www.example.org"},
		{"user", vhost, "-"},
		{"user", `10.0.0.1 - John Doe [17/May/2015:12:00:00 +0000] "GET / HTTP/1.1" 200 5`, "John Doe"},
		{"status", `10.0.0.1 - - [17/May/2015:12:00:00 +0000] "-" 408 -`, "408"},
		{"path", `10.0.0.1 - - [17/May/2015:12:00:00 +0000] "GET /old" 200 5`, "/old"},
		{"path", `10.0.0.1 - - [17/May/2015:12:00:00 +0000] "GET /a b HTTP/1.1" 400 5`, "/a b"},
		{"ip", `10.0.0.1 - - [2015-05-17T12:00:00+00:00] "GET / HTTP/1.1" 200 5`, "10.0.0.1"},
		{"ip", `10.0.0.1 - [odd] [17/May/2015:12:00:00 +0000] "GET / HTTP/1.1" 200 5`, "10.0.0.1"},

		// Cut short after the needed field.
		{"ip", full[:len(full)-5], "10.0.0.1"},
		{"referer", full[:len(full)-5], "http://r.example/"},
		{"ip", `10.0.0.1 - - [17/May/2015:12:00:00 +0000] "`, "10.0.0.1"},
		{"path", `10.0.0.1 - - [17/May/2015:12:00:00 +0000] "GET /a HTTP/1.1" 2`, "/a"},
		{"status", `10.0.0.1 - - [17/May/2015:12:00:00 +0000] "GET /a HTTP/1.1" 200 `, "200"},

		{"ip", flat, "10.0.0.1"},
		{"remote_addr", flat, "10.0.0.1"},
		{"method", flat, "GET"},
		{"path", flat, "/a"},
		{"query", flat, "b=c"},
		{"uri", flat, "/a?b=c"},
		{"status", flat, "200"},
		{"tls", flat, "true"},
		{"agent", flat, "A é"},
		{"ip", caddy, "10.0.0.1"},
		{"path", caddy, "/x"},
		{"host", caddy, "example.org"},
		{"user", caddy, ""},
		{"agent", caddy, "curl/8"},
		{"level", caddy, "info"},
		{"request.headers.User-Agent.0", caddy, "curl/8"},
		{"ip", ` {"ip":"a","ip":"10.0.0.2","time":"1431864000"}`, "10.0.0.2"},
		{"ip", `{"@timestamp":1431864000.0,"time":"0.002","ip":"10.0.0.1"}`, "10.0.0.1"},
		{"ip", `{"time":"12:00","ts":1431864000,"ip":"10.0.0.1"}`, "10.0.0.1"},
		{"ip", `{"msec":"1431864000.000","ip":"10.0.0.1","agent":"cut sho`, "10.0.0.1"},
		{"ip", `{"time_local":"17/May/2015:12:00:00 +0000","ip":"10.0.0.1"} x`, "10.0.0.1"},
	} {
		at, got, why := one(t, c.line, c.key)
		noon := time.Date(2015, 5, 17, 12, 0, 0, 0, time.UTC).UnixNano()
		if why != "" || string(got) != c.want || at != noon {
			t.Errorf("key %s of %s: got %q at %d, reason %q, want %q at %d", c.key, c.line, got, at, why, c.want, noon)
		}
	}
}

func TestLinesThatDoNotCountSayWhy(t *testing.T) {
	for _, c := range []struct{ key, line, want string }{
		{"ip", "", "is blank"},
		{"ip", " \t", "is blank"},
		{"ip", "hello", "has no time"},
		{"ip", `10.0.0.1 - - "GET /[17/May/2015:12:00:00 +0000] HTTP/1.1" 200 5`, "has no time"},
		{"ip", "10.0.0.1 - - [17/May/2015:12:00", "has no time"},
		{"ip", "10.0.0.1 - - [01/Jan/0001:00:00:00 +0000] \"x", "has a time outside the years 1678 to 2261"},
		{"ip", " - - [17/May/2015:12:00:00 +0000] \"x", "has no time"},
		{"ip", "client.example - - [17/May/2015:12:00:00 +0000] \"x", "has a client that is not an address"},
		{"host", full, "has no host, or one cut short"},
		{"tls", full, "has no tls, or one cut short"},
		{"agent", common, "has no agent, or one cut short"},
		{"agent", full[:len(full)-5], "has no agent, or one cut short"},
		{"path", `10.0.0.1 - - [17/May/2015:12:00:00 +0000] "-" 408 -`, "has no path, or one cut short"},
		{"path", `10.0.0.1 - - [17/May/2015:12:00:00 +0000] "GET /a`, "has no path, or one cut short"},
		{"method", `10.0.0.1 - - [17/May/2015:12:00:00 +0000] "GET`, "has no method, or one cut short"},
		{"status", `10.0.0.1 - - [17/May/2015:12:00:00 +0000] "GET /a HTTP/1.1" 20`, "has no status, or one cut short"},
		{"uri", common[:50], "has no uri, or one cut short"},

		{"ip", "{}", "has no time"},
		{"ip", `{"time":null,"ip":"a"}`, "has no time"},
		{"ip", `{"time":"noon","ip":"a"}`, "has a time that cannot be read"},
		{"ip", `{"time":-99999999999,"ip":"a"}`, "has a time outside the years 1678 to 2261"},
		{"ip", `{"ts":1}`, "has no ip, or one cut short"},
		{"ip", `{"ts":1,"ip":null}`, "has no ip, or one cut short"},
		{"ip", `{"ts":1,"ip":["a"]}`, "has no ip, or one cut short"},
		{"path", `{"ts":1,"request":"-"}`, "has no path, or one cut short"},
		{"ip", `{"ts":1,"ip":"a`, "is not valid JSON"},
		{"n", `{"ts":1,"n":12`, "is not valid JSON"},
		{"n", `{"ts":1,"n":012}`, "is not valid JSON"},
		{"n", `{"ts":1,"n":yes}`, "is not valid JSON"},
		{"ip", `{"ts" 1,"ip":"a"}`, "is not valid JSON"},
		{"ip", `{"ts":1 "ip":"a"}`, "is not valid JSON"},
		{"ip", `{"ts":1,"x":"\q","ip":"a"}`, "is not valid JSON"},
		{"ip", strings.Repeat(`{"a":`, 65) + `1` + strings.Repeat(`}`, 65), "is not valid JSON"},
		{"ip", `{"a":` + strings.Repeat(`[`, 100_000), "is not valid JSON"},
	} {
		if _, got, why := one(t, c.line, c.key); why != c.want {
			t.Errorf("key %s of %.200s: got %q, reason %q, want reason %q", c.key, c.line, got, why, c.want)
		}
	}
}

func TestALineDoesNotInheritFromTheOneBefore(t *testing.T) {
	for _, pair := range [][2]string{{full, full[:len(full)-5]}, {flat, `{"time":1697062451,"remote_addr":"10.0.0.1"}`}} {
		got, _ := read(t, Options{}, pair[0]+"\n"+pair[1], "agent")
		if len(got) != 2 || got[0][0] == '(' || got[1] != "(has no agent, or one cut short)" {
			t.Errorf("lines %s and %s: got %q, want one agent", pair[0], pair[1], got)
		}
	}
}

func TestUsualLinesAllocateNothing(t *testing.T) {
	for _, line := range []string{full, caddy} {
		r, err := NewReader(Options{})
		if err != nil {
			t.Fatal(err)
		}
		slots := []Slot{r.Want("ip"), r.Want("method"), r.Want("path")}
		l := settle([][]byte{[]byte(line)}, formats, r)
		text := []byte(line)
		if allocs := testing.AllocsPerRun(100, func() {
			e, _ := l.entry(text, false)
			for _, s := range slots {
				e.Value(s)
			}
		}); allocs != 0 {
			t.Errorf("line %s: got %v allocations, want 0", line, allocs)
		}
	}
}

// read reads a log and returns an entry a line: the values of the fields, or the reasons why there are none, joined by |.
func read(t testing.TB, o Options, log string, names ...string) (entries []string, r *Reader) {
	t.Helper()
	r, err := NewReader(o)
	if err != nil {
		t.Fatal(err)
	}
	var slots []Slot
	for _, name := range names {
		slots = append(slots, r.Want(name))
	}
	err = r.Read("log", strings.NewReader(log), func(e *Entry) (string, error) {
		var values []string
		for _, s := range slots {
			value, ok := e.Value(s)
			if !ok && value == nil {
				value = []byte("(" + e.Why(s) + ")")
			}
			values = append(values, string(value))
		}
		entries = append(entries, strings.Join(values, "|"))
		return "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return entries, r
}

// one reads a log of one line: its time, and the value of a field or the reason why there is none.
func one(t testing.TB, line, name string) (at int64, value, why string) {
	t.Helper()
	r, err := NewReader(Options{})
	if err != nil {
		t.Fatal(err)
	}
	slot := r.Want(name)
	err = r.Read("log", strings.NewReader(line+"\n"), func(e *Entry) (string, error) {
		got, ok := e.Value(slot)
		if at, value = e.Time, string(got); !ok && got == nil {
			return e.Why(slot), nil
		}
		return "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if reasons := r.Reasons(); len(reasons) > 0 {
		return 0, "", reasons[0].Reason
	}
	return at, value, ""
}

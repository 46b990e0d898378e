package accesslog

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirflow/weir/front"
)

func TestSamplesHaveTheirClientOrAReason(t *testing.T) {
	const noClient, clients = "has a client that is not an address", "names several addresses, and any may be that of the client"
	const tail = ` - - [11/Oct/2023:22:14:11 +0000] "GET /a HTTP/1.1" 200 157 "-" "-"`
	for _, c := range []struct{ line, key, why string }{
		{"192.0.2.22:50711" + tail, "192.0.2.22", ""},
		{"[2001:db8:0:1::5]:50711" + tail, "2001:db8:0:1::/64", ""},
		{"2001:DB8:0:1:0:0:0:5" + tail, "2001:db8:0:1::/64", ""},
		{"::ffff:192.0.2.22" + tail, "192.0.2.22", ""},
		{"fe80::1%eth0" + tail, "fe80::/64", ""},
		{"www.shop.example:443 192.0.2.2:42918" + tail, "192.0.2.2", ""},
		{`{"time":1697062451,"remote_addr":"192.0.2.45:9991"}`, "192.0.2.45", ""},
		{`{"ts":1697062451,"request":{"remote_ip":"10.0.0.1","client_ip":"2001:db8::5"}}`, "2001:db8::/64", ""},

		{"2023-10-11T22:14:11.123456789Z stdout F 192.0.2.27" + tail, "192.0.2.27", ""},
		{"Oct 11 22:14:11 web1 nginx: 192.0.2.21" + tail, "192.0.2.21", ""},
		{"web-1  | 192.0.2.21" + tail, "192.0.2.21", ""},
		{"2023/10/11 22:14:11 192.0.2.42" + tail, "192.0.2.42", ""},
		{"22:14:11 192.0.2.42" + tail, "", noClient},
		{"1697062451 192.0.2.42" + tail, "", noClient},
		{"79a59df900b949e5 bucket [06/Feb/2019:00:00:31 +0000] 192.0.2.1 79a59df900b949e5", "192.0.2.1", ""},
		{"client.example" + tail, "", noClient},
		{"unix:" + tail, "", noClient},
		{"192.0.2.300" + tail, "", noClient},
		{"192.0.2.021" + tail, "", noClient},
		{"192.0.2.21, 10.0.0.1" + tail, "", clients},
		{"192.0.2.21,10.0.0.1" + tail, "", clients},
		{"www.shop.example 192.0.2.21, 10.0.0.1" + tail, "", clients},
		{"192.0.2.21, 70.1.2.1, 10.0.0.9" + tail, "", clients},
		{"10.0.0.5:80 192.0.2.2" + tail, "", clients},
		{"10.0.0.5 nginx: 192.0.2.2" + tail, "", clients},
		{`{"ts":1697062451,"request":{"remote_ip":"","client_ip":"","host":"h1","uri":"/"},"status":200}`, "", "has a client that is not an address"},
		{`{"ts":1697062451,"ip":"unix:","remote_addr":"10.0.0.1"}`, "", "has a client that is not an address"},
		{`{"ts":1697062451,"ip":"192.0.2.21, 10.0.0.1"}`, "", clients},
	} {
		if _, key, why := one(t, c.line, "ip"); key != c.key || why != c.why {
			t.Errorf("%s: got key %q, reason %q, want %q, %q", c.line, key, why, c.key, c.why)
		}
	}
}

func TestAnyNameOfTheClientIsKeyedAsAnAddress(t *testing.T) {
	for _, name := range clientNames {
		if name == "client" {
			continue // which is the whole address
		}
		line := `{"ts":1,"` + name + `":"[2001:db8::1]:80"}`
		if inner, nested := strings.CutPrefix(name, "request."); nested {
			line = `{"ts":1,"request":{"` + inner + `":"[2001:db8::1]:80"}}`
		}
		if _, key, why := one(t, line, name); key != "2001:db8::/64" || why != "" {
			t.Errorf("--key %s of %s: got %q, reason %q, want 2001:db8::/64", name, line, key, why)
		}
	}
}

func TestALineNeedsAClientOnlyForAKeyThatHasOne(t *testing.T) {
	line := `Oct 11 22:14:11 web1 nginx: 192.0.2.21 - - [11/Oct/2023:22:14:11 +0000] "GET /a HTTP/1.1" 200 157`
	if _, key, why := one(t, line, "path"); key != "/a" || why != "" {
		t.Errorf("got key %q, reason %q, want /a", key, why)
	}
}

func TestTheClientOfARandomLineIsRightOrNotUnderstood(t *testing.T) {
	random := rand.New(rand.NewPCG(39, 6))
	understood, plain := 0, 0
	for range 6_000 {
		line := drawLine(random)
		_, key, why := one(t, line.text, "ip")
		switch {
		case why == "" && key != front.AddressKey(line.client, 64):
			t.Fatalf("%s: got key %q, want that of %s", line.text, key, line.client)
		case why != "" && line.plain:
			t.Fatalf("%s: %s, want the key of %s", line.text, why, line.client)
		case why == "":
			understood++
		}
		if line.plain {
			plain++
		}
	}
	if plain < 300 || understood < plain {
		t.Errorf("got %d lines with nothing odd, %d understood, want at least 300 of each", plain, understood)
	}
}

// drawnLine is a line of an access log and its client. A plain line is in a format that is read.
type drawnLine struct {
	text   string
	client netip.Addr
	plain  bool
}

func drawLine(random *rand.Rand) drawnLine {
	client := drawAddress(random)
	form, plain := writeAddress(random, client), true
	if random.IntN(4) == 0 {
		plain = false
		for range 1 + random.IntN(3) {
			form += pickOf(random, ",", ", ", " , ") + writeAddress(random, drawAddress(random))
		}
	}
	if random.IntN(3) == 0 {
		return drawnLine{jsonOf(random, form), client.Unmap(), plain}
	}
	prefix, read := drawPrefix(random)
	user := pickOf(random, "-", "bob", "John Doe", "bob@web.example", "[odd]", "1697062451", drawAddress(random).String(), "10.0.0.9 - -")
	plain = plain && read && strings.Count(user, ".") <= 1 && !strings.Contains(user, ":")
	return drawnLine{prefix + form + pickOf(random, " - ", "  - ") + user + ` [11/Oct/2023:22:14:11 +0000] "GET /a HTTP/1.1" 200 157` + drawTail(random), client.Unmap(), plain}
}

func drawAddress(random *rand.Rand) netip.Addr {
	if random.IntN(2) == 0 {
		b := [4]byte{byte(random.IntN(256)), byte(random.IntN(256)), byte(random.IntN(3)), byte(random.IntN(256))}
		if addr := netip.AddrFrom4(b); random.IntN(4) != 0 {
			return addr
		}
		return netip.AddrFrom16(netip.AddrFrom4(b).As16())
	}
	b := [16]byte{0: 0x20, 1: 0x01, 15: byte(random.IntN(3))}
	for range random.IntN(6) {
		b[2+random.IntN(13)] = byte(random.IntN(256))
	}
	return netip.AddrFrom16(b)
}

// writeAddress writes an address in one of its forms. A port stands behind brackets in IPv6.
func writeAddress(random *rand.Rand, addr netip.Addr) string {
	port := fmt.Sprint(random.IntN(65536))
	if addr.Is4() {
		return pickOf(random, addr.String(), addr.String()+":"+port)
	}
	text := pickOf(random, addr.String(), addr.StringExpanded(), strings.ToUpper(addr.String()))
	return pickOf(random, text, "["+text+"]", "["+text+"]:"+port, text+"%eth0")
}

// drawPrefix returns what stands before the client, and whether a line with it is read.
func drawPrefix(random *rand.Rand) (prefix string, read bool) {
	switch random.IntN(5) {
	case 0, 1:
		return "", true
	case 2:
		return pickOf(random, "www.shop.example ", "www.shop.example:443 ", "web_1 "), true
	}
	machine := pickOf(random, "web1", "web1.example", drawAddress(random).String(), writeAddress(random, drawAddress(random)))
	return pickOf(random,
		"2023-10-11T22:14:11.123456789Z stdout F ", "2023-10-11T22:14:11Z ", "2023-10-11 22:14:11 ", "2023/10/11 22:14:11 ", "22:14:11 ", "22:14 ", "1697062451.123 ", "1697062451 ",
		"Oct 11 22:14:11 "+machine+" nginx: ", "<13>Oct 11 22:14:11 "+machine+" nginx[7]: ", "<165>1 2023-10-11T22:14:11Z "+machine+" nginx 7 - - ", machine+" - ", machine+" nginx: ",
		"web-1  | ", "web-1 | ", "[web-1] ", "[11/Oct/2023:22:14:11 +0000] ", "- ", "-, ", "unknown, ", "79a59df900b949e5 bucket ", "\"", "'", "client=", "for=", ":", "1.", "0",
	), false
}

func drawTail(random *rand.Rand) string {
	return pickOf(random, "", ` "-" "-"`, ` "-" "1.2.3.4 - - [11/Oct/2023:22:14:11 +0000]"`, ` "-" "curl/8" "10.0.0.7, 10.0.0.8"`, ` "-" "cut sho`)
}

// jsonOf returns a JSON line whose client is in one of the usual fields.
func jsonOf(random *rand.Rand, form string) string {
	name := clientNames[random.IntN(len(clientNames))]
	field := `"` + name + `":"` + form + `"`
	if inner, nested := strings.CutPrefix(name, "request."); nested {
		field = `"request":{"` + inner + `":"` + form + `","uri":"/10.0.0.3"}`
	}
	return pickOf(random, `{"time":1697062451,`+field+`}`, `{"agent":"10.0.0.4",`+field+`,"ts":1697062451.5,"host":"10.0.0.5"}`)
}

func pickOf(random *rand.Rand, of ...string) string { return of[random.IntN(len(of))] }

func TestOnlyShortTextsOfClientsAreRemembered(t *testing.T) {
	c := newClients(trusting)
	for i := range 2000 {
		list := fmt.Appendf(nil, "192.0.2.%d,", i) // of which no two are equal
		for range i % 3 {
			list = append(list, strings.Repeat("198.51.100.1,", 100)...)
		}
		if got := c.of([]byte("10.0.0.1"), append(list, "203.0.113.7"...)); got.key != "203.0.113.7" {
			t.Fatalf("%.80s: got %+v, want 203.0.113.7", list, got)
		}
	}
	bytes := 0
	for text := range c.known {
		bytes += len(text)
	}
	if len(c.known) != 2000/3+1 || bytes > len(c.known)*maxClientText {
		t.Errorf("%d clients are remembered by %d bytes, want %d, by %d bytes each at most", len(c.known), bytes, 2000/3+1, maxClientText)
	}
}

package accesslog

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/randtest"
)

// trusting believes a list that a connection from 10.0.0.0/8 has forwarded.
func trusting(peer, forwarded string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(peer)
	if err != nil || !strings.HasPrefix(peer, "10.") || forwarded == "" {
		return addr, err == nil
	}
	addr, err = netip.ParseAddr(strings.TrimSpace(forwarded[strings.LastIndexByte(forwarded, ',')+1:]))
	return addr, err == nil
}

// drawForwarded returns a JSON line and the key of its client.
func drawForwarded(random *rand.Rand) (line, key string) {
	key = pickOf(random, "10.0.0.1", "192.0.2.1")
	peer, list, own := key, pickOf(random, "", "-", "203.0.113.1", "203.0.113.2", "198.51.100.1, 203.0.113.3"), ""
	if peer == "10.0.0.1" && len(list) > 1 {
		key = strings.TrimPrefix(list, "198.51.100.1, ")
	}
	switch name := forwardedNames[random.IntN(len(forwardedNames))]; {
	case list == "" && random.IntN(2) == 0:
	case name == "request.headers.X-Forwarded-For.0":
		own = fmt.Sprintf(`,"request":{"headers":{"X-Forwarded-For":[%q]}}`, list)
	default:
		own = fmt.Sprintf(`,%q:%q`, name, list)
	}
	return fmt.Sprintf(`{"time":1697062451,"remote_addr":%q%s}`, peer, own), key
}

func TestTheForwardedListOfAJSONLineCountsInAnyOrderOfTheLines(t *testing.T) {
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	for range 20 {
		var lines, want []string
		for range 1 + random.IntN(3*sampleLines) {
			line, key := drawForwarded(random)
			lines, want = append(lines, line), append(want, key)
		}
		if random.IntN(2) == 0 { // nothing is forwarded at first
			plain, none := `{"time":1697062451,"remote_addr":"10.0.0.1"}`, "10.0.0.1"
			lines, want = append(slices.Repeat([]string{plain}, sampleLines), lines...), append(slices.Repeat([]string{none}, sampleLines), want...)
		}
		got, r := read(t, Options{Client: trusting}, strings.Join(lines, "\n"), "ip")
		if len(got) != len(want) {
			t.Fatalf("got %d entries of %d lines: %v", len(got), len(want), r.Reasons())
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("line %d, %s: got client %s, want %s", i+1, lines[i], got[i], want[i])
			}
		}
	}
}

func TestAListThatWasForwardedInSeveralLinesCountsAsOne(t *testing.T) {
	for lines, want := range map[string]string{
		`["203.0.113.66","203.0.113.7"]`:                       "203.0.113.7", // the first is of a client that lies
		`["203.0.113.66, 203.0.113.7"]`:                        "203.0.113.7",
		`["203.0.113.66\", \"x","198.51.100.1","203.0.113.7"]`: "203.0.113.7",
		`["203.0.113.7"]`:                                      "203.0.113.7",
		`[]`:                                                   "10.0.0.1",
		`"203.0.113.7"`:                                        "10.0.0.1", // Caddy writes none
	} {
		line := `{"ts":1697062451,"request":{"remote_ip":"10.0.0.1","headers":{"X-Forwarded-For":` + lines + `}}}`
		if got, r := read(t, Options{Client: trusting}, line, "ip"); len(got) != 1 || got[0] != want {
			t.Errorf("%s: got clients %v, %v, want %s", lines, got, r.Reasons(), want)
		}
	}
}

func TestALaterDirectiveMayNameTheForwardedList(t *testing.T) {
	log := "#Fields: date time c-ip cs-uri-stem\n2023-10-11 22:14:11 10.0.0.1 /a\n" +
		"#Fields: date time cs-uri-stem X-Forwarded-For c-ip\n2023-10-11 22:14:12 /a 203.0.113.7 10.0.0.1\n" +
		"#Fields: date time c-ip cs-uri-stem\n2023-10-11 22:14:13 10.0.0.1 /a\n"
	got, _ := read(t, Options{Client: trusting}, log, "ip")
	if want := []string{"10.0.0.1", "203.0.113.7", "10.0.0.1"}; !slices.Equal(got, want) {
		t.Errorf("got clients %v, want %v", got, want)
	}
}

func TestTheClientOfALogSaysWhichForwardedListCounts(t *testing.T) {
	const line = `192.0.2.1 - - [11/Oct/2023:22:14:11 +0000] "GET /a HTTP/1.1" 200 157`
	for _, c := range []struct{ log, want string }{
		{line, "$remote_addr alone, because the format has no field for an address that a trusted proxy has forwarded"},
		{line + ` "-" "-" "203.0.113.7"`, "$remote_addr, or an address of $http_x_forwarded_for if a trusted proxy has forwarded it"},
		{"time,ip\n2023-10-11T22:14:11Z,10.0.0.1", "ip alone, because the format has no field for an address that a trusted proxy has forwarded"},
		{`{"time":1697062451,"ip":"10.0.0.1"}`, "ip, or an address that a trusted proxy has forwarded, which none of the first lines has"},
		{`{"time":1697062451,"user":"x"}`, "none in the first lines"},
		{`{"time":1697062451,"ip":"10.0.0.1","x_forwarded_for":"-"}`, "ip, or an address of x_forwarded_for if a trusted proxy has forwarded it"},
	} {
		_, r := read(t, Options{Client: trusting}, c.log, "ip")
		if got := r.Found()[0].Client; got != c.want {
			t.Errorf("%s: got client %q, want %q", c.log, got, c.want)
		}
	}
}

func TestAColumnWithoutANameIsNothing(t *testing.T) {
	got, r := read(t, Options{Client: trusting}, ",timestamp,ip\n203.0.113.7,2023-10-11T22:14:11Z,10.0.0.1\n", "ip")
	if len(got) != 1 || got[0] != "10.0.0.1" {
		t.Errorf("got clients %v, %v, want 10.0.0.1", got, r.Reasons())
	}
}

func TestTheClientOfAJSONLineCountsIfTheFirstLinesHaveNone(t *testing.T) {
	for _, name := range []string{"ip", "remote_addr", "clientip"} {
		log := strings.Repeat(`{"time":1697062451}`+"\n", sampleLines) + `{"time":1697062451,"` + name + `":"192.0.2.1"}`
		got, r := read(t, Options{}, log, "ip")
		if want := "192.0.2.1"; len(got) != sampleLines+1 || got[sampleLines] != want {
			t.Errorf("%s: got %d entries, the last %s, %v, want %s", name, len(got), got[len(got)-1], r.Reasons(), want)
		}
	}
}

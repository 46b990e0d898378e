package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/admin"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/randtest"
)

// reachRules are rules with keys of every kind. Each test uses one of them, or all.
var reachRules = []string{
	`{name: client, match: any, key: client, limit: 9/m}`,
	`{name: inside, match: {client: [10.0.0.0/8, "2001:db8::/32"]}, key: client, limit: 9/m}`,
	`{name: outside, match: any, except: {client: [10.0.0.0/8, "2001:db8::/32"]}, key: client, limit: 9/m}`,
	`{name: pair, match: any, key: [client, path], limit: 9/m}`,
	`{name: riap, match: {path: /l*}, key: [path, client], limit: 9/m}`,
	`{name: user, match: any, key: header.user, limit: 9/m}`,
	`{name: must, match: any, key: [header.user, client], missing: refuse, limit: 9/m}`,
	`{name: hashed, match: any, key: client, hashed: true, limit: 9/m}`,
	`{name: both, match: any, key: [client, header.user], hashed: true, limit: 9/m}`,
	`{name: whole, match: any, limit: 9/m}`,
}

// reachPorts are a daemon's port for requests by attributes and its port for changes.
type reachPorts struct {
	t          *testing.T
	take, ctl  http.Handler
	last, sent string
}

func newReachDoors(t *testing.T, lines ...string) *reachPorts {
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte("rules:\n  - " + strings.Join(lines, "\n  - ") + "\n")})
	if err != nil {
		t.Fatal(err)
	}
	table, err := override.OpenFile("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	engine := table.Around(weir.NewMemory(weir.MemoryOptions{}))
	d := decide.New(decide.Options{Engine: engine, Rules: config.Named(), Config: config, Log: slog.New(slog.DiscardHandler)})
	return &reachPorts{t: t, take: api.New(api.Options{Desk: d}), ctl: admin.New(admin.Options{Engine: engine, Overrides: table, Rules: d.Rules, Log: slog.New(slog.DiscardHandler)})}
}

func (d *reachPorts) ask(to http.Handler, path string, body any) (answer struct {
	Allowed   bool
	Rule, Key string
	Warnings  []string
	Detail    string
}) {
	d.t.Helper()
	content, _ := json.Marshal(body)
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(content)))
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r.WithContext((&auth.Port{Open: auth.Anyone("ops", auth.Admin)}).Mark(context.Background())))
	d.sent, d.last = string(content), w.Body.String()
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		d.t.Fatal(err)
	}
	return answer
}

// block puts a block in force, and returns what it warns of.
func (d *reachPorts) block(rule, key string, prefix bool) []string {
	d.t.Helper()
	e := map[string]any{"rule": rule, "key": key, "prefix": prefix, "limit": "deny all", "until": time.Now().Add(time.Hour)}
	a := d.ask(d.ctl, "/v1/admin/override", e)
	if a.Detail != "" {
		d.t.Fatalf("%s: %s", d.sent, a.Detail)
	}
	return a.Warnings
}

// A client is an address in one of the forms in which people write it, and what else it sends.
type reachClient struct {
	addr       netip.Addr
	form       string // as it sends it
	path, user string
}

func randomClient(r *rand.Rand) reachClient {
	var addr netip.Addr
	switch r.IntN(3) {
	case 0:
		addr = netip.AddrFrom4([4]byte{[]byte{10, 192, 203}[r.IntN(3)], byte(r.IntN(3)), byte(r.Uint32()), byte(r.Uint32())})
	default:
		bytes := [16]byte{0x20, 0x01, 0x0d, 0xb8}
		for i := 4; i < 16; i++ {
			if r.IntN(2) == 0 {
				bytes[i] = byte(r.Uint32())
			}
		}
		if r.IntN(3) == 0 {
			bytes[2], bytes[3] = 0, byte(r.IntN(2))
		}
		addr = netip.AddrFrom16(bytes)
	}
	forms := []string{addr.String(), strings.ToUpper(addr.String()), addr.StringExpanded(), " " + addr.String(), netip.AddrPortFrom(addr, 443).String()}
	if addr.Is4() {
		forms = append(forms, "::ffff:"+addr.String(), netip.AddrFrom16(addr.As16()).StringExpanded())
	} else {
		forms = append(forms, "["+addr.String()+"]", addr.String()+"%eth0")
	}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	return reachClient{addr, pick(forms...), pick("/login", "/Login", "/login/", "/l|n", `/a b`, "/"), pick("bob", " bob", "a|b", `a\b`, "", "BOB")}
}

func (c *reachClient) attributes() map[string]any {
	return map[string]any{"attributes": map[string]string{"client": c.form, "path": c.path, "header.user": c.user}}
}

// keyOfAddress is the key of a client as the pages have it.
func keyOfAddress(addr netip.Addr) string {
	if addr.Is4() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}

// keys returns what a person may write of the client as a key, each in turn for the rule.
func (c *reachClient) keys(r *rand.Rand, rule string) string {
	written := keyOfAddress(c.addr)
	escape := strings.NewReplacer(`\`, `\\`, "|", `\|`)
	user, path := escape.Replace(strings.TrimSpace(c.user)), escape.Replace(strings.ToLower(c.path))
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	if hashes := map[string]string{"hashed": written, "both": written + "|" + user}; hashes[rule] != "" && r.IntN(2) == 0 {
		sum := sha256.Sum256([]byte(hashes[rule]))
		return hex.EncodeToString(sum[:16]) // of another form nobody could tell
	}
	if r.IntN(2) == 0 {
		written = c.form
	}
	if r.IntN(6) == 0 {
		written = netip.PrefixFrom(c.addr, r.IntN(c.addr.BitLen()+1)).Masked().String()
	}
	if r.IntN(3) == 0 {
		user, path = c.user, c.path
	}
	of := map[string]string{
		"pair": written + "|" + path, "riap": path + "|" + written, "user": user, "must": user + "|" + written, "both": written + "|" + user, "whole": "",
	}
	if key, ok := of[rule]; ok && (rule == "user" || r.IntN(8) > 0) {
		written = key
	}
	return written
}

// A block without a warning is in force for the client whose key a person wrote, as he knows it. One that warns is not.
func TestABlockReachesTheClientItNamesOrWarns(t *testing.T) {
	warned, reached := map[string]int{}, map[string]int{}
	for seed := range randtest.Seeds(t, 2000, 1000) {
		r := rand.New(rand.NewPCG(seed, 39))
		line := reachRules[r.IntN(len(reachRules))]
		rule := strings.TrimSuffix(strings.Fields(line)[1], ",")
		client := randomClient(r)
		key := client.keys(r, rule)
		d := newReachDoors(t, line)
		if key == "" && rule != "whole" {
			continue // refused
		}
		warnings := slices.DeleteFunc(d.block(rule, key, false), func(w string) bool { return !strings.Contains(w, "no request") })
		refused := !d.ask(d.take, "/v1/take", client.attributes()).Allowed
		if refused == (len(warnings) > 0) {
			t.Fatalf("seed %d, %s: a block of %q warns of %q; then %s is answered %s", seed, line, key, warnings, d.sent, d.last)
		}
		if refused {
			reached[rule]++
		} else {
			warned[rule]++
		}
	}
	for _, line := range reachRules {
		rule := strings.TrimSuffix(strings.Fields(line)[1], ",")
		if reached[rule] < 10 || warned[rule] < 10 {
			t.Errorf("rule %s: %d blocks reach their client and %d warn, want 10 of each", rule, reached[rule], warned[rule])
		}
	}
}

// A block of a beginning of a key is in force for the client with that key, and does not warn. One that warns is not in force
// for the client as whose beginning it was written.
func TestABlockOfAPrefixReachesTheClientsItNamesOrWarns(t *testing.T) {
	tried := map[string]int{}
	for seed := range randtest.Seeds(t, 2000, 1000) {
		r := rand.New(rand.NewPCG(seed, 40))
		line := reachRules[r.IntN(len(reachRules))]
		rule := strings.TrimSuffix(strings.Fields(line)[1], ",")
		client := randomClient(r)
		d := newReachDoors(t, line)
		asked := d.ask(d.take, "/v1/take", client.attributes())
		if asked.Rule == "" {
			continue // not a client of the rule
		}
		begin := client.keys(r, rule)
		if own := r.IntN(2) == 0; own {
			begin = asked.Key
		}
		if begin = begin[:r.IntN(len(begin)+1)]; r.IntN(4) == 0 {
			begin = strings.ToUpper(begin)
		}
		warnings := slices.DeleteFunc(d.block(rule, begin, true), func(w string) bool { return !strings.Contains(w, "no request") })
		refused := !d.ask(d.take, "/v1/take", client.attributes()).Allowed
		if begins := strings.HasPrefix(asked.Key, begin); refused != begins || begins && len(warnings) > 0 {
			t.Fatalf("seed %d, %s: a block of %q* warns of %q; then %s is answered %s", seed, line, begin, warnings, d.sent, d.last)
		}
		switch {
		case refused:
			tried["in force"]++
		case len(warnings) > 0:
			tried["warns"]++
		default:
			tried["others"]++ // whose keys begin so
		}
	}
	if tried["in force"] < 150 || tried["warns"] < 150 || tried["others"] > tried["warns"] {
		t.Errorf("got %v, want 150 in force and 150 that warn", tried)
	}
}

// The prefix that a warning of a network names reaches all clients of the network and no other client.
func TestTheAdviceForANetworkReachesItAlone(t *testing.T) {
	advised := regexp.MustCompile(`begin with --prefix (\S+)$`)
	found := 0
	for seed := range randtest.Seeds(t, 1500, 750) {
		r := rand.New(rand.NewPCG(seed, 41))
		client := randomClient(r)
		bits := 8 * (1 + r.IntN(3))
		if client.addr.Is6() {
			bits *= 2
		}
		network := netip.PrefixFrom(client.addr, bits).Masked()
		d := newReachDoors(t, reachRules[0])
		warnings := d.block("client", network.String(), r.IntN(2) == 0)
		if len(warnings) != 1 {
			t.Fatalf("seed %d: a block of %s warns of %q", seed, network, warnings)
		}
		advice := advised.FindStringSubmatch(warnings[0])
		if advice == nil {
			continue
		}
		found++
		if more := d.block("client", advice[1], true); len(more) > 0 {
			t.Fatalf("seed %d: the advice for %s is %s, which warns of %q", seed, network, advice[1], more)
		}
		other := randomClient(r)
		for _, c := range []reachClient{client, other} {
			if allowed := d.ask(d.take, "/v1/take", c.attributes()).Allowed; allowed == network.Contains(c.addr) {
				t.Fatalf("seed %d: the advice for %s is %s; then %s is answered %s", seed, network, advice[1], d.sent, d.last)
			}
		}
	}
	if found < 500 {
		t.Errorf("%d networks have an advice, want 500", found)
	}
}

// A block of all rules that warns of nothing is in force for the client whose key a person wrote, also where other rules may
// have any key.
func TestABlockOfAllRulesReachesTheClientItNamesOrWarns(t *testing.T) {
	silent := 0
	for seed := range randtest.Seeds(t, 2000, 1000) {
		r := rand.New(rand.NewPCG(seed, 42))
		lines := slices.Clone(reachRules)
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		client := randomClient(r)
		key := client.form
		if r.IntN(2) == 0 {
			key = keyOfAddress(client.addr)
		}
		client.user = key
		lines = lines[:1+r.IntN(4)]
		d := newReachDoors(t, lines...)
		warnings := d.block("", key, false)
		refused := !d.ask(d.take, "/v1/take", client.attributes()).Allowed
		if !refused && len(warnings) == 0 {
			t.Fatalf("seed %d, %s: a block of %q warns of nothing; then %s is answered %s", seed, lines, key, d.sent, d.last)
		}
		if len(warnings) == 0 {
			silent++
		}
	}
	if silent < 200 {
		t.Errorf("%d blocks warn of nothing, want 200 at least", silent)
	}
}

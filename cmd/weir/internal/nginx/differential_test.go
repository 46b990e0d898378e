package nginx

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/imported"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/testprocess"
)

// frame is the nginx.conf around a configuration. nginx answers with what it sends to a gateway's check.
const frame = `daemon off; master_process off; pid DIR/pid; error_log DIR/log warn; worker_processes 1;
events { worker_connections 64; }
http {
access_log off; limit_req_status 429; root DIR/www; set_real_ip_from 127.0.0.0/8; real_ip_header X-Real-Ip; keepalive_requests 100000;
client_body_temp_path DIR/a; proxy_temp_path DIR/b; fastcgi_temp_path DIR/c; uwsgi_temp_path DIR/d; scgi_temp_path DIR/e;
add_header X-Weir "$host $server_port $remote_addr $request_uri" always;
`

// TestRulesDecideAsNginx draws configurations and requests. nginx, in which the limits that the import names as left out
// refuse nothing, and the imported rules must give the same answers. Rates are 1r/m, so that time decides nothing.
func TestRulesDecideAsNginx(t *testing.T) {
	testprocess.Require(t, "nginx", "nginx-light")
	count, seed := randtest.Rounds(t, 60, 15), randtest.Seed(t)
	var total tally
	t.Run("all", func(t *testing.T) {
		const workers = 2
		for w := range uint64(workers) {
			t.Run(strconv.FormatUint(w, 10), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				for i := w; i < uint64(count); i += workers {
					b.compare(seed+i, &total)
				}
			})
		}
	})
	t.Logf("%d configurations, %d of %d zones imported, %d requests, %d refused",
		total.configurations.Load(), total.imported.Load(), total.zones.Load(), total.requests.Load(), total.refused.Load())
	if t.Failed() {
		return
	}
	if n := total.configurations.Load(); int(n) < count*3/4 || total.imported.Load()*4 < total.zones.Load() || total.refused.Load()*15 < total.requests.Load() {
		t.Error("too few configurations, zones or refusals prove anything")
	}
}

type tally struct{ configurations, zones, imported, requests, refused atomic.Int64 }

// bench runs one nginx after another.
type bench struct {
	*testing.T
	folder string
	ports  []string
}

func newBench(t *testing.T) *bench {
	b := &bench{t, t.TempDir(), []string{strconv.Itoa(testprocess.FreePort(t)), strconv.Itoa(testprocess.FreePort(t))}}
	for _, name := range []string{"index.html", "x.php", "a/index.html", "a/x.php", "a/b/index.html"} {
		file := filepath.Join(b.folder, "www", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		b.write(filepath.Join("www", name), name)
	}
	return b
}

func (b *bench) write(name, text string) {
	if err := os.WriteFile(filepath.Join(b.folder, name), []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}

// compare draws a configuration and requests by a seed.
func (b *bench) compare(seed uint64, total *tally) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), ports: b.ports}
	text := strings.ReplaceAll(frame, "DIR", b.folder) + g.configuration() + "}\n"
	made, err := Import(fstest.MapFS{"nginx.conf": {Data: []byte(text)}}, "", "nginx.conf")
	if err != nil {
		b.Fatalf("seed %d: %v\n%s", seed, err, text)
	}
	file, err := made.YAML("nginx.conf", "nginx")
	if err != nil {
		b.Fatal(err)
	}
	config := &rules.Config{}
	if len(made.Rules) > 0 {
		if config, err = rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: file}); err != nil {
			b.Fatalf("seed %d: %v\n%s", seed, err, file)
		}
	}
	kept, left := withoutNamed(text, made.Notes)
	b.write("nginx.conf", kept)
	stop, ok := b.start()
	if !ok {
		return
	}
	defer stop()
	total.configurations.Add(1)
	total.zones.Add(int64(g.zones))
	total.imported.Add(int64(g.zones - left))
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }})
	conns := map[string]*connection{}
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for i, r := range g.requests(40) {
		admitted, asked := b.ask(conns, r)
		if asked == nil {
			continue // nginx refuses the request before it chooses a location
		}
		total.requests.Add(1)
		if !admitted {
			total.refused.Add(1)
		}
		if got := decide(b.T, config, engine, asked); got != admitted {
			b.Errorf("seed %d, request %d, %+v: nginx admits: %v, the rules: %v\n%s\n%s", seed, i, r, admitted, got, text, file)
			return
		}
	}
}

var leftOut = regexp.MustCompile(`^limit_req .*: not imported: zone (\w+):`)

// withoutNamed lets the limits that the import names as left out count and refuse nothing, and replaces delays by admissions at
// once. It returns the number of zones that are left out.
func withoutNamed(text string, notes []imported.Note) (kept string, zones int) {
	lines, seen := strings.Split(text, "\n"), map[string]bool{}
	for _, n := range notes {
		if found := leftOut.FindStringSubmatch(n.Text); found != nil {
			lines[n.Line-1] = fmt.Sprintf("limit_req zone=%s burst=1000000 nodelay;", found[1])
			seen[found[1]] = true
		}
	}
	kept = strings.Join(lines, "\n")
	kept = regexp.MustCompile(` delay=\d+`).ReplaceAllString(kept, "")
	return regexp.MustCompile(`( burst=\d+);`).ReplaceAllString(kept, "$1 nodelay;"), len(seen)
}

// start starts nginx, or returns false if it refuses the configuration.
func (b *bench) start() (stop func(), ok bool) {
	p, err := testprocess.Start(exec.Command("nginx", "-p", b.folder, "-c", filepath.Join(b.folder, "nginx.conf"), "-e", filepath.Join(b.folder, "log")))
	if err != nil {
		b.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(2 * time.Millisecond) {
		for _, host := range []string{"127.0.0.1:", "127.0.0.2:"} {
			if conn, err := net.Dial("tcp", host+b.ports[0]); err == nil {
				_ = conn.Close()
				return p.End, true
			}
		}
		if p.Ended() {
			return nil, false
		}
	}
	p.End()
	b.Fatal("nginx does not start")
	return nil, false
}

type connection struct {
	net.Conn
	*bufio.Reader
}

// ask sends a request. It returns the attributes that nginx would send to a gateway's check, or nil if it would send none.
func (b *bench) ask(conns map[string]*connection, r request) (admitted bool, asked rules.Attributes) {
	address := r.address + ":" + r.port
	c := conns[address]
	if c == nil {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false, nil // no server listens there
		}
		c = &connection{conn, bufio.NewReader(conn)}
		conns[address] = c
	}
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nX-Real-Ip: %s\r\n", r.method, r.target, r.host, r.client)
	for i := 0; i < len(r.fields); i += 2 {
		text += r.fields[i] + ": " + r.fields[i+1] + "\r\n"
	}
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write([]byte(text + "\r\n")); err != nil {
		b.Fatal(err)
	}
	response, err := http.ReadResponse(c.Reader, &http.Request{Method: r.method})
	if err != nil {
		b.Fatalf("%+v: %v", r, err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	if response.Close {
		_ = c.Close()
		delete(conns, address)
	}
	sent := strings.SplitN(response.Header.Get("X-Weir"), " ", 4)
	if slices.Contains([]int{302, 400, 410}, response.StatusCode) || len(sent) < 4 { // it answers before it asks limits
		return false, nil
	}
	asked = rules.Attributes{"host": sent[0], "port": sent[1], "client": sent[2], "path": sent[3], "method": r.method}
	for i := 0; i < len(r.fields); i += 2 {
		asked["header."+strings.ToLower(r.fields[i])] = r.fields[i+1]
	}
	return response.StatusCode != http.StatusTooManyRequests, asked
}

// decide decides as weir serve does.
func decide(t *testing.T, config *rules.Config, engine weir.Engine, asked rules.Attributes) bool {
	t.Helper()
	var o rules.Outcome
	config.Decide(asked, 1, &o)
	if o.Verdict != rules.Ask {
		return o.Verdict == rules.Allow
	}
	d, err := engine.Take(context.Background(), o.Requests...)
	if err != nil {
		t.Fatal(err)
	}
	return d.Allowed
}

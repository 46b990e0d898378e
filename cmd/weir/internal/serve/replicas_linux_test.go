package serve

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/weirflow/weir/internal/gatewaytest"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/testprocess"
)

// The rule of the replicas. Even a busy machine asks more often.
const replicaRate, replicaBurst = 50, 50

const replicaRules = `
rules:
  - name: address
    match: {domain: shop, descriptor.remote_address: "*"}
    key: descriptor.remote_address
    limit: token bucket 50/s burst 50
    on_failure: local
`

// replica is a daemon at an address of its own, as a pod has one.
type replica struct {
	ip, url string
	admin   *http.Client // of its admin socket
	cmd     *exec.Cmd
	log     *output
}

// cluster is what Kubernetes does for a service: it knows the addresses of the replicas that are ready.
type cluster struct {
	t     *testing.T
	port  int // of --grpc, at each address
	flags []string
	made  int
	ready atomic.Pointer[[]*replica]
}

func newCluster(t *testing.T, flags ...string) *cluster {
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(replicaRules), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, port: testprocess.FreePort(t), flags: append(flags, "--config", file)}
	c.ready.Store(&[]*replica{})
	return c
}

// add starts a replica at a new address. It is an endpoint of the service when it is ready.
func (c *cluster) add() *replica {
	c.t.Helper()
	c.made++
	socket := filepath.Join(c.t.TempDir(), "admin.sock")
	r := &replica{ip: fmt.Sprintf("127.0.0.%d", 10+c.made), admin: socketClient(c.t, socket), log: &output{}}
	r.cmd = daemonCommand(c.t, append([]string{"--http", "127.0.0.1:0", "--grpc", net.JoinHostPort(r.ip, strconv.Itoa(c.port)), "--admin", "unix:" + socket}, c.flags...)...)
	r.cmd.Stderr = r.log
	r.url = startAndFindURL(c.t, r.cmd)
	c.t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	awaitAnswer(c.t, r.url+"/readyz")
	c.put(append(slices.Clone(*c.ready.Load()), r))
	return r
}

// remove does what Kubernetes does to a pod: it is no endpoint any more, and gets a stop signal.
func (c *cluster) remove(r *replica) {
	c.t.Helper()
	c.put(slices.DeleteFunc(slices.Clone(*c.ready.Load()), func(other *replica) bool { return other == r }))
	if err := stopDaemon(r.cmd); err != nil {
		c.t.Errorf("the replica at %s ended with %v: %s", r.ip, err, r.log)
	}
}

func (c *cluster) put(ready []*replica) { c.ready.Store(&ready) }

// name serves the names of the service, as CoreDNS does for one that is headless, and returns the address of the server.
func (c *cluster) name() net.Addr {
	c.t.Helper()
	on, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = on.Close() })
	go func() {
		for packet := make([]byte, 512); ; {
			n, from, err := on.ReadFrom(packet)
			if err != nil {
				return
			}
			if answer := c.answer(packet[:n]); answer != nil {
				_, _ = on.WriteTo(answer, from)
			}
		}
	}()
	return on.LocalAddr()
}

// answer returns the addresses of the replicas that are ready, or nil for what is no question.
func (c *cluster) answer(question []byte) []byte {
	var asked, answer dnsmessage.Message
	if asked.Unpack(question) != nil || len(asked.Questions) != 1 {
		return nil
	}
	answer.Header = dnsmessage.Header{ID: asked.ID, Response: true, Authoritative: true, RecursionDesired: asked.RecursionDesired, RecursionAvailable: true}
	answer.Questions = asked.Questions
	if q := asked.Questions[0]; q.Type == dnsmessage.TypeA {
		for _, r := range *c.ready.Load() {
			body := &dnsmessage.AResource{A: [4]byte(net.ParseIP(r.ip).To4())}
			answer.Answers = append(answer.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 5}, Body: body})
		}
	}
	packed, err := answer.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// address serves the one address of a service with a cluster IP, as kube-proxy does: each connection goes to a replica at random
// of those that are ready, and stays there.
func (c *cluster) address() string {
	c.t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = on.Close() })
	draws := randtest.New(randtest.Seed(c.t))
	go func() {
		for {
			from, err := on.Accept()
			if err != nil {
				return
			}
			ready := *c.ready.Load()
			if len(ready) == 0 {
				_ = from.Close()
				continue
			}
			next := ready[draws.IntN(len(ready))]
			to, err := net.Dial("tcp", net.JoinHostPort(next.ip, strconv.Itoa(c.port)))
			if err != nil {
				_ = from.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					_ = from.Close()
					_ = to.Close()
				}()
			}
		}
	}()
	return on.Addr().String()
}

// fronted is a page behind Envoy, which asks the replicas.
type fronted struct {
	url   string
	envoy *gatewaytest.Proxy
	codes [600]atomic.Int64
}

// front starts Envoy with the configuration of envoy.md, in which another block describes the cluster of Weir.
func (c *cluster) front(block string) *fronted {
	c.t.Helper()
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") }))
	c.t.Cleanup(pages.Close)
	entry := loopback(c.t)
	config := gatewaytest.Documented(c.t, "envoy/shop").Text
	if block != "" {
		config = inPlace(c.t, config, block)
	} else {
		config = strings.ReplaceAll(config, "address: 127.0.0.1, port_value: 8081", socketAddress(c.address()))
	}
	return &fronted{url: "http://" + entry, envoy: gatewaytest.Envoy(c.t, entry, replaceAll(c.t, config, map[string]string{
		"address: 0.0.0.0, port_value: 10000": socketAddress(entry), "address: 127.0.0.1, port_value: 9000": socketAddress(pages.Listener.Addr().String()), "timeout: 0.1s": "timeout: 30s",
	}))}
}

// headless returns the cluster of the page for a headless service, whose name the test answers.
func (c *cluster) headless() string {
	block := gatewaytest.Documented(c.t, "envoy/headless").Text
	host, port, _ := net.SplitHostPort(c.name().String())
	resolver := `typed_dns_resolver_config:
  name: envoy.network.dns_resolver.cares
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig
    resolvers: [{socket_address: {address: ` + host + `, port_value: ` + port + `}}]
    dns_resolver_options: {no_default_search_domain: true}
dns_refresh_rate: 0.5s
`
	return before(c.t, replaceAll(c.t, block, map[string]string{"port_value: 8081": fmt.Sprintf("port_value: %d", c.port)}), "connect_timeout: 0.25s", resolver)
}

// ask asks once, and counts the answer.
func (f *fronted) ask(client *http.Client) int {
	response, err := client.Get(f.url + "/")
	code := 599
	if err == nil {
		code = response.StatusCode
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	f.codes[code].Add(1)
	return code
}

// decided returns how many calls a replica has decided by the rule.
func (r *replica) decided(t *testing.T) (sum int) {
	t.Helper()
	for line := range strings.Lines(getText(t, r.admin, "http://localhost/metrics")) {
		if labels, value, found := strings.Cut(strings.TrimSpace(line), "} "); found && strings.HasPrefix(labels, "weir_decisions_total{") && strings.Contains(labels, `rule="address"`) {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatalf("the metric %s", line)
			}
			sum += n
		}
	}
	return sum
}

// shared asks n times and returns how many of them the second replica decided.
func (f *fronted) shared(t *testing.T, n int, second *replica) int {
	t.Helper()
	before := second.decided(t)
	for range n {
		if code := f.ask(http.DefaultClient); code != http.StatusOK && code != http.StatusTooManyRequests {
			t.Fatalf("got the status %d", code)
		}
	}
	return second.decided(t) - before
}

// A replica that comes later gets nothing through a cluster address, as long as the connection of Envoy lasts. With --grpc-max-age
// the connection moves, with all that Envoy asks. Behind a headless service the new replica gets its half.
func TestANewReplicaGetsTraffic(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	common := []string{"--engine", "redis://" + server.Addr, "--peers", "auto", "--deadline", "30s"}
	for _, c := range []struct {
		name     string
		flags    []string
		headless bool
		check    func(t *testing.T, f *fronted, second *replica)
	}{
		{"a cluster address", common, false, func(t *testing.T, f *fronted, second *replica) {
			if got := f.shared(t, 200, second); got != 0 {
				t.Errorf("the new replica decided %d of 200 calls of a connection that lasts, want none", got)
			}
		}},
		{"a cluster address with --grpc-max-age 1s", append(common, "--grpc-max-age", "1s"), false, func(t *testing.T, f *fronted, second *replica) {
			for _, want := range []int{20, 0, 20} {
				for began := time.Now(); f.shared(t, 20, second) != want; {
					if time.Since(began) > patience {
						t.Fatalf("the new replica never decided %d of 20 calls, want all calls of some connections and none of others", want)
					}
				}
			}
		}},
		{"a headless service", common, true, func(t *testing.T, f *fronted, second *replica) {
			for began := time.Now(); f.shared(t, 1, second) == 0; {
				if time.Since(began) > patience {
					t.Fatal("Envoy does not find the new replica")
				}
			}
			got := f.shared(t, 200, second)
			t.Logf("the new replica decided %d of 200 calls", got)
			if got < 80 || got > 120 {
				t.Errorf("the new replica decided %d of 200 calls, want half of them", got)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := newCluster(t, c.flags...)
			first, block := all.add(), ""
			if c.headless {
				block = all.headless()
			}
			f := all.front(block)
			for began := time.Now(); f.shared(t, 1, first) == 0; { // Envoy asks nobody before it has found the replica
				if time.Since(began) > patience {
					t.Fatal("Envoy does not find the first replica")
				}
			}
			c.check(t, f, all.add())
		})
	}
}

// Two replicas behind Envoy are replaced one after the other, and then the Redis server that they share, while four clients ask.
// WEIR_REPLICAS_SHOW sets how long each part lasts, like 10s. make more sets it.
func TestReplicasAreReplacedUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("make long runs it: replicas take their time to stop")
	}
	t.Parallel()
	part := 2 * time.Second
	if text := os.Getenv("WEIR_REPLICAS_SHOW"); text != "" {
		var err error
		if part, err = time.ParseDuration(text); err != nil {
			t.Fatalf("WEIR_REPLICAS_SHOW: %v", err)
		}
	}
	redis := redistest.StartSentinel(t)
	all := newCluster(t, "--engine", "redis-sentinel://"+strings.Join(redis.Addrs(), ",")+"/"+redistest.MasterSet, "--peers", "auto", "--deadline", "200ms", "--drain", "4s")
	replicas := []*replica{all.add(), all.add()}
	f := all.front(all.headless())
	for _, r := range replicas {
		for began := time.Now(); f.shared(t, 1, r) == 0; {
			if time.Since(began) > patience {
				t.Fatalf("Envoy does not find the replica at %s", r.ip)
			}
		}
	}
	failed := func() int { return f.envoy.Counter(t, "cluster.shop.ratelimit.error") }
	before, began, asked := failed(), time.Now(), f.sum()
	end := f.load(4)
	time.Sleep(part)
	for i, r := range replicas {
		replicas[i] = all.add()
		time.Sleep(part)
		all.remove(r)
	}
	time.Sleep(part)
	restarts, calls := failed()-before, f.sum()-asked
	redis.Master.Kill()
	redis.AwaitFailover()
	for _, r := range replicas {
		r.awaitEngine(t)
	}
	time.Sleep(part)
	end()
	failover, more := failed()-before-restarts, f.sum()-asked-calls
	seconds := time.Since(began).Seconds()
	t.Logf("two restarts: %d of %d calls had no decision; a failover: %d of %d; %d admitted and %d refused in %.1f s",
		restarts, calls, failover, more, f.codes[200].Load(), f.codes[429].Load(), seconds)
	if restarts != 0 {
		t.Errorf("%d of %d calls had no decision while replicas were replaced, want none", restarts, calls)
	}
	if float64(failover) > math.Max(1, 0.01*float64(more)) {
		t.Errorf("%d of %d calls had no decision around a failover, want at most one of 100", failover, more)
	}
	if got := f.codes[200].Load() + f.codes[429].Load(); got != int64(f.sum()) || f.codes[429].Load() == 0 {
		t.Errorf("%d of %d answers were 200 or 429, and %d of them 429; want all, and some", got, f.sum(), f.codes[429].Load())
	}
	// A failover may forget what the new master had not heard of: once more the limit.
	if most := 2 * (replicaBurst + replicaRate*seconds); float64(f.codes[200].Load()) > most {
		t.Errorf("%d admitted in %.1f s, want at most %.0f", f.codes[200].Load(), seconds, most)
	}
}

// sum returns how many answers there were.
func (f *fronted) sum() (n int) {
	for i := range f.codes {
		n += int(f.codes[i].Load())
	}
	return n
}

// load asks with some clients until the returned function is called.
func (f *fronted) load(clients int) (end func()) {
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for {
				f.ask(client)
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	return func() { close(stop); all.Wait() }
}

// awaitEngine waits until the replica decides on its engine.
func (r *replica) awaitEngine(t *testing.T) {
	t.Helper()
	for began := time.Now(); !strings.Contains(getText(t, r.admin, "http://localhost/metrics"), "\nweir_engine_up 1\n"); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("the replica at %s does not reach the new master: %s", r.ip, cmp.Or(r.log.String(), "no log"))
		}
	}
}

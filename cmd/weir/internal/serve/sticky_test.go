package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/gatewaytest"
	"github.com/weirflow/weir/internal/testprocess"
)

// The scenario of TestAProxyKeepsEachKeyAtOneDaemon. Nothing comes back to a key during the test.
const (
	stickyKeys  = 60
	stickyLimit = 4
	stickyRule  = "default=token bucket 4/366d"
)

// TestAProxyKeepsEachKeyAtOneDaemon runs the configurations of deploy/sticky as they are, except that ports are free ones,
// before three daemons with memory engines. While the daemons stay the same, the limit of each key is exact. When one
// goes, comes or comes back, the keys that move start afresh once, and no others move.
func TestAProxyKeepsEachKeyAtOneDaemon(t *testing.T) {
	for _, proxy := range []struct {
		name, file string
		start      func(t testing.TB, addr, config string)
		leaves     bool // calls without an answer to its clients
	}{
		{"nginx", "nginx.conf", gatewaytest.Nginx, true},
		{"HAProxy", "haproxy.cfg", gatewaytest.HAProxy, false},
	} {
		t.Run(proxy.name, func(t *testing.T) {
			t.Parallel()
			s := startSticky(t, proxy.file, proxy.start)
			s.repeats = proxy.leaves
			s.checkRouting(t)
			before := s.refused(t, 0, 1)
			refused := s.ask(t, "two of three daemons", allKeys())
			if got := s.refused(t, 0, 1) - before; got != refused {
				t.Errorf("the daemons count %d refusals, want the %d that clients got", got, refused)
			}
			first := s.keysOf(t, 0)

			s.serve(t, 2)
			moved := s.moves(t)
			if n := len(moved); n < stickyKeys/12 || n > stickyKeys*7/12 {
				t.Errorf("%d of %d keys move to the third daemon, want about a third", n, stickyKeys)
			}
			s.ask(t, "the third comes", moved)
			for key := range moved {
				delete(first, key)
			}
			s.end[0]()
			s.ask(t, "the first is killed", first)

			s.serve(t, 0)
			if back := s.moves(t); len(back) != len(first) {
				t.Errorf("%d keys move back to the first daemon, want the %d that it had", len(back), len(first))
			}
			s.ask(t, "the first is back", first)
		})
	}
}

type keySet map[string]bool

func allKeys() keySet {
	all := keySet{}
	for i := range stickyKeys {
		all[fmt.Sprintf("clé, %d", i)] = true
	}
	return all
}

// sticky is a proxy before three daemons.
type sticky struct {
	proxy   string
	repeats bool      // what got 502 or 504
	daemons [3]string // addresses
	admin   [3]string // sockets
	end     [3]func()
	client  http.Client
}

// startSticky starts two of the daemons, and the proxy.
func startSticky(t *testing.T, file string, start func(testing.TB, string, string)) *sticky {
	t.Helper()
	s := &sticky{client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: time.Minute}}
	t.Cleanup(s.client.CloseIdleConnections)
	folder := t.TempDir()
	for i := range s.daemons {
		s.daemons[i], s.admin[i] = loopback(t), filepath.Join(folder, strconv.Itoa(i))
	}
	s.serve(t, 0)
	s.serve(t, 1)
	s.proxy = startProxy(t, file, start, s.daemons)
	return s
}

// startProxy starts a proxy before three daemons, and returns its address.
func startProxy(t *testing.T, file string, start func(testing.TB, string, string), daemons [3]string) (addr string) {
	t.Helper()
	config, err := os.ReadFile("../../../../deploy/sticky/" + file)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(testprocess.FreePort(t))
	texts := map[string]string{"8080": port}
	for i, daemon := range daemons {
		texts[fmt.Sprintf("127.0.0.1:%d", 8081+i)] = daemon
	}
	start(t, "127.0.0.1:"+port, replaceAll(t, string(config), texts))
	return "127.0.0.1:" + port
}

// serve starts one of the daemons on its port.
func (s *sticky) serve(t *testing.T, i int) {
	t.Helper()
	_, s.end[i] = serveProcess(t, s.daemons[i], "serve", "--rule", stickyRule, "--admin", "unix:"+s.admin[i])
}

// refused returns how often daemons have refused.
func (s *sticky) refused(t *testing.T, daemons ...int) (all int) {
	t.Helper()
	for _, i := range daemons {
		all += refusals(t, s.admin[i])["default"]
	}
	return all
}

// decided is an answer of the API.
type decided struct {
	Allowed   bool
	Remaining int
	Token     string
}

// post asks a daemon, or the proxy. It repeats what a proxy that repeats nothing could not pass on to a daemon that has just
// ended. No call is on its way when a daemon ends, so the daemon has counted none of these.
func (s *sticky) post(t *testing.T, addr, path, body string, header ...string) (status int, d decided) {
	t.Helper()
	for range 100 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, d
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		response, err := s.client.Do(r)
		if err != nil {
			t.Error(err)
			return 0, d
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode < 500 || !s.repeats {
			_ = json.Unmarshal(text, &d)
			return response.StatusCode, d
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%s %s %q: no daemon answers", path, body, header)
	return 0, d
}

// checkRouting checks that a token reaches the daemon that gave it, and that a shard holds several keys.
func (s *sticky) checkRouting(t *testing.T) {
	t.Helper()
	if status, _ := s.post(t, s.proxy, "/v1/take", `{"key":"a"}`); status != http.StatusBadRequest {
		t.Errorf("a take without Weir-Key: %d, want 400", status)
	}
	for i := range 8 {
		key := fmt.Sprintf("job %d", i)
		_, d := s.post(t, s.proxy, "/v1/reserve", `{"cost":3}`, "Weir-Key", key)
		if status, _ := s.post(t, s.proxy, "/v1/settle", `{"cost":1}`, "Weir-Key", key, "Weir-Token", d.Token); status != http.StatusOK {
			t.Errorf("the token of %s is settled with %d, want 200", key, status)
		}
		shard := fmt.Sprintf("tenant %d", i)
		s.post(t, s.proxy, "/v1/take", fmt.Sprintf(`{"requests":[{"key":%q},{"key":%q}]}`, shard, key), "Weir-Shard", shard)
		if _, d := s.post(t, s.proxy, "/v1/take", `{"cost":1}`, "Weir-Key", shard, "Weir-Shard", shard); d.Remaining != stickyLimit-2 {
			t.Errorf("%s has %d units left after two takes of its shard, want %d", shard, d.Remaining, stickyLimit-2)
		}
	}
}

// remaining returns the units that a key has left.
func (s *sticky) remaining(t *testing.T, addr, key string) int {
	t.Helper()
	_, d := s.post(t, addr, "/v1/peek", `{"cost":0}`, "Weir-Key", key)
	return d.Remaining
}

// keysOf returns the keys that one of the first two daemons has decided. The other one has decided all others.
func (s *sticky) keysOf(t *testing.T, i int) keySet {
	t.Helper()
	found := keySet{}
	for key := range allKeys() {
		here, there := s.remaining(t, s.daemons[i], key), s.remaining(t, s.daemons[1-i], key)
		if here+there != stickyLimit || here > 0 && there > 0 {
			t.Errorf("%s has %d and %d units left at two daemons, want all at one and none at the other", key, here, there)
		}
		if here == 0 {
			found[key] = true
		}
	}
	return found
}

// moves waits until keys that had used up their limit are fresh again, and returns those.
func (s *sticky) moves(t *testing.T) keySet {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		found := keySet{}
		for range 2 { // the first round may see the change
			for key := range allKeys() {
				if s.remaining(t, s.proxy, key) == stickyLimit {
					found[key] = true
				}
			}
			if len(found) == 0 {
				break
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	t.Fatal("no key moves within a minute")
	return nil
}

// ask takes from every key by several clients at once until each is refused. Fresh keys get their whole limit, and all
// others nothing. It returns how many calls were refused.
func (s *sticky) ask(t *testing.T, when string, fresh keySet) (refused int) {
	t.Helper()
	admitted := map[string]*atomic.Int64{}
	for key := range allKeys() {
		admitted[key] = new(atomic.Int64)
	}
	var clients sync.WaitGroup
	for range 3 {
		clients.Go(func() {
			for key, n := range admitted {
				for range 2 {
					if _, d := s.post(t, s.proxy, "/v1/take", `{}`, "Weir-Key", key); d.Allowed {
						n.Add(1)
					}
				}
			}
		})
	}
	clients.Wait()
	total := int64(0)
	for key, n := range admitted {
		want := int64(0)
		if fresh[key] {
			want = stickyLimit
		}
		if got := n.Load(); got != want {
			t.Errorf("%s: %s is admitted %d times, want %d", when, key, got, want)
		}
		total += n.Load()
	}
	t.Logf("%s: %d of %d keys are fresh, and %d requests of these are admitted", when, len(fresh), stickyKeys, total)
	return 3*2*stickyKeys - int(total)
}

// A daemon that ends a connection without an answer may be alive, so HAProxy asks it again before it asks another one. It
// asks nobody again to take units back, because they could come back twice.
func TestHAProxyRepeatsWhatGotNoAnswer(t *testing.T) {
	var daemons [3]string
	var silent atomic.Int64 // calls that get no answer
	asked := make(chan int, 16)
	for i := range daemons {
		daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				return
			}
			asked <- i
			if silent.Add(-1) >= 0 {
				panic(http.ErrAbortHandler)
			}
		}))
		t.Cleanup(daemon.Close)
		daemons[i] = daemon.Listener.Addr().String()
	}
	proxy := startProxy(t, "haproxy.cfg", gatewaytest.HAProxy, daemons)
	post := func(path string, without int64) (status int, by []int) {
		silent.Store(without)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+proxy+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Weir-Key", "k")
		if response, err := http.DefaultClient.Do(r); err == nil {
			status = response.StatusCode
			_ = response.Body.Close()
		}
		for len(asked) > 0 {
			by = append(by, <-asked)
		}
		return status, by
	}
	_, first := post("/v1/take", 0)
	home := first[0]
	if status, by := post("/v1/take", 1); status != http.StatusOK || len(by) != 2 || by[0] != home || by[1] != home {
		t.Errorf("a take without an answer: %d by %v, want 200 from %d, which was asked twice", status, by, home)
	}
	if status, by := post("/v1/take", 2); status != http.StatusOK || len(by) != 3 || by[1] != home || by[2] == home {
		t.Errorf("a take without two answers: %d by %v, want 200 from another daemon than %d, the third time", status, by, home)
	}
	if status, by := post("/v1/return", 1); status == http.StatusOK || len(by) != 1 {
		t.Errorf("a return without an answer: %d by %v, want an error after one call", status, by)
	}
}

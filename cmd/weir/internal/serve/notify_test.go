package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/redistest"
)

// hook is a receiver of --notify. It fails as often as it should, and then takes what it gets.
type hook struct {
	url, secret string // the file of the secret
	mu          sync.Mutex
	fails       int
	got         map[string][]int // percentages by key, or its HMAC
	bodies      []string
}

func startHook(t *testing.T, fails int) *hook {
	t.Helper()
	h := &hook{fails: fails, got: map[string][]int{}, secret: filepath.Join(t.TempDir(), "secret")}
	if err := os.WriteFile(h.secret, []byte("whsec_"+strings.Repeat("AAAA", 8)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var event struct {
			Data struct {
				Key     string
				KeyHMAC string `json:"key_hmac"`
				Percent int
			}
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.fails > 0 {
			h.fails--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if err := json.Unmarshal(body, &event); err != nil || r.Header.Get("Webhook-Signature") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		key := event.Data.Key + event.Data.KeyHMAC
		h.got[key], h.bodies = append(h.got[key], event.Data.Percent), append(h.bodies, string(body))
	}))
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

// flags are those of a daemon that tells the hook.
func (h *hook) flags(more ...string) []string {
	return append([]string{"--notify", h.url, "--notify-secret", h.secret}, more...)
}

func (h *hook) told(key string) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got[key])
}

// want waits for what is told of a key.
func (h *hook) want(t *testing.T, key string, want ...int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); len(h.told(key)) < len(want) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if got := h.told(key); !slices.Equal(got, want) {
		t.Errorf("key %s: told %v, want %v", key, got, want)
	}
}

// takeCost takes a cost, which is admitted or not.
func takeCost(t *testing.T, url, rule, key string, cost int, admitted bool) {
	t.Helper()
	answer, err := http.Post(url+"/v1/take", "application/json", strings.NewReader(fmt.Sprintf(`{"rule":%q,"key":%q,"cost":%d}`, rule, key, cost)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.HasPrefix(string(text), fmt.Sprintf(`{"allowed":%v,`, admitted)) {
		t.Fatalf("a take of %d of key %s: got %s, %v, want allowed: %v", cost, key, text, err, admitted)
	}
}

// Every way in that counts units tells of the thresholds that they reach.
func TestThresholdsAreToldOnEveryWay(t *testing.T) {
	h := startHook(t, 0)
	d := startWays(t, h.flags("--notify-keys")...)
	for name, w := range ways {
		key := "near-" + name
		switch {
		case name == "/v1/peek" || name == "WEIR.PEEK" || name == "CL.THROTTLE" || strings.HasSuffix(name, "/CheckRateLimit"): // they count nothing, or in a bucket
			continue
		case w.before != nil:
			tell, err := w.before(d, key)
			if err == nil {
				err = tell(960)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			h.want(t, key, 80, 95)
			continue
		case w.tell != nil:
			if err := w.tell(d, key+"-told", 960); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			h.want(t, key+"-told", 80, 95)
		}
		if w.takes == nil && w.ask == nil {
			continue
		}
		if err := d.post(context.Background(), "/v1/record", fmt.Sprintf(`{"rule":"told","key":%q,"cost":799}`, key)); err != nil {
			t.Fatal(err)
		}
		if err := w.take(d, key); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		h.want(t, key, 80)
	}
}

// Two daemons on one engine tell each threshold once, and a receiver that fails twice gets each.
func TestTwoDaemonsTellEachThresholdOnce(t *testing.T) {
	redis := redistest.Start(t)
	for name, engine := range map[string]string{"Redis": "redis://" + redis.Addr, "SQLite": "sqlite:" + filepath.Join(t.TempDir(), "weir.db")} {
		t.Run(name, func(t *testing.T) {
			h := startHook(t, 2)
			flags := h.flags("--notify-keys", "--http", "127.0.0.1:0", "--engine", engine, "--deadline", "5s", "--rule", "plan=100/s and quota 100/month", "--rule", "calls=fixed window 100/d")
			one, two := startDaemon(t, flags...), startDaemon(t, flags...)
			for _, rule := range []string{"plan", "calls"} {
				key := rule + "-key"
				for i := range 100 {
					url := []string{one, two}[i%2]
					takeCost(t, url, rule, key, 1, true)
					switch i + 1 {
					case 80:
						h.want(t, key, 80)
					case 95:
						h.want(t, key, 80, 95)
					}
				}
				h.want(t, key, 80, 95, 100)
				for range 20 { // refusals by both
					takeCost(t, one, rule, key, 1, false)
					takeCost(t, two, rule, key, 1, false)
				}
				h.want(t, key, 80, 95, 100)
			}
		})
	}
}

// What is counted while Redis is away is told when it is back: at once if this daemon has counted enough for a threshold, and otherwise
// at the next call of the key.
func TestAThresholdReachedInAnOutageIsToldAfterIt(t *testing.T) {
	redis := redistest.Start(t)
	h := startHook(t, 0)
	d := startWays(t, h.flags("--notify-keys", "--engine", "redis://"+redis.Addr, "--deadline", "300ms", "--on-failure", "local", "--peers", "1")...)
	if err := d.post(context.Background(), "/v1/record", `{"rule":"told","key":"k","cost":500}`); err != nil {
		t.Fatal(err)
	}
	redis.Stop()
	for range 6 {
		if err := d.post(context.Background(), "/v1/record", `{"rule":"told","key":"k","cost":80}`); err != nil {
			t.Error(err)
		}
	}
	if err := d.post(context.Background(), "/v1/record", `{"rule":"told","key":"at once","cost":960}`); err != nil {
		t.Error(err)
	}
	time.Sleep(300 * time.Millisecond) // then the next call goes to the engine, which does not answer
	if err := d.post(context.Background(), "/v1/record", `{"rule":"told","key":"unanswered","cost":960}`); err != nil {
		t.Error(err)
	}
	if k, atOnce := h.told("k"), h.told("at once"); len(k)+len(atOnce) > 0 {
		t.Errorf("while Redis is away: told %v and %v", k, atOnce)
	}
	redis.Cont()
	h.want(t, "at once", 80, 95)
	h.want(t, "unanswered", 80, 95)
	for end := time.Now().Add(30 * time.Second); d.remaining("k", 0) != 20 && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	if err := d.post(context.Background(), "/v1/record", `{"rule":"told","key":"k","cost":1}`); err != nil {
		t.Fatal(err)
	}
	h.want(t, "k", 80, 95)
}

// A daemon that starts again from its state tells nothing twice, and goes on.
func TestARestartTellsNothingTwice(t *testing.T) {
	h := startHook(t, 0)
	state := filepath.Join(t.TempDir(), "state")
	flags := h.flags("--notify-keys", "--http", "127.0.0.1:0", "--state", state, "--rule", "calls=quota 100/year")
	url, stop := startLoggedDaemon(t, flags...)
	takeCost(t, url, "calls", "k", 85, true)
	h.want(t, "k", 80)
	stop()
	url, stop = startLoggedDaemon(t, flags...)
	takeCost(t, url, "calls", "k", 1, true)
	takeCost(t, url, "calls", "k", 10, true)
	h.want(t, "k", 80, 95)
	log := stop()
	if !strings.Contains(log, `msg="a key has reached a threshold of its quota" rule=calls limit="quota 100/year" percent=95 used=96 units=100 key=k`) {
		t.Errorf("the log does not tell: %s", log)
	}
}

// Without --notify-keys no event and no line of the log names a key; with the secret a receiver finds it.
func TestEventsMaskKeys(t *testing.T) {
	h := startHook(t, 0)
	url, stop := startLoggedDaemon(t, h.flags("--http", "127.0.0.1:0", "--rule", "calls=quota 10/year in Europe/Paris")...)
	takeCost(t, url, "calls", "alice@example.org", 9, true)
	const masked = "56498cd8046fc93e114fd09a8047a4e7" // printf key:alice@example.org | openssl dgst -sha256 -mac HMAC -macopt hexkey:00…00 (24 bytes) | cut -c1-32
	h.want(t, masked, 80)
	log := stop()
	for _, text := range append(h.bodies, log) {
		if strings.Contains(text, "alice") || !strings.Contains(text, masked) {
			t.Errorf("want the HMAC and no key in %s", text)
		}
	}
	if want := fmt.Sprintf(`"reset_at":"%d-01-01T00:00:00+01:00"`, time.Now().Year()+1); len(h.bodies) != 1 || !strings.Contains(h.bodies[0], want) {
		t.Errorf("got %v, want %s", h.bodies, want)
	}
}

func TestNotifyIsRefusedWithoutItsSecret(t *testing.T) {
	for name, o := range map[string]notifyOptions{
		"no secret": {to: "https://example.org"}, "a secret alone": {secret: "file"}, "a secret for the log": {to: "log", secret: "file"}, "keys alone": {keys: true},
	} {
		if o.check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, o := range []notifyOptions{{}, {to: "log"}, {to: "log", keys: true}, {to: "https://example.org", secret: "file"}} {
		if err := o.check(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/live"
	"github.com/weirflow/weir/internal/redistest"
)

// viewer reads the live stream of a daemon.
type viewer struct {
	t      *testing.T
	events chan live.Message
	last   live.Message // with all rules
	rules  map[string]live.RuleLine
}

func newViewer(t *testing.T, socket string) *viewer {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/v1/admin/live", nil)
	w, err := socketClient(t, socket).Do(r)
	if err != nil || w.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v", w, err)
	}
	v := &viewer{t: t, events: make(chan live.Message, 1000), rules: map[string]live.RuleLine{}}
	go func() {
		defer func() { _ = w.Body.Close() }()
		for lines := bufio.NewReader(w.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				close(v.events)
				return
			}
			var m live.Message
			if text, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(text), &m) == nil {
				v.events <- m
			}
		}
	}()
	return v
}

// shows waits for a state, which must show within a few seconds of a busy machine.
func (v *viewer) shows(what string, is func() bool) {
	v.t.Helper()
	for end := time.After(10 * time.Second); ; {
		select {
		case m, open := <-v.events:
			if !open {
				v.t.Fatalf("the stream ended before it showed %s", what)
			}
			if m.All {
				v.rules = map[string]live.RuleLine{}
			}
			for _, line := range m.Rules {
				v.rules[line.Rule] = line
			}
			if v.last = m; is() {
				return
			}
		case <-end:
			v.t.Fatalf("the stream never showed %s: %+v, rules %+v", what, v.last, v.rules)
		}
	}
}

// writeAdmin makes a change at the admin port.
func writeAdmin(t *testing.T, socket, path, body string) string {
	t.Helper()
	r, _ := http.NewRequest(http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(auth.RequestHeader, "test")
	w, err := socketClient(t, socket).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	text, _ := io.ReadAll(w.Body)
	return string(text)
}

func TestTheLiveStreamFollowsDecisionsChangesAndReloads(t *testing.T) {
	for _, kind := range []string{"memory", "redis"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			file, socket := filepath.Join(folder, "weir.yaml"), filepath.Join(folder, "a.sock")
			writeFile(t, file, "rules:\n  - {name: login, limit: 5/h, key: client, match: any}\n")
			args := []string{"--http", "127.0.0.1:0", "--config", file, "--admin", "unix:" + socket}
			if kind == "redis" {
				args = append(args, "--engine", "redis://"+redistest.Start(t).Addr, "--deadline", "10s")
			}
			url := startDaemon(t, args...)
			v := newViewer(t, socket)
			v.shows("the engine", func() bool { return v.last.Now.Engine.Kind == kind && v.last.Now.Engine.Up && v.last.Now.Rules == 1 })
			for range 7 {
				postTake(t, url, `{"attributes":{"client":"192.0.2.1"}}`)
			}
			v.shows("the decisions", func() bool {
				line := v.rules["login"]
				return line.Admitted == 5 && line.Refused == 2 && line.Headroom != nil && *line.Headroom == 0 && line.Fullest == "192.0.2.1"
			})
			scraped := getText(t, socketClient(t, socket), "http://localhost/metrics")
			if !strings.Contains(scraped, `weir_decisions_total{reason="",result="admitted",rule="login"} 5`) {
				t.Error("the metrics differ")
			}
			if text := writeAdmin(t, socket, "/v1/admin/whatif", `{"rule":"login","limit":"6/h"}`); !strings.Contains(text, `"before":{"admitted":5,"refused":2},"after":{"admitted":6,"refused":1}`) {
				t.Errorf("what if: %s", text)
			}
			if text := writeAdmin(t, socket, "/v1/admin/key", `{"key":"192.0.2.1"}`); !strings.Contains(text, `"rule":"login","text":"token bucket 5/h","limit":5,"remaining":0`) {
				t.Errorf("the key: %s", text)
			}
			block(t, socket, "192.0.2.1")
			v.shows("the block", func() bool {
				return len(v.last.Overrides) == 1 && len(v.last.Audit) == 1 && v.last.Audit[0].What == "override"
			})
			writeFile(t, file, "rules:\n  - {name: login, limit: 5/h, key: client, match: any}\n  - {name: other, limit: 5/h}\n")
			v.shows("the reload", func() bool { return v.last.Now.Rules == 2 && v.last.Now.Reload != nil && v.last.Now.Reload.OK })
			writeFile(t, file, "rules:\n  - {name: login, limit: 5/x}\n")
			v.shows("the failed reload", func() bool {
				return !v.last.Now.Reload.OK && len(v.last.Now.Reload.Problems) > 0 && v.last.Now.Rules == 2
			})
		})
	}
}

func TestTheLiveStreamShowsAnOutage(t *testing.T) {
	server := redistest.Start(t)
	socket := filepath.Join(t.TempDir(), "a.sock")
	startDaemon(t, "--http", "127.0.0.1:0", "--admin", "unix:"+socket, "--engine", "redis://"+server.Addr, "--on-failure", "local", "--peers", "4")
	v := newViewer(t, socket)
	v.shows("an engine that is up", func() bool { return v.last.Now.Engine.Up && v.last.Now.Engine.Policy == "local 1/4" })
	server.Kill()
	v.shows("the outage", func() bool {
		return !v.last.Now.Engine.Up && v.last.Now.Engine.Why != "" && v.last.Now.Engine.Since > 0
	})
	if text := writeAdmin(t, socket, "/v1/admin/peek", `{"rule":"default","key":"a"}`); !strings.Contains(text, `"warnings":["the used units of the key are unknown`) {
		t.Errorf("a peek during the outage: %s", text)
	}
}

func TestTwoHundredStreamsThatNeverReadLeaveRoomForWeirCtl(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "a.sock")
	url := startDaemon(t, "--http", "127.0.0.1:0", "--admin", "unix:"+socket)
	for range 200 {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			continue // the queue of the listener is full
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, "GET /v1/admin/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	for end := time.Now().Add(10 * time.Second); ; {
		r, _ := http.NewRequest(http.MethodGet, "http://localhost/v1/admin/rules", nil)
		w, err := socketClient(t, socket).Do(r)
		if err == nil {
			_ = w.Body.Close()
		}
		if err == nil && w.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the rules got %v, %v", w, err)
		}
	}
	if got := postTake(t, url, `{"key":"a"}`); !strings.Contains(got, `"allowed":true`) {
		t.Errorf("a take got %s", got)
	}
}

// metric returns the value of a metric without labels.
func metric(t *testing.T, socket, name string) string {
	t.Helper()
	_, rest, _ := strings.Cut(getText(t, socketClient(t, socket), "http://localhost/metrics"), "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

func awaitMetric(t *testing.T, socket, name, want string) {
	t.Helper()
	for end := time.Now().Add(patience); metric(t, socket, name) != want; time.Sleep(50 * time.Millisecond) { // a daemon counts each 2 s
		if time.Now().After(end) {
			t.Fatalf("%s is %s, want %s", name, metric(t, socket, name), want)
		}
	}
}

func TestLocalSharesFollowTheDaemonsOnRedis(t *testing.T) {
	server := redistest.Start(t)
	folder := t.TempDir()
	socket := func(n int) string { return filepath.Join(folder, fmt.Sprint(n, ".sock")) }
	args := func(n int) []string {
		return []string{"--http", "127.0.0.1:0", "--admin", "unix:" + socket(n), "--engine", "redis://" + server.Addr, "--rule", "api=100/h", "--on-failure", "local", "--peers", "auto"}
	}
	url := startDaemon(t, args(1)...)
	awaitMetric(t, socket(1), "weir_peers", "1")
	second := daemonCommand(t, args(2)...)
	startAndFindURL(t, second)
	awaitMetric(t, socket(2), "weir_peers", "2") // at once
	awaitMetric(t, socket(1), "weir_peers", "2")
	if err := stopDaemon(second); err != nil {
		t.Error(err)
	}
	awaitMetric(t, socket(1), "weir_daemons_seen", "1")
	if got := metric(t, socket(1), "weir_peers"); got != "2" {
		t.Errorf("after a daemon has gone there are %s peers, want 2 for ten minutes", got)
	}
	server.Kill()
	admitted := 0
	for end := time.Now().Add(20 * time.Second); metric(t, socket(1), "weir_engine_up") != "0" && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	for range 120 {
		if strings.Contains(postTake(t, url, `{"rule":"api","key":"a"}`), `"allowed":true`) {
			admitted++
		}
	}
	if admitted != 50 || metric(t, socket(1), "weir_peers") != "2" {
		t.Errorf("during the outage %d of 100 were admitted among %s peers, want 50 among 2", admitted, metric(t, socket(1), "weir_peers"))
	}
}

func TestPeersAreCountedOrRefusedAtTheStart(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "narrow", "on", ">secret", "~*", "&*", "+@all", "-hset")
	for name, c := range map[string]struct{ engine, want string }{
		"a database":          {"sqlite:" + filepath.Join(t.TempDir(), "weir.db"), "--peers auto with a database as the engine: only Redis counts its daemons\nhint: say how many daemons share it: --peers 3"},
		"a user without HSET": {"redis://narrow:secret@" + server.Addr, "allow the user of Redis the commands HSET, HGETALL and HDEL, or say how many daemons share the server: --peers 3"},
	} {
		cmd := daemonCommand(t, "--http", "127.0.0.1:0", "--engine", c.engine, "--on-failure", "local", "--peers", "auto")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: got %v and %s, want %s", name, err, out, c.want)
		}
	}
}

package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
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

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
)

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// socketClient returns a client of the server on a socket.
func socketClient(t testing.TB, path string) *http.Client {
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func getText(t testing.TB, client *http.Client, url string) string {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A daemon may begin with rules that only try, and follows its files. The flag goes before the file.
func TestADaemonFollowsItsFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.yaml")
	writeFile(t, file, "listen: {http: 127.0.0.1:1}\nrules: [{name: r, match: any, limit: 1/h, shadow: true}]")
	socket := filepath.Join(t.TempDir(), "admin")
	addr, _ := serveProcess(t, "127.0.0.1:0", "serve", "--config", file, "--admin", "unix:"+socket)
	admin := socketClient(t, socket)
	for _, c := range []struct{ text, ready, deny string }{
		{"", `{"status":"ready"}`, `"allowed":true`},
		{"default: deny\nrules: []", `"detail":"the rules files have problems`, `"allowed":true`},
		{"default: deny\nrules: [{name: r, match: {path: /a}, limit: 1/h}]", `{"status":"ready"}`, `"allowed":false`},
	} {
		if c.text != "" {
			writeFile(t, file, c.text)
		}
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			response, err := http.Post("http://"+addr+"/v1/take", "application/json", strings.NewReader(`{"attributes":{"path":"/"}}`))
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			ready := getText(t, admin, "http://localhost/readyz")
			if strings.Contains(string(body), c.deny) && strings.Contains(ready, c.ready) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%q: 10s later: %s, %s, want %s, %s", c.text, body, ready, c.deny, c.ready)
			}
		}
		if got := getText(t, http.DefaultClient, "http://"+addr+"/readyz"); got != `{"status":"ready"}`+"\n" {
			t.Errorf("%q: the traffic port says %s, want no reasons", c.text, got)
		}
	}
}

// reloadsVariable asks for more reloads: make more has 10,000.
const reloadsVariable = "WEIR_TEST_RELOADS"

// Each request under load is decided by the rules before or after a reload, and counted once.
func TestReloadsUnderLoadLoseNoDecision(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(reloadsVariable))
	if err != nil {
		n = 300
	}
	file := filepath.Join(t.TempDir(), "weir.yaml")
	const text = "rules:\n  - {name: r, match: {path: '/a/*'}, key: client, limit: fixed window 900000000/366d}\n"
	writeFile(t, file, text)
	set, err := rulefiles.Open(rulefiles.Options{}, file)
	if err != nil {
		t.Fatal(err)
	}
	clock := func() int64 { return 0 }
	d := decide.New(decide.Options{Engine: weir.NewMemory(weir.MemoryOptions{Clock: clock}), Rules: set.Config().Named(), Config: set.Config(), Log: slog.New(slog.DiscardHandler)})
	a := api.New(api.Options{Desk: d})
	ask := func(path string) (answer struct {
		Allowed   bool
		Remaining int64
	}) {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(`{"attributes":{"path":"/a/b","client":"192.0.2.1"}}`)))
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 || !answer.Allowed {
			t.Errorf("%s: %d %s, %v", path, w.Code, w.Body, err)
		}
		return answer
	}
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var taken atomic.Int64
	for range 2 {
		callers.Go(func() {
			for ctx.Err() == nil {
				ask("/v1/take")
				taken.Add(1)
			}
		})
	}
	for i := range n {
		writeFile(t, file, fmt.Sprintf("%s  - {name: other%d, match: {path: '/a/*'}, limit: %d/h}\n", text, i, 900000000+i))
		r := set.Reload()
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		d.Use(r.Now.Named(), r.Now)
		a.Reloaded(r.Err)
	}
	stop()
	callers.Wait()
	writeFile(t, file, text)
	r := set.Reload()
	d.Use(r.Now.Named(), r.Now)
	if got := 900000000 - ask("/v1/peek").Remaining; got != taken.Load() || got < 100 {
		t.Errorf("%d decisions were counted of %d during %d reloads", got, taken.Load(), n)
	}
}

package serve

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// Clients of one daemon wait for a slot that a client of another daemon, a process of its own, holds.
func TestClientsWaitForASlotThatAnotherProcessHolds(t *testing.T) {
	const rule, take = "jobs=concurrency 1 lease 10m", `{"rule":"jobs","key":"a"}`
	const wait = `{"rule":"jobs","key":"a","patience":60}`
	redis := redistest.Start(t)
	cmd := daemonCommand(t, "--http", "127.0.0.1:0", "--engine", "redis://"+redis.Addr, "--deadline", "2s", "--rule", rule)
	client := &http.Client{Transport: &http.Transport{}}
	holder := &waitingClient{startAndFindURL(t, cmd), client}
	hold := func() (token string) {
		t.Helper()
		_, held := holder.ask(t.Context(), http.MethodPost, "/v1/reserve", take)
		return heldToken(t, held)
	}
	settle := func(c *waitingClient, token string) {
		t.Helper()
		if status, text := c.ask(t.Context(), http.MethodPost, "/v1/settle", fmt.Sprintf(`{"token":%q}`, token)); status != 200 {
			t.Errorf("settle: %d %s", status, text)
		}
	}
	token := hold()
	client.CloseIdleConnections()
	before := runtime.NumGoroutine()

	engine, err := redislimit.Open("redis://"+redis.Addr, redislimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	url, stop := waitingServer(t, engine, 10, rule)
	c := &waitingClient{url, client}
	var all sync.WaitGroup
	answers := make(chan string, 3)
	begin := func(ctx context.Context, callers int) {
		t.Helper()
		all.Go(func() {
			status, text := c.ask(ctx, http.MethodPost, "/v1/reserve", wait)
			answers <- fmt.Sprint(status, " ", text)
		})
		c.awaitStats(t, fmt.Sprintf(`"waiting":{"callers":%d,`, callers))
	}
	begin(t.Context(), 1)
	gone, leave := context.WithCancel(t.Context())
	begin(gone, 2)
	leave() // behind a client that waits on
	if got := <-answers; !strings.Contains(got, "context canceled") {
		t.Errorf("the client that went away got %s", got)
	}

	settle(holder, token)
	got := <-answers
	if !strings.HasPrefix(got, `200 {"allowed":true,`) {
		t.Fatalf("the next client got %s, want the slot", got)
	}
	settle(c, heldToken(t, strings.TrimPrefix(got, "200 ")))
	hold()
	begin(t.Context(), 1)
	if err := stop(); err != nil {
		t.Errorf("serve ended with %v, want nil", err)
	}
	if got := <-answers; !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "the daemon is stopping") || !strings.Contains(got, `"counted":"no"`) {
		t.Errorf("a client during the stop got %s, want 503, not counted", got)
	}
	all.Wait()
	engine.Close()
	client.CloseIdleConnections()
	awaitGoroutines(t, before)
	if err := stopDaemon(cmd); err != nil {
		t.Errorf("weir serve ended with %v", err)
	}
}

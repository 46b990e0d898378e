package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/internal/waittest"
)

// hopelessBodies are waits that can never be admitted, of the key that others wait for.
var hopelessBodies = map[string]string{
	"a cost above the capacity":      `{"rule":"r","key":"k","cost":101,"patience":20}`,
	"costs that are above it":        `{"patience":20,"requests":[{"rule":"r","key":"k"},{"rule":"r","key":"k","cost":100}]}`,
	"a patience that is over":        `{"rule":"r","key":"k","patience":0.000000001}`,
	"a blocked key beside":           `{"patience":20,"requests":[{"rule":"r","key":"k"},{"rule":"r","key":"blocked"}]}`,
	"a rule that is gone":            `{"patience":20,"requests":[{"rule":"r","key":"k"},{"rule":"gone","key":"k"}]}`,
	"no time for the whole capacity": `{"rule":"r","key":"k","cost":100,"patience":0.001}`,
}

// Waits that can never be admitted cost other callers nothing, by both ways to wait over HTTP, which are those of a desk.
func TestHopelessWaitsOfTheDaemonCostOtherCallersNothing(t *testing.T) {
	for _, limit := range []string{"sliding log 100/s", "token bucket 100/s burst 100", "concurrency 4 lease 30s"} {
		for name, engine := range map[string]func() weir.Engine{
			"memory": func() weir.Engine { return weir.NewMemory(weir.MemoryOptions{}) },
			"shared": func() weir.Engine {
				return waittest.NewServer(weir.NewMemory(weir.MemoryOptions{})).Connect(waittest.Network{Way: func() time.Duration { return 300 * time.Microsecond }})
			},
		} {
			t.Run(name+"/"+limit, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					alone := grantsBeside(t, engine(), limit, nil)
					for kind, body := range hopelessBodies {
						switch {
						case strings.HasPrefix(limit, "concurrency") && kind == "no time for the whole capacity": // slots may come back at any time
							continue
						case name == "memory" && kind == "a patience that is over": // its answers take no time
							continue
						}
						if beside := grantsBeside(t, engine(), limit, []string{body, body, body, body}); beside < alone*98/100 || beside > alone*102/100 {
							t.Errorf("%d grants beside waits for %s, want the %d without them", beside, kind, alone)
						}
					}
				})
			})
		}
	}
}

// grantsBeside returns the grants of thirty callers in four seconds beside other callers that try again each 10 ms.
func grantsBeside(t *testing.T, engine weir.Engine, limit string, others []string) int64 {
	log := slog.New(slog.DiscardHandler)
	table, err := override.OpenFile("", log)
	if err != nil {
		t.Fatal(err)
	}
	engine = table.Around(engine)
	a := newAPIWith(t, decide.Options{Engine: engine, Log: log}, "r="+limit)
	table.OnChange(a.desk.Changed)
	if _, err := table.Set(t.Context(), &override.Entry{Key: "blocked", Limit: override.Block, Until: time.Now().Add(time.Hour)}, engine); err != nil {
		t.Fatal(err)
	}
	slots := strings.HasPrefix(limit, "concurrency")
	path := "/v1/wait"
	if slots {
		path = "/v1/reserve"
	}
	ctx, stop := context.WithCancel(t.Context())
	ask := func(path, body string) string {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body)))
		return w.Body.String()
	}
	var all sync.WaitGroup
	var granted atomic.Int64
	for range 30 {
		all.Go(func() {
			for ctx.Err() == nil {
				answer := ask(path, `{"rule":"r","key":"k","patience":20}`)
				if !strings.HasPrefix(answer, `{"allowed":true`) {
					continue
				}
				granted.Add(1)
				if _, token, ok := strings.Cut(answer, `"token":"`); ok {
					time.Sleep(20 * time.Millisecond)
					token, _, _ = strings.Cut(token, `"`)
					ask("/v1/settle", fmt.Sprintf(`{"token":%q}`, token))
				}
			}
		})
	}
	time.Sleep(1037 * time.Millisecond) // nothing is left, and no window begins now
	for _, body := range others {
		all.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				if answer := ask(path, body); strings.HasPrefix(answer, `{"allowed":true`) {
					t.Errorf("%s was admitted", body)
				} else if took := time.Since(began); took > 10*time.Millisecond && ctx.Err() == nil {
					t.Errorf("%s was refused after %v, want at once", body, took)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	time.Sleep(time.Second)
	before := granted.Load()
	time.Sleep(4 * time.Second)
	n := granted.Load() - before
	stop()
	all.Wait()
	time.Sleep(time.Minute)
	return n
}

package api

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/cmd/weir/internal/override"
	"github.com/weirflow/weir/internal/randtest"
)

// A caller waits by a rule that a reload replaces. It goes by the new limit at once, and so do those behind it.
func TestAReloadIsInForceForWaitingCallers(t *testing.T) {
	inBubble(t, func(t *testing.T, a *API) {
		var callers []*caller
		for range 5 {
			callers = append(callers, send(a, "/v1/wait", `{"key":"a","patience":50}`))
		}
		<-callers[0].answer
		time.Sleep(10 * time.Second)
		raised, err := weir.ParseRule("default=token bucket 1000/s burst 100")
		if err != nil {
			t.Fatal(err)
		}
		a.desk.Use([]*weir.Rule{raised}, nil)
		for i, c := range callers[1:] {
			if w := <-c.answer; w.Code != 200 || c.took > 10100*time.Millisecond {
				t.Errorf("caller %d: got %d %s after %v, want a grant at the reload after 10s", i+1, w.Code, w.Body, c.took)
			}
		}
	}, "default=token bucket 1/h burst 1")
}

// The answer to a wait is that of the limit in force, whatever the limit was when the caller came.
func TestAWaitThatAReloadEndsAnswersByTheNewLimit(t *testing.T) {
	const refused = `,"refused_by":0,"cause":"count"}`
	for _, test := range []struct{ path, before, after, took, ask, want string }{
		{"wait", "fixed window 5/60s", "fixed window 3/60s", `{"key":"a","cost":5}`, `{"key":"a","cost":5,"patience":60}`,
			`{"allowed":false,"rule":"default","key":"a","limit":3,"remaining":0,"retry_after":null,"reset_after":30,"delay":0` + refused},
		{"wait", "quota 5/day", "quota 9/month", `{"key":"a","cost":5}`, `{"key":"a","patience":60}`,
			`"limit":9,"remaining":8,"retry_after":0,"reset_after":2592030,"delay":0,"reset_at":"2000-02-01T00:00:00Z"}`},
		{"reserve", "concurrency 1 lease 5m", "concurrency 2 lease 1m", `{"key":"a"}`, `{"key":"a","patience":60}`, `"lease":60,"token":"`},
		{"reserve", "concurrency 2 lease 5m", "concurrency 1 lease 1m", `{"key":"a","cost":2}`, `{"key":"a","cost":2,"patience":60}`,
			`"limit":1,"remaining":0,"retry_after":null,"reset_after":300,"delay":0,"refused_by":0,"cause":"count","lease":60}`},
	} {
		t.Run(test.path+" under "+test.after, func(t *testing.T) {
			inBubble(t, func(t *testing.T, a *API) {
				time.Sleep(24*time.Hour - 30*time.Second)
				post(a, "/v1/reserve", test.took)
				c := send(a, "/v1/"+test.path, test.ask)
				after, err := weir.ParseRule("default=" + test.after)
				if err != nil {
					t.Fatal(err)
				}
				a.desk.Use([]*weir.Rule{after}, nil)
				if w := <-c.answer; !strings.Contains(w.Body.String(), test.want) || c.took != 0 {
					t.Errorf("got %safter %v, want %s at once", w.Body, c.took, test.want)
				}
			}, "default="+test.before)
		})
	}
}

// A wait that a reload ends has the answer of a caller that comes after it.
func TestAWaitThatAReloadEndsAnswersLikeALaterOne(t *testing.T) {
	random, compared := rand.New(rand.NewPCG(randtest.Seed(t), 0)), 0
	kinds := []string{"fixed window %d/60s", "sliding window %d/60s", "sliding log %d/60s", "cycle %d/60s", "token bucket %d/60s", "token bucket 1/60s burst %d", "quota %d/day"}
	draw := func() string { return fmt.Sprintf("default="+kinds[random.IntN(len(kinds))], 1+random.IntN(6)) }
	rounds := randtest.Rounds(t, 400, 100)
	for range rounds {
		before, after, cost := draw(), draw(), 1+random.IntN(6)
		synctest.Test(t, func(t *testing.T) {
			a := newAPI(t, weir.NewMemory(weir.MemoryOptions{}), before)
			for range 6 {
				post(a, "/v1/take", `{"key":"a"}`)
			}
			time.Sleep(time.Duration(random.IntN(60)) * time.Second)
			ask := fmt.Sprintf(`{"key":"a","cost":%d,"patience":60}`, cost)
			c := send(a, "/v1/wait", ask)
			defer c.leave()
			if len(c.answer) > 0 {
				return
			}
			rule, err := weir.ParseRule(after)
			if err != nil {
				t.Fatal(err)
			}
			a.desk.Use([]*weir.Rule{rule}, nil)
			synctest.Wait()
			if len(c.answer) == 0 {
				return
			}
			w := <-c.answer
			if strings.HasPrefix(w.Body.String(), `{"allowed":true,`) {
				return
			}
			compared++
			if later := <-send(a, "/v1/wait", ask).answer; w.Body.String() != later.Body.String() {
				t.Errorf("under %s, then %s: a wait of cost %d got %s, and a later one %s", before, after, cost, w.Body, later.Body)
			}
		})
	}
	if compared < rounds/20 {
		t.Errorf("%d of %d waits were refused at the reload: they prove little", compared, rounds)
	}
}

// So is the text for people.
func TestAWaitThatAReloadEndsHasTheNewMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newConfigured(t, `rules: [{name: r, limit: fixed window 5/60s, message: Five at most.}]`)
		post(a, "/v1/take", `{"rule":"r","key":"a","cost":5}`)
		c := send(a, "/v1/wait", `{"rule":"r","key":"a","cost":5,"patience":60}`)
		after := configured(t, `rules: [{name: r, limit: fixed window 3/60s, message: Three at most.}]`)
		a.desk.Use(after.Named(), after)
		if w := <-c.answer; !strings.HasPrefix(w.Body.String(), `{"allowed":false,`) || !strings.Contains(w.Body.String(), `"message":"Three at most."`) {
			t.Errorf("got %s, want the refusal of the new rule", w.Body)
		}
	})
}

// A block refuses the callers that wait and those that come, although it ends within their patience.
func TestABlockRefusesEveryWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		table, err := override.OpenFile("", log)
		if err != nil {
			t.Fatal(err)
		}
		engine := table.Around(weir.NewMemory(weir.MemoryOptions{}))
		a := newAPIWith(t, decide.Options{Engine: engine, Log: log}, "default=token bucket 1/10s burst 1")
		table.OnChange(a.desk.Changed)
		post(a, "/v1/take", `{"key":"a"}`)
		callers := []*caller{send(a, "/v1/wait", `{"key":"a","patience":30}`), send(a, "/v1/reserve", `{"key":"a","patience":30}`)}
		if _, err := table.Set(t.Context(), &override.Entry{Key: "a", Limit: override.Block, Until: time.Now().Add(2 * time.Second)}, engine); err != nil {
			t.Fatal(err)
		}
		callers = append(callers, send(a, "/v1/wait", `{"key":"a","patience":30}`))
		for i, c := range callers {
			if w := <-c.answer; !strings.HasPrefix(w.Body.String(), `{"allowed":false,"rule":"default","key":"a","limit":0,"remaining":0,"retry_after":2,`) || c.took != 0 {
				t.Errorf("caller %d: got %safter %v, want a refusal at once for the 2s of the block", i, w.Body, c.took)
			}
		}
		checkWaiting(t, a, `{"callers":0,"oldest":0,"granted":0,"refused":{"engine":0,"full":0,"left":0,"never":3,"patience":0,"stop":0}`)
	})
}

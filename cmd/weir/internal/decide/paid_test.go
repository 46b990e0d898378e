package decide

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/enginekit"
)

// pooled is a daemon with a floor of 2 for each tenant, and a pool of 3 for all.
type pooled struct {
	*Desk
	t    *testing.T
	paid []string // who paid for whom
}

const poolRules = `attributes: [tenant]
rules:
  - {name: floor, match: {path: /v1*}, key: tenant, limit: fixed window 2/h, otherwise: pool}
  - {name: pool, match: otherwise, limit: fixed window 3/h}
`

func parsed(t *testing.T, text string) *rules.Config {
	t.Helper()
	config, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// newPooled returns a daemon on an engine. All daemons of tests have one secret.
func newPooled(t *testing.T, engine weir.Engine, text string) *pooled {
	t.Helper()
	config := parsed(t, text)
	p := &pooled{t: t}
	p.Desk = New(Options{Engine: engine, Rules: config.Named(), Config: config, Log: slog.New(slog.DiscardHandler),
		Secret: func(context.Context) ([]byte, error) { return []byte("secret"), nil }, Wait: WaitOptions{Longest: 2 * time.Hour},
		PaidBy: func(asked, paid string) { p.paid = append(p.paid, paid+" for "+asked) }})
	return p
}

// asks returns the requests of a tenant, by attributes.
func (p *pooled) asks(tenant string, cost int64) []weir.Request {
	p.t.Helper()
	var o rules.Outcome
	p.InForce().Config.Decide(rules.Attributes{"path": "/v1/x", "tenant": tenant}, cost, &o)
	if o.Verdict != rules.Ask {
		p.t.Fatalf("the rules say %+v", o)
	}
	return slices.Clone(o.Requests)
}

// take takes as a front does, and returns who paid, or refused.
func (p *pooled) take(tenant string, cost int64) string {
	p.t.Helper()
	requests := p.asks(tenant, cost)
	made, err := p.Do(p.t.Context(), weir.Call{Op: weir.OpTake, Requests: requests})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Took(nil, requests, nil, made)
	if !made.Allowed {
		return "refused"
	}
	return made.On[0].Rule.Name()
}

// left fails unless the pool has want units left.
func (p *pooled) left(want int64) {
	p.t.Helper()
	made, err := p.Do(p.t.Context(), weir.Call{Op: weir.OpPeek, Requests: []weir.Request{p.InForce().Known("pool").For("", 1)}})
	if err != nil || made.Remaining != want {
		p.t.Errorf("the pool has %d left (%v), want %d", made.Remaining, err, want)
	}
}

// exhaust takes the floor of a tenant.
func (p *pooled) exhaust(tenant string) {
	p.t.Helper()
	if by := p.take(tenant, 2); by != "floor" {
		p.t.Fatalf("the floor of %s: %s", tenant, by)
	}
}

func TestAPoolPaysWhatAFloorRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPooled(t, weir.NewMemory(weir.MemoryOptions{}), poolRules)
		var got []string
		for _, tenant := range []string{"a", "a", "a", "b", "a", "b", "b", "a", "c"} {
			got = append(got, p.take(tenant, 1))
		}
		if want := "floor floor pool floor pool floor pool refused floor"; strings.Join(got, " ") != want {
			t.Errorf("paid by %s, want %s", got, want)
		}
		if want := []string{"pool for floor", "pool for floor", "pool for floor"}; !slices.Equal(p.paid, want) {
			t.Errorf("told of %q, want %q", p.paid, want)
		}
	})
}

// The two daemons share an engine and a secret, and the second has been restarted since.
func TestATokenSettlesWhatThePoolPaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := weir.NewMemory(weir.MemoryOptions{})
		one, two := newPooled(t, memory, poolRules), newPooled(t, memory, poolRules)
		for i, settle := range []func(token string, tenant *auth.Identity) error{
			func(token string, who *auth.Identity) error { return one.Settle(t.Context(), who, token, false, 1) },
			func(token string, who *auth.Identity) error { return two.Settle(t.Context(), who, token, false, 1) },
		} {
			tenant := fmt.Sprint(i)
			one.exhaust(tenant)
			one.left(3 - int64(i))
			made, token, _, err := one.Reserve(Patient{Client: t.Context()}, one.asks(tenant, 2))
			if err != nil || !made.Allowed || made.PaidBy != "pool" || made.Rule != "pool" {
				t.Fatalf("the reservation got %+v, %v; want one that the pool pays", made, err)
			}
			one.left(1 - int64(i))
			if err := settle(token, onlyFloor(t)); err != nil { // who may ask for the floor alone
				t.Errorf("the settlement got %v", err)
			}
			one.left(2 - int64(i))
			if err := settle(token, onlyFloor(t)); !errors.Is(err, ErrToken) {
				t.Errorf("a second settlement got %v, want %v", err, ErrToken)
			}
		}
	})
}

// onlyFloor returns a caller that may take from the floor, and from nothing else.
func onlyFloor(t *testing.T) *auth.Identity {
	t.Helper()
	_, form := auth.NewToken()
	all, err := auth.Parse("shop " + form + " take:floor")
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func TestAHoldAndItsCommitGoToThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := weir.NewMemory(weir.MemoryOptions{})
		one, two := newPooled(t, memory, poolRules), newPooled(t, memory, poolRules)
		hold := func(tenant string) (id string) {
			t.Helper()
			one.exhaust(tenant)
			id, err := one.Hold(t.Context(), domain, one.asks(tenant, 2), HoldOptions{Life: time.Minute, Share: 100})
			if err != nil || id == "" {
				t.Fatalf("the hold of %s got %q, %v", tenant, id, err)
			}
			one.left(1)
			return id
		}
		id := hold("a")
		if stood, err := two.Commit(t.Context(), domain, id, two.asks("a", 1)); !stood || err != nil {
			t.Errorf("the commit got %v, %v", stood, err)
		}
		one.left(2)
		if stood, err := two.Commit(t.Context(), domain, id, two.asks("a", 1)); stood || err != nil {
			t.Errorf("a second commit got %v, %v", stood, err)
		}
		one.left(2)
		time.Sleep(time.Hour)
		hold("b")
		time.Sleep(time.Minute) // nobody commits
		synctest.Wait()
		one.left(3)
		id = hold("c")
		time.Sleep(time.Minute)
		synctest.Wait()
		if stood, err := one.Commit(t.Context(), domain, id, one.asks("c", 2)); stood || err != nil { // whose units came back
			t.Errorf("a late commit got %v, %v", stood, err)
		}
		one.left(1)
	})
}

// leaving is an engine whose client leaves once it has decided for it.
func leaving(e weir.Engine, leave func()) weir.Engine {
	return weir.Wrap(e, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		a, err := next(ctx, call)
		for i := range enginekit.Decisions(&call) {
			c, made, _, _ := enginekit.DecisionAt(&call, &a, err, i)
			if made.Allowed && c.Requests[0].Rule.Name() == "pool" && (c.Op == weir.OpTake || c.Op == weir.OpReserve) {
				leave()
			}
		}
		return a, err
	})
}

func TestWhatAPoolPaidForAClientThatLeftComesBackToIt(t *testing.T) {
	for _, patience := range []time.Duration{0, time.Second} {
		for name, ask := range map[string]func(*pooled, Patient) error{
			"a wait": func(p *pooled, of Patient) error { _, err := p.Wait(of, p.asks("a", 2)); return err },
			"a reservation": func(p *pooled, of Patient) error {
				_, _, _, err := p.Reserve(of, p.asks("a", 2))
				return err
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				client, leave := context.WithCancel(t.Context())
				p := newPooled(t, leaving(weir.NewMemory(weir.MemoryOptions{}), leave), poolRules)
				p.exhaust("a")
				if err := ask(p, Patient{Client: client, Patience: patience}); !errors.Is(err, context.Canceled) {
					t.Errorf("%s of %v: got %v, want %v", name, patience, err, context.Canceled)
				}
				p.Stopped()
				synctest.Wait()
				p.left(3)
			})
		}
	}
}

func TestNobodyNamesAPool(t *testing.T) {
	p := newPooled(t, weir.NewMemory(weir.MemoryOptions{}), poolRules)
	if r := p.InForce().Rule([]byte("pool")); r != nil {
		t.Errorf("callers can name %v", r)
	}
	var wrong *weir.RequestError
	if r, err := p.InForce().Limited("pool", "9/s"); !errors.As(err, &wrong) || wrong.Field != "rule" {
		t.Errorf("a limit of its own under the name of a pool got %v, %v", r, err)
	}
}

// A pool without an estimate holds what the floor has learnt.
func TestAPoolHoldsTheEstimateOfTheFloor(t *testing.T) {
	text := strings.NewReplacer("fixed window 2/h", "fixed window 200/h", "fixed window 3/h", "fixed window 1000/h", "otherwise: pool}", "estimate: {quantile: p95, min: 150}, otherwise: pool}").Replace(poolRules)
	p := newPooled(t, weir.NewMemory(weir.MemoryOptions{}), text)
	reserve := func() Made {
		t.Helper()
		requests, held := p.InForce().Estimated(p.asks("a", 1))
		made, _, _, err := p.Reserve(Patient{Client: t.Context()}, requests)
		if err != nil || !held || !made.Allowed {
			t.Fatalf("got %+v, %v", made, err)
		}
		return made
	}
	reserve()
	if made := reserve(); made.PaidBy != "pool" || made.On[0].Cost != 150 || made.Remaining != 850 {
		t.Errorf("got %+v on %+v, want 150 that the pool holds", made.Decision, made.On)
	}
}

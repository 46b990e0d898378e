package top_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/top"
	"github.com/weirflow/weir/internal/randtest"
)

func mustRule(t testing.TB, text string) *weir.Rule {
	t.Helper()
	r, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFirstCallsAreCountedExactly(t *testing.T) {
	k, login, mail := top.New(), mustRule(t, "login=5/m"), mustRule(t, "mail=5/m")
	for range 5 {
		k.Taken([]weir.Request{login.For("alice", 1), mail.For("bob", 1)}) // one call of two rules
	}
	k.Taken([]weir.Request{login.For("carol", 1)})
	k.Refused("login", "mallory")
	for _, c := range []struct {
		rule string
		by   top.By
		want string
	}{
		{"login", top.Taken, "[{login alice 5 0 false false} {login carol 1 0 false false}]"},
		{"", top.Taken, "[{login alice 5 0 false false} {mail bob 5 0 false false} {login carol 1 0 false false}]"},
		{"", top.Refused, "[{login mallory 1 0 false false}]"},
		{"unknown", top.Taken, "[]"},
	} {
		if got := fmt.Sprint(k.Top(c.rule, c.by, 10)); got != c.want {
			t.Errorf("rule %q by %d: got %s, want %s", c.rule, c.by, got, c.want)
		}
	}
	k.Forget("login")
	if got := k.Top("login", top.Taken, 10); len(got) != 0 {
		t.Errorf("a forgotten rule has the keys %v", got)
	}
}

func TestTheBusiestKeysAreThoseOfAdmittedAndRefusedCallsTogether(t *testing.T) {
	k := top.New()
	calls := map[string]int{}
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 { // few enough that each is a sample
		rule, key := fmt.Sprint("r", random.IntN(2)), fmt.Sprint("k", random.IntN(5))
		calls[rule+" "+key]++
		if r := mustRule(t, rule+"=5/m"); random.IntN(2) == 0 {
			k.Taken([]weir.Request{r.For(key, 1)})
		} else {
			k.Refused(rule, key)
		}
	}
	k.Refused("r0~shadow", "k1") // counts apart, with a mark
	k.Refused("r0~candidate", "k1")
	busiest := k.Busiest(100)
	if last := busiest[len(busiest)-1]; !last.Shadow || last.Rule != "r0" || last.Key != "k1" || last.Count != 1 {
		t.Errorf("got %+v last, want the key of the shadow", last)
	}
	busiest = busiest[:len(busiest)-1]
	if len(busiest) != len(calls) {
		t.Errorf("got %d keys, want %d", len(busiest), len(calls))
	}
	for i, c := range busiest {
		if int(c.Count) != calls[c.Rule+" "+c.Key] || c.Overcount != 0 || i > 0 && c.Count > busiest[i-1].Count {
			t.Errorf("got %+v at place %d, want %d calls", c, i, calls[c.Rule+" "+c.Key])
		}
	}
	if got := k.Busiest(1); len(got) != 1 || got[0] != busiest[0] {
		t.Errorf("the first of them is %+v, want %+v", got, busiest[0])
	}
	if got := k.Busiest(0); got == nil || len(got) != 0 {
		t.Errorf("the first 0 are %+v, want an empty list", got)
	}
}

func TestHeavyKeysAreFoundAmongManyByManyGoroutines(t *testing.T) {
	const goroutines, calls = 4, 20_000
	k, r := top.New(), mustRule(t, "r=5/m")
	var done sync.WaitGroup
	for g := range goroutines {
		done.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			for range calls {
				key := fmt.Sprint("rare", random.IntN(1e6))
				if at := random.IntN(100); at < 30 {
					key = fmt.Sprint("heavy", at/10) // each of three has a tenth of the calls
				}
				k.Taken([]weir.Request{r.For(key, 1)})
			}
		})
	}
	done.Wait()
	found := k.Top("r", top.Taken, 3)
	for _, c := range found {
		if expected := goroutines * calls / 10; !strings.HasPrefix(c.Key, "heavy") || int(c.Count-c.Overcount) > expected*13/10 {
			t.Errorf("got %v, want the keys heavy0 to heavy2 with %d calls each at most", found, expected)
		}
	}
}

func TestOldTrafficIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := top.New()
		for range 8 {
			k.Refused("r", "old")
		}
		time.Sleep(20 * time.Minute)
		if got := k.Top("r", top.Refused, 1); len(got) != 1 || got[0].Count != 2 {
			t.Errorf("after twenty minutes: got %v, want a quarter of 8", got)
		}
		k.Refused("r", "old")
		time.Sleep(30 * time.Minute)
		k.Refused("r", "new")
		if got := fmt.Sprint(k.Top("r", top.Refused, 2)); got != "[{r new 1 0 false false}]" {
			t.Errorf("after fifty minutes: got %s, want the new key alone", got)
		}
		time.Sleep(100 * time.Hour)
		if got := k.Top("r", top.Refused, 2); len(got) != 0 {
			t.Errorf("after days: got %v, want nothing", got)
		}
	})
}

func TestRulesAndKeysAreBounded(t *testing.T) {
	k := top.New()
	for i := range 1200 {
		k.Refused(fmt.Sprint("rule", i), "k")
	}
	if got := len(k.Top("", top.Refused, 5000)); got != 1000 {
		t.Errorf("got keys of %d rules, want 1000", got)
	}
	k.Forget("rule3")
	k.Forget("rule1100") // has none
	for i := range 200 {
		k.Refused("new", fmt.Sprint("k", i))
	}
	if got := len(k.Top("new", top.Refused, 5000)); got != 64 {
		t.Errorf("got %d keys of a rule, want 64", got)
	}
	k.Forget("rule4")
	long := strings.Repeat("é", 2000)
	k.Refused("long", "x"+long)
	if got := k.Top("long", top.Refused, 1); len(got) != 1 || len(got[0].Key) != 255 || !got[0].Cut || !utf8.ValidString(got[0].Key) {
		t.Errorf("got %v, want 255 bytes of the key", got)
	}
}

func TestTopAnswersOverHTTP(t *testing.T) {
	k := top.New()
	k.Refused("login", "al\x1b[31m\xff")
	for query, want := range map[string]string{
		"?rule=login&by=refused": `{"keys":[{"rule":"login","key":"al\u001b[31m` + "\ufffd" + `","count":1,"overcount":0}]}`,
		"":                       `{"keys":[]}`,
		"?by=units":              `by is \"units\", want taken, refused or used`,
		"?n=0":                   `n is \"0\", want a whole number from 1 to 1000`,
		"?n=1&n=2":               `the query has the field \"n\", want rule, by and n, each once at most`,
		"?key=x":                 `the query has the field \"key\", want`,
		"?a=%zz":                 `the query is not URL-encoded`,
	} {
		w := httptest.NewRecorder()
		k.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/top"+query, nil))
		body := strings.ReplaceAll(w.Body.String(), `\ufffd`, "\ufffd")
		if good := strings.HasPrefix(want, "{"); !strings.Contains(body, want) || (w.Code == http.StatusOK) != good || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%q: got %d %s, want %s", query, w.Code, body, want)
		}
	}
}

func BenchmarkTaken(b *testing.B) {
	k, r := top.New(), mustRule(b, "r=5/m")
	requests := make([][]weir.Request, 1<<16)
	for i := range requests {
		requests[i] = []weir.Request{r.For(fmt.Sprint("key", i), 1)}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		k.Taken(requests[i&(1<<16-1)])
	}
}

// The lists are those of sorting all keys, whatever their counts.
func TestTheLargestCountsAreThoseOfSortingAll(t *testing.T) {
	var rules []*weir.Rule
	for i := range 4 {
		rules = append(rules, mustRule(t, fmt.Sprintf("r%d=5/s", i)))
	}
	for seed := range randtest.Seeds(t, 200, 50) {
		r := randtest.New(seed)
		k, counts := top.New(), [3]map[[2]string]uint64{{}, {}, {}}
		for range r.IntN(60) { // the first calls of a rule are all samples
			rule, key, by := rules[r.IntN(4)], fmt.Sprint(r.IntN(6)), top.By(r.IntN(2))
			if by == top.Taken {
				k.Taken([]weir.Request{rule.For(key, 1)})
			} else {
				k.Refused(rule.Name(), key)
			}
			counts[by][[2]string{rule.Name(), key}]++
			counts[2][[2]string{rule.Name(), key}]++
		}
		n := r.IntN(12)
		for i, got := range [][]top.Count{k.Top("", top.Taken, n), k.Top("", top.Refused, n), k.Busiest(n)} {
			want := []top.Count{}
			for of, count := range counts[i] {
				want = append(want, top.Count{Rule: of[0], Key: of[1], Count: count})
			}
			slices.SortFunc(want, func(a, b top.Count) int {
				return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
			})
			if want = want[:min(n, len(want))]; !slices.Equal(got, want) {
				t.Errorf("seed %d, list %d: got %v, want %v", seed, i, got, want)
			}
		}
	}
}

// Ten viewers of the live page may cost little, and each second of theirs begins with this.
func TestTheBusiestKeysOfManyRulesAreFoundInLittleMemory(t *testing.T) {
	k := manyKeys(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		k.Busiest(20)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / 10; each > 256<<10 {
		t.Errorf("each look at the keys of 200 rules allocates %d bytes, want what 20 of them take and the keys of a rule", each)
	}
}

// manyKeys returns full lists of 200 rules.
func manyKeys(t testing.TB) *top.Keys {
	k := top.New()
	for i := range 200 {
		rule := mustRule(t, fmt.Sprintf("r%d=5/s", i))
		for j := range 64 {
			k.Refused(rule.Name(), fmt.Sprint(j))
			k.Taken([]weir.Request{rule.For(fmt.Sprint(j/2*3), 1)})
		}
	}
	return k
}

func BenchmarkBusiest(b *testing.B) {
	k := manyKeys(b)
	for b.Loop() {
		k.Busiest(20)
	}
}

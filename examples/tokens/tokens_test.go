package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// model is a language model that writes a token an event, and knows what it used. A client that leaves stops it. What it used
// stands in its last event alone.
type model struct {
	mu   sync.Mutex
	used map[string][3]int64 // requests, tokens and money by caller
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var asked struct {
		Caller string
		Tokens int64 // of the answer
		Stop   int64 // tokens after which the client leaves; -1 if it stays
	}
	used := usage{Prompt: int64(len(body)+3) / 4}
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.used[asked.Caller] = sum(m.used[asked.Caller], used.costs())
	}()
	if json.Unmarshal(body, &asked) != nil || asked.Tokens == 0 {
		used = usage{}
		http.Error(w, "no answer", http.StatusTeapot)
		return
	}
	for ; used.Answer < asked.Tokens; used.Answer++ {
		if used.Answer == asked.Stop {
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n", used.Answer)
		_ = http.NewResponseController(w).Flush()
	}
	used.Prompt += 7 // which no proxy knows before
	told, _ := json.Marshal(used)
	fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n", told)
}

func sum(a [3]int64, b []int64) [3]int64 { return [3]int64{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }

// yearly are budgets that count all of a test. A user has as many tokens as told.
func yearly(tokens string) []string {
	const all = "=quota 1000000000/year in Europe/Paris"
	return []string{
		"organisation requests" + all, "organisation tokens" + all, "organisation money" + all,
		"team requests" + all, "team tokens" + all, "team money" + all,
		"user requests" + all, "user tokens=quota " + tokens + "/year in Europe/Paris", "user money" + all,
	}
}

// serve starts a proxy on Redis, in front of a model. The returned stop ends it when all is settled.
func serve(t *testing.T, m *model, budgets []string) (p *proxy, url string, stop func()) {
	engine, err := redislimit.Open("redis://"+redistest.Start(t).Addr, redislimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	upstream := httptest.NewServer(m)
	t.Cleanup(upstream.Close)
	p = newProxy(engine, upstream.URL, budgets)
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return p, front.URL, front.Close
}

// ask asks the proxy for a stream, and leaves after some of its tokens unless stop is -1.
func ask(t *testing.T, url, caller string, tokens, stop int64) (status int, retry, body string) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	question := fmt.Sprintf(`{"caller":%q,"tokens":%d,"stop":%d,"max_tokens":%d,"messages":[%q]}`, caller, tokens, stop, tokens+20, strings.Repeat("word ", int(tokens)))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Caller", caller)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, "", ""
	}
	defer func() { _ = answer.Body.Close() }()
	seen := int64(0)
	for lines := bufio.NewScanner(answer.Body); seen != stop && lines.Scan(); {
		if body += lines.Text(); strings.Contains(lines.Text(), `"content"`) {
			seen++
		}
	}
	return answer.StatusCode, answer.Header.Get("Retry-After"), body
}

// 200 streams at once, of which half are left by their clients and some fail, count on Redis what the model used, to the unit.
func TestWhatTheModelUsedIsWhatIsCounted(t *testing.T) {
	m := &model{used: map[string][3]int64{}}
	p, url, stop := serve(t, m, yearly("1000000000"))
	var callers sync.WaitGroup
	for i := range int64(200) {
		callers.Go(func() {
			tokens, leaves := i%50, int64(-1)
			if i%2 == 1 && tokens > 1 {
				leaves = 1 + i%(tokens-1)
			}
			ask(t, url, fmt.Sprintf("acme/team%d/user%d", i%3, i%12), tokens, leaves)
		})
	}
	callers.Wait()
	stop()
	used := map[string][3]int64{}
	for caller, costs := range m.used {
		names := strings.Split(caller, "/")
		for level := range names {
			key := strings.Join(names[:level+1], "/")
			used[key] = sum(used[key], costs[:])
		}
	}
	if requests := used["acme"][0]; requests != 200 || len(used) != 1+3+12 {
		t.Errorf("the model was asked %d times for %d budgets: this proves little", requests, len(used))
	}
	var ledger strings.Builder
	table := tabwriter.NewWriter(&ledger, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "\nbudget\tof\tused\tcounted")
	for _, key := range slices.Sorted(maps.Keys(used)) {
		for i, cost := range used[key] {
			rule := p.rules[3*strings.Count(key, "/")+i]
			d, err := p.engine.Peek(t.Context(), rule.For(key, 1))
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\n", rule.Name(), key, cost, d.Limit-d.Remaining)
			if err != nil || d.Limit-d.Remaining != cost {
				t.Errorf("%s of %s: %d counted and %d used; %v", rule.Name(), key, d.Limit-d.Remaining, cost, err)
			}
		}
	}
	_ = table.Flush()
	t.Log(ledger.String())
}

// A budget without room for the estimate refuses, and says who it is and when it has room again.
func TestARefusalNamesTheBudgetAndTheInstant(t *testing.T) {
	m := &model{used: map[string][3]int64{}}
	p, url, _ := serve(t, m, yearly("200"))
	if status, _, _ := ask(t, url, "acme/search/ann", 50, -1); status != http.StatusOK {
		t.Fatalf("the first request: %d", status)
	}
	status, retry, body := ask(t, url, "acme/search/ann", 50, -1)
	if want := `the budget "user tokens" of "acme/search/ann" has `; status != http.StatusTooManyRequests || retry == "" || !strings.HasPrefix(body, want) || !strings.Contains(body, " at 20") {
		t.Errorf("the second request: %d, Retry-After %q, %s; want 429 and %s", status, retry, body, want)
	}
	if status, retry, body := ask(t, url, "acme/search/bob", 500, -1); status != http.StatusRequestEntityTooLarge || retry != "" || !strings.HasSuffix(body, "never") {
		t.Errorf("a request beyond the budget: %d, Retry-After %q, %s; want 413", status, retry, body)
	}
	d, err := p.engine.Peek(t.Context(), p.rules[0].For("acme", 1))
	if err != nil || d.Limit-d.Remaining != 1 {
		t.Errorf("requests of the organisation: %+v and %v, want 1, because a refusal holds nothing of any budget", d, err)
	}
}

// Command tokens is a proxy in front of a language model. It holds an estimate of each request against the budgets of the
// caller's organisation, team and user, and then counts what the model says that it used:
//
//	tokens redis://127.0.0.1:6379 http://127.0.0.1:11434 127.0.0.1:8090
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit"
)

// budgets limit requests, tokens and money, in ten-thousandths of a cent, of an organisation, a team and a user.
var budgets = []string{
	"organisation requests=3000/m", "organisation tokens=2000000/m", "organisation money=quota 5000000000/month in Europe/Paris",
	"team requests=600/m", "team tokens=400000/m", "team money=quota 500000000/month in Europe/Paris",
	"user requests=60/m", "user tokens=40000/m", "user money=quota 20000000/month in Europe/Paris",
}

// usage is what a request needs or has needed. The model tells it in its last event.
type usage struct {
	Prompt int64 `json:"prompt_tokens"`
	Answer int64 `json:"completion_tokens"`
}

// costs returns what each budget counts. At 3 dollars for a million tokens, a token costs 3 ten-thousandths of a cent.
func (u usage) costs() []int64 {
	one := []int64{1, u.Prompt + u.Answer, 3*u.Prompt + 15*u.Answer}
	return append(append(one, one...), one...)
}

type proxy struct {
	engine weir.Engine
	rules  []*weir.Rule // one for each budget
	model  string       // URL
}

func main() {
	if len(os.Args) != 4 {
		must(0, fmt.Errorf("%d arguments; want the URLs of Redis and of the model, and an address, such as redis://127.0.0.1:6379 http://127.0.0.1:11434 127.0.0.1:8090", len(os.Args)-1))
	}
	must(0, http.ListenAndServe(os.Args[3], newProxy(must(redislimit.Open(os.Args[1], redislimit.Options{})), os.Args[2], budgets)))
}

func newProxy(engine weir.Engine, model string, budgets []string) *proxy {
	p := &proxy{engine: engine, model: must(url.ParseRequestURI(model)).String()}
	for _, text := range budgets {
		p.rules = append(p.rules, must(weir.ParseRule(text)))
	}
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller := r.Header.Get("X-Caller") // organisation/team/user; a real proxy would look a key up
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	var asked struct {
		Max int64 `json:"max_tokens"`
	}
	if err != nil || strings.Count(caller, "/") != 2 || json.Unmarshal(body, &asked) != nil || asked.Max < 1 || asked.Max > 1<<20 {
		http.Error(w, "want a JSON body of at most 1 MiB, max_tokens from 1 to 1048576, and X-Caller: organisation/team/user", http.StatusBadRequest)
		return
	}
	estimate := usage{Prompt: int64(len(body)+3) / 4, Answer: asked.Max}
	held, err := p.engine.Reserve(r.Context(), p.requests(caller, estimate)...)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case !held.Decision.Allowed:
		refuse(w, held.Decision)
	default:
		used := p.pass(w, r, body, estimate.Prompt)
		err := held.Settle(r.Context(), used.costs()...) // also after the client has left
		fmt.Printf("%s held %d tokens, used %d + %d; error: %v\n", caller, estimate.Prompt+estimate.Answer, used.Prompt, used.Answer, err)
	}
}

// requests returns one request for each budget of a caller: all of them hold it, or none.
func (p *proxy) requests(caller string, u usage) (all []weir.Request) {
	names, costs := strings.Split(caller, "/"), u.costs()
	for i, rule := range p.rules {
		all = append(all, rule.For(strings.Join(names[:1+i/3], "/"), costs[i]))
	}
	return all
}

// refuse says which budget refuses, and when it has room for the request.
func refuse(w http.ResponseWriter, d weir.Decision) {
	status, when := http.StatusRequestEntityTooLarge, "never"
	if d.RetryAfter != weir.Never {
		status, when = http.StatusTooManyRequests, "at "+time.Now().Add(d.RetryAfter).UTC().Format(time.RFC3339)
		w.Header().Set("Retry-After", fmt.Sprint(int64((d.RetryAfter+time.Second-1)/time.Second)))
	}
	http.Error(w, fmt.Sprintf("the budget %q of %q has %d left; it has room for this request %s", d.Rule, d.Key, d.Remaining, when), status)
}

// pass passes the request on, and the answer back line by line. A client that leaves stops the model. Without a word of the
// model, what was used is the prompt and a token for each event.
func (p *proxy) pass(w http.ResponseWriter, r *http.Request, body []byte, prompt int64) (used usage) {
	ask := must(http.NewRequestWithContext(r.Context(), http.MethodPost, p.model+"/v1/chat/completions", bytes.NewReader(body)))
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		http.Error(w, "the model does not answer", http.StatusBadGateway)
		return used
	}
	defer answer.Body.Close()
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(answer.StatusCode)
	if answer.StatusCode == http.StatusOK {
		used.Prompt = prompt
	}
	for lines := bufio.NewReader(answer.Body); err == nil; {
		var line []byte
		line, err = lines.ReadBytes('\n')
		used.read(line)
		_, _ = w.Write(line) // whether the client has left, the context says
		_ = http.NewResponseController(w).Flush()
	}
	return used
}

// read counts a line of an answer.
func (u *usage) read(line []byte) {
	var event struct{ Usage *usage }
	data, isEvent := bytes.CutPrefix(line, []byte("data: "))
	if err := json.Unmarshal(data, &event); err == nil && event.Usage != nil {
		*u = *event.Usage
	} else if err == nil && isEvent {
		u.Answer++
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "tokens:", err)
		os.Exit(1)
	}
	return value
}

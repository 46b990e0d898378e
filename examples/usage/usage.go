// Command usage is the backend of a page that shows customers how much of their limit they have used, and nothing of
// other customers.
//
// It stands beside a daemon that asks callers who they are:
//
//	weir token new portal read:api >> tokens        # prints the token: WEIR_TOKEN below
//	weir serve --rule 'api=quota 1000/month' --tokens tokens
//	WEIR_TOKEN=weir_… go run github.com/weirflow/weir/examples/usage
//
// and then http://127.0.0.1:8090/?login=alice shows the page. Your login goes in the place of customerOf.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"
)

// rule is that of the daemon whose use the page shows.
const rule = "api"

//go:embed usage.html
var page string

var pageTemplate = template.Must(template.New("page").Parse(page))

func main() {
	fmt.Fprintln(os.Stderr, "usage:", serve())
	os.Exit(1)
}

// serve serves until it fails.
func serve() error {
	daemon, token, address := value("WEIR_URL", "http://127.0.0.1:8080"), os.Getenv("WEIR_TOKEN"), value("USAGE_ADDRESS", "127.0.0.1:8090")
	to, err := url.Parse(daemon)
	if err != nil || token == "" {
		return fmt.Errorf("set WEIR_TOKEN to a token with the scope read:%s, and WEIR_URL to the daemon, not %q", rule, daemon)
	}
	on, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("usage listens on http://%s\n", on.Addr())
	server := &http.Server{Handler: newBackend(to, token), ReadHeaderTimeout: 5 * time.Second}
	return server.Serve(on)
}

func value(name, otherwise string) string {
	if text := os.Getenv(name); text != "" {
		return text
	}
	return otherwise
}

// backend serves the page and tokens for it, and passes its questions to the daemon.
type backend struct {
	daemon *url.URL
	token  string // the backend's: it never leaves it
	client http.Client
}

func newBackend(daemon *url.URL, token string) http.Handler {
	b := &backend{daemon: daemon, token: token, client: http.Client{Timeout: 5 * time.Second}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", b.page)
	mux.HandleFunc("POST /token", b.keyToken)
	mux.Handle("POST /v1/peek", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(daemon) }})
	return http.NewCrossOriginProtection().Handler(mux)
}

// customerOf returns who is logged in, or "". Put your session in its place: this one believes everybody.
func customerOf(w http.ResponseWriter, r *http.Request) string {
	if name := r.URL.Query().Get("login"); name != "" {
		http.SetCookie(w, &http.Cookie{Name: "customer", Value: url.QueryEscape(name), HttpOnly: true, SameSite: http.SameSiteLaxMode})
		return name
	}
	cookie, err := r.Cookie("customer")
	if err != nil {
		return ""
	}
	name, _ := url.QueryUnescape(cookie.Value)
	return name
}

func (b *backend) page(w http.ResponseWriter, r *http.Request) {
	customer := customerOf(w, r)
	if customer == "" {
		http.Error(w, "log in first, with ?login=NAME", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err := pageTemplate.Execute(w, map[string]string{"Rule": rule, "Customer": customer}); err != nil {
		fmt.Fprintln(os.Stderr, "usage:", err)
	}
}

// keyToken answers with a token for the key of the logged-in user, whatever the page asks for.
func (b *backend) keyToken(w http.ResponseWriter, r *http.Request) {
	customer := customerOf(w, r)
	if customer == "" {
		http.Error(w, "log in first", http.StatusUnauthorized)
		return
	}
	answer, err := b.ask(r, customer)
	if err != nil {
		fmt.Fprintln(os.Stderr, "usage:", err)
		http.Error(w, "the daemon gives no token", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(answer)
}

// ask asks the daemon for a token.
func (b *backend) ask(r *http.Request, customer string) ([]byte, error) {
	body, err := json.Marshal(map[string]any{"rule": rule, "key": customer, "lasts": 600})
	if err != nil {
		return nil, err
	}
	asked, err := http.NewRequestWithContext(r.Context(), http.MethodPost, b.daemon.JoinPath("/v1/token").String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	asked.Header.Set("Authorization", "Bearer "+b.token)
	asked.Header.Set("Content-Type", "application/json")
	answer, err := b.client.Do(asked)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New("the daemon answered " + answer.Status + ": " + string(text))
	}
	return text, err
}

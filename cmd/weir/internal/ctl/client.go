package ctl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	strictjson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/serve"
)

// Client asks the admin port of a daemon.
type Client struct {
	Address   string // of --admin; empty for the socket of this user's only daemon
	Instead   string // the hint for a user without a daemon; empty for that of --admin
	TokenFile string
	CA        string // file of the authorities that it trusts; empty for those of the system
	Cert, Key string // files of the certificate that it shows
}

// AddFlags adds the flags that say which daemon to ask.
func (c *Client) AddFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&c.Address, "admin", "", "ask the daemon whose admin port is at `ADDR`: unix:PATH, HOST:PORT or a URL (default the socket of this user's daemon)")
	flags.StringVar(&c.TokenFile, "token-file", "", "show the bearer token in `FILE`")
	flags.StringVar(&c.CA, "ca", "", "trust only a daemon whose certificate is signed by one in `FILE`")
	flags.StringVar(&c.Cert, "cert", "", "show the certificate in `FILE`")
	flags.StringVar(&c.Key, "key", "", "the key of --cert is in `FILE`")
	cli.Offer(cmd, "admin", "unix:weir.sock")
}

// The bounds of a call.
const (
	callTimeout = 10 * time.Second
	maxAnswer   = 64 << 20
)

// Call makes a request, with a body unless that is nil, and reads the answer. An answer that lacks one of the fields is an error:
// another server has given it.
func (c *Client) Call(ctx context.Context, method, path string, body, into any, fields ...string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return read(response, into, fields)
}

// send makes a request. It follows no redirect, since a change is for the daemon that it names.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	client, base, err := c.reach()
	if err != nil {
		return nil, err
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r, err := http.NewRequestWithContext(ctx, method, base+path, nil)
	if err != nil {
		return nil, err
	}
	if body != nil {
		content, err := strictjson.Marshal(body)
		if err != nil {
			return nil, unspeakable(err)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set(auth.RequestHeader, "ctl")
	if c.TokenFile != "" {
		token, err := cli.ReadFile(c.TokenFile, maxToken)
		if err != nil {
			return nil, cli.Fail(fmt.Errorf("--token-file: %w", err), "the file has the token and nothing else")
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, unanswered(err)
	}
	return response, nil
}

// unspeakable describes a request that JSON cannot hold, because an argument is not UTF-8. A replacement would name another key.
func unspeakable(err error) error {
	what := "request"
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		what = e.JSONPointer.LastToken()
	}
	return cli.Misusef("the admin port reads only UTF-8, and bytes in place of others would name something else", "the %s is not UTF-8", cli.Printable(what))
}

// maxToken bounds the file of a token, in bytes.
const maxToken = 4096

// read reads an answer, or the problem that it describes.
func read(response *http.Response, into any, fields []string) error {
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return cli.Fail(fmt.Errorf("the answer of the daemon broke off: %w", err), "ask again")
	}
	if response.StatusCode != http.StatusOK {
		return refusal(response, content)
	}
	var has map[string]json.RawMessage
	if err := json.Unmarshal(content, &has); err != nil || has == nil {
		return stranger(response, "without a JSON object")
	}
	for _, field := range fields {
		if _, ok := has[field]; !ok {
			return stranger(response, fmt.Sprintf("without the field %q", field))
		}
	}
	if err := json.Unmarshal(content, into); err != nil {
		return cli.Fail(fmt.Errorf("the answer of the daemon: %w", err), "is the daemon of another version?")
	}
	return nil
}

// refusal returns the error of an answer that is not 200.
func refusal(response *http.Response, content []byte) error {
	var problem struct{ Detail string }
	switch status := response.StatusCode; {
	case status >= 300 && status < 400:
		return cli.Fail(fmt.Errorf("the server answers %s, a redirect to %s, and ctl follows none", cli.Printable(response.Status), cli.Printable(response.Header.Get("Location"))),
			"name the admin port itself: --admin ADDR; weir serve prints it")
	case json.Unmarshal(content, &problem) != nil || problem.Detail == "":
		return stranger(response, "without a reason")
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return cli.Fail(errors.New("the daemon refuses: "+problem.Detail), "use the admin socket of the daemon, or --token-file with a token that has the scope admin")
	}
	return cli.Fail(errors.New("the daemon refuses: "+problem.Detail), "weir ctl --help shows the commands")
}

// stranger returns the error of an answer that no daemon gives to the request.
func stranger(response *http.Response, lacks string) error {
	return cli.Fail(fmt.Errorf("the server answers %s %s: it is not the admin port of a weir daemon, or one of another version", cli.Printable(response.Status), lacks),
		"weir serve prints the address of its admin port; --admin names it")
}

// reach returns an HTTP client of the daemon, and the beginning of its URLs.
func (c *Client) reach() (*http.Client, string, error) {
	address := c.Address
	if address == "" {
		path, err := serve.AdminSocket()
		if err != nil {
			return nil, "", cli.Fail(err, cmp.Or(c.Instead, "weir serve prints the address of its admin port; --admin names it"))
		}
		address = "unix:" + path
	}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if c.encrypts() {
			return nil, "", cli.Misusef("leave the certificates out, or name a port: --admin https://HOST:PORT", "--admin %s with --ca, --cert or --key: a socket is not encrypted", cli.Printable(address))
		}
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}, "http://localhost", nil
	}
	return c.reachTCP(address)
}

// unwrapURL returns the cause of an error of net/http without the URL, which nobody has typed.
func unwrapURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// ask makes a request and prints the answer: as JSON, or as text.
// The answer needs the fields.
func (c *control) ask(cmd *cobra.Command, method, path string, body any, text func(answer) string, fields ...string) error {
	if c.form != "text" && c.form != "json" {
		return cli.Misusef("formats: text, json", "--format: %q is not a format", c.form)
	}
	var a answer
	if err := c.client.Call(cmd.Context(), method, path, body, &a.all, fields...); err != nil {
		return err
	}
	out := string(a.all) + "\n"
	if c.form == "text" {
		if err := json.Unmarshal(a.all, &a); err != nil {
			return cli.Fail(fmt.Errorf("ctl: the answer of the daemon: %w", err), "is the daemon of another version?")
		}
		out = text(a)
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), out)
	return cli.Unwritable("ctl", err)
}

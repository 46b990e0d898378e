package httplimit

import (
	"net/http"

	"github.com/weirflow/weir/front"
)

// Transport is an http.RoundTripper that keeps a program inside the limits of the servers that it asks. Use it as the
// Transport of an http.Client:
//
//	transport, err := httplimit.NewTransport(httplimit.TransportOptions{})
//	if err != nil { … }
//	client := &http.Client{Transport: transport}
//
// It learns the limits of each host from Retry-After and from the RateLimit header fields in all their forms, and
// holds requests back before a server would refuse them. Requests to a new host go one at a time until the first
// answer. It keeps limits of the program's own as well: see [TransportOptions].
//
// A request waits in RoundTrip, in order of arrival for its key, until all limits admit it at one instant. If its
// context ends, or would end before, RoundTrip returns an error and sends nothing. The Timeout of an http.Client
// includes the wait.
//
// Make a Transport once and share it, because it remembers what servers have said. It is safe for concurrent use.
type Transport struct {
	base http.RoundTripper
	*keeper
}

var _ http.RoundTripper = (*Transport)(nil)

// NewTransport returns a Transport. Its errors are joined *weir.OptionError, *weir.LimitError and *weir.SyntaxError
// values.
func NewTransport(options TransportOptions) (*Transport, error) {
	k, err := newKeeper(options)
	if err != nil {
		return nil, err
	}
	return &Transport{base: k.Base, keeper: k}, nil
}

// Over returns a Transport with another base that shares all limits and counters with t, for a client with other
// certificates or another proxy. A nil base is http.DefaultTransport.
func (t *Transport) Over(base http.RoundTripper) *Transport {
	if base == nil {
		base = http.DefaultTransport
	}
	return &Transport{base: base, keeper: t.keeper}
}

// RoundTrip sends a request when the limits admit it. It repeats a request that the server refuses with 429, 529 or 503,
// or as TransportOptions.Refused says, up to TransportOptions.Retries times. The answer that it returns may be such a
// refusal: when no retry is left, when the body of the request cannot be sent again, or when the server asks for a longer
// pause than the caller accepts.
//
// An error before the request was sent, because a wait is too long, is a *weir.WaitError with the time that is needed.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL == nil {
		return t.base.RoundTrip(r)
	}
	key := front.BoundedKey(t.Key(r))
	if key == "" {
		return t.base.RoundTrip(r)
	}
	g, err := t.gates.enter(key)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	defer t.gates.leave(g)
	t.counters.requests.Add(1)
	c := exchange{keeper: t.keeper, base: t.base, gate: g, request: r}
	return c.do()
}

// CloseIdleConnections closes the idle connections of the base, if it can.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

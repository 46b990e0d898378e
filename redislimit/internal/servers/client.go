// Package servers reaches Redis: connections that may come later or end, the script, INFO, and channels of messages.
package servers

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// Client is the Redis of an engine: a rueidis client, or another one behind a Sender.
type Client struct {
	sender  sender // nil with rueidis
	script  wire.Sendable
	rueidis atomic.Pointer[rueidis.Client] // nil until it is connected
	conns   *connections                   // those of a client that openClient made; close closes it
	late    bool                           // it was not connected at first
	closed  atomic.Bool

	mu     sync.Mutex // held while connecting
	Dial   func() (rueidis.Client, error)
	tried  time.Time // when the last attempt ended
	failed error     // the error of that attempt
}

// sender is a redislimit.Sender.
type sender interface {
	Send(ctx context.Context, command ...string) (reply string, err error)
}

// Using returns the Redis of a client whose owner closes it.
func Using(c rueidis.Client) *Client {
	made := &Client{script: wire.Script()}
	made.rueidis.Store(&c)
	return made
}

// Through returns the Redis of another kind of client.
func Through(s sender) *Client { return &Client{sender: s, script: wire.Script()} }

// Open returns the Redis of a new client. If no server answers, that is an error, unless it may connect later.
func Open(option rueidis.ClientOption, later bool) (*Client, error) {
	c := &Client{script: wire.Script(), conns: &connections{}}
	option.DialCtxFn = c.conns.dial
	c.Dial = func() (rueidis.Client, error) { return Connect(option) }
	connected, err := c.Dial()
	switch {
	case err == nil:
		c.rueidis.Store(&connected)
	case later && fault.Of(err).Reason == fault.Lost:
		c.late = true
	default:
		return nil, err
	}
	return c, nil
}

// Known returns the rueidis client, or nil if there is none yet.
func (c *Client) Known() rueidis.Client {
	if known := c.rueidis.Load(); known != nil {
		return *known
	}
	return nil
}

// Cluster reports whether the client knows that its servers are a cluster.
func (c *Client) Cluster() bool {
	known := c.Known()
	return known != nil && known.Mode() == rueidis.ClientModeCluster
}

// connected returns the rueidis client. If it is not connected yet, it tries to connect, at most once every redialEvery.
func (c *Client) connected() (rueidis.Client, error) {
	if known := c.Known(); known != nil {
		return known, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch known := c.Known(); {
	case known != nil:
		return known, nil
	case c.closed.Load():
		return nil, fault.ErrClosed
	case c.failed != nil && time.Since(c.tried) < RedialEvery:
		return nil, c.failed
	}
	made, err := c.Dial()
	c.tried, c.failed = time.Now(), err
	if err != nil {
		return nil, err
	}
	c.rueidis.Store(&made)
	return made, nil
}

// Close ends later calls. It closes the client that openClient made.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed.Store(true)
	if known := c.Known(); known != nil && c.conns != nil {
		known.Close()
	}
}

// Call calls the script. If the server is a replica, it closes the connections from before the call.
func (c *Client) Call(ctx context.Context, keys, args []string) (string, error) {
	began := time.Now()
	text, err := c.send(ctx, keys, args)
	switch {
	case err == nil:
		return text, nil
	case errors.Is(err, rueidis.ErrClosing): // also of one connection, after a failover
		reason := fault.Lost
		if c.closed.Load() {
			reason = fault.Closed
		}
		return "", &fault.Error{Reason: reason, Err: err}
	case c.conns != nil && readOnly(err):
		c.conns.closeOlder(began)
	}
	return "", err
}

// send calls the script by its hash, and by its text if the server does not know it.
func (c *Client) send(ctx context.Context, keys, args []string) (string, error) {
	reply, err := c.eval(ctx, "EVALSHA", c.script.Hash, keys, args)
	if err != nil && fault.RefusedFor(err, "NOSCRIPT") {
		reply, err = c.eval(ctx, "EVAL", c.script.Source, keys, args)
	}
	return reply, err
}

// eval calls a script by a command.
func (c *Client) eval(ctx context.Context, command, script string, keys, args []string) (string, error) {
	number := strconv.Itoa(len(keys))
	if c.sender != nil {
		words := append(make([]string, 0, 3+len(keys)+len(args)), command, script, number)
		return c.sender.Send(ctx, append(append(words, keys...), args...)...)
	}
	known, err := c.connected()
	if err != nil {
		return "", err
	}
	if c.late && c.Cluster() && crosses(keys) {
		return "", crossed{}
	}
	return known.Do(ctx, known.B().Arbitrary(command, script, number).Keys(keys...).Args(args...).Build()).ToString()
}

// crosses reports whether keys are in several slots of a cluster. Before a client that connects later knew that its
// servers are a cluster, calls spanned all lanes.
func crosses(keys []string) bool {
	for _, key := range keys {
		if tag, _, _ := strings.Cut(key, "}"); !strings.HasPrefix(keys[0], tag+"}") {
			return true
		}
	}
	return false
}

// crossed is the refusal of such a call.
type crossed struct{}

func (crossed) Error() string { return "CROSSSLOT: not sent to a cluster" }
func (crossed) RedisError()   {}

// Eval calls a script that runs once.
func (c *Client) Eval(ctx context.Context, text string, keys []string, args ...string) (string, error) {
	return c.eval(ctx, "EVAL", text, keys, args)
}

// Nodes returns the nodes that the client knows, by address. For a client other than rueidis it returns the node that
// answers.
func (c *Client) Nodes() (map[string]Info, error) {
	if c.sender != nil {
		return map[string]Info{"of the client": func(ctx context.Context, section string) (map[string]string, error) {
			text, err := c.sender.Send(ctx, "INFO", section)
			return infoFields(text), err
		}}, nil
	}
	known, err := c.connected()
	if err != nil {
		return nil, err
	}
	nodes := map[string]Info{}
	for addr, node := range known.Nodes() {
		nodes[addr] = func(ctx context.Context, section string) (map[string]string, error) {
			text, err := node.Do(ctx, node.B().Info().Section(section).Build()).ToString()
			return infoFields(text), err
		}
	}
	return nodes, nil
}

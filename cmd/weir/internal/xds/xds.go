// Package xds receives resources of one type from a control plane: state of the world, over an aggregated stream.
//
// [Client.Run] keeps a stream open. Each answer goes to [Options.Push], which says what is wrong with it. An answer without
// a fault is acknowledged at once. One with a fault is refused, and refusals are spaced by the [Backoff], because control
// planes answer a refusal at once with the same resources. Bytes that are equal to those of the last answer are not pushed
// again. A stream that ends is opened again; nothing is pushed meanwhile.
package xds

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/anypb"
)

// Options configure a Client.
type Options struct {
	Server  string // HOST:PORT, or another target of gRPC
	Node    *core.Node
	Headers map[string]string // of the stream
	// TLS returns the configuration of a new connection, so that changed files count. Default: no encryption.
	TLS        func() (*tls.Config, error)
	MaxMessage int           // bytes of an answer. Default: that of gRPC, 4 MiB
	Retry      time.Duration // between attempts to connect, with up to half of it more or less
	Backoff    Backoff       // after streams that have ended, and between refusals
	Type       string        // of the resources
	// Push takes all resources of an answer. It returns what is wrong with them, or "".
	Push func(version string, resources []*anypb.Any) (wrong string)
	Log  *slog.Logger
}

// Status is how the stream is.
type Status struct {
	Server    string    `json:"server"`
	Node      string    `json:"node"`
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since"`         // of the connection, or of its end
	Why       string    `json:"why,omitempty"` // it is not connected
	Accepted  uint64    `json:"accepted"`      // answers
	Refused   uint64    `json:"refused"`       // answers
}

// Client receives resources. Status is safe for concurrent use.
type Client struct {
	Options
	last     [sha256.Size]byte // of the resources of the last answer
	wrong    string            // with them
	known    bool              // there was one
	accepted string            // the version of the last answer without a fault
	nacks    attempts          // between refusals
	nackAt   time.Time         // when the next one may be sent
	reported string            // the failure of the log's last line
	at       time.Time         // of that line
	patience time.Duration     // for the first answer, before a line says that there is none

	mu     sync.Mutex
	status Status
}

// New returns a Client.
func New(o Options) *Client {
	return &Client{Options: o, nacks: attempts{Backoff: o.Backoff}, patience: patience, status: Status{Server: o.Server, Node: o.Node.GetId(), Since: time.Now(), Why: "it has not connected yet"}}
}

// Status returns how the stream is.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

func (c *Client) change(change func(*Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.status)
}

// Run keeps a stream open until the context ends.
func (c *Client) Run(ctx context.Context) {
	streams := attempts{Backoff: c.Backoff}
	for {
		opened, answered, err := c.stream(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := jittered(c.Retry)
		if answered {
			streams.made = 0
		}
		if opened {
			wait = streams.next()
		}
		c.gone(err, wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// quietLog is the time between two lines about the same failure.
const quietLog = time.Minute

// gone reports that there is no stream.
func (c *Client) gone(err error, wait time.Duration) {
	why := plain(err)
	c.change(func(s *Status) {
		if s.Connected {
			s.Since = time.Now()
		}
		s.Connected, s.Why = false, why
	})
	if why == c.reported && time.Since(c.at) < quietLog {
		return
	}
	c.reported, c.at = why, time.Now()
	c.Log.Warn("the control plane is away, and the rules in force stay", "server", c.Server, "why", why, "again", wait.Round(time.Millisecond))
}

// plain returns the failure of a stream without the words of gRPC.
func plain(err error) string {
	if errors.Is(err, io.EOF) {
		return "it ended the stream"
	}
	return err.Error()
}

// The times of a stream. Servers of gRPC cut clients that ping more often than every five minutes.
const (
	quietBeforePing = 6 * time.Minute
	pingTimeout     = 20 * time.Second
	patience        = 15 * time.Second
)

// dial opens a connection, which is not established yet.
func (c *Client) dial() (*grpc.ClientConn, error) {
	secure := insecure.NewCredentials()
	if c.TLS != nil {
		config, err := c.TLS()
		if err != nil {
			return nil, err
		}
		secure = credentials.NewTLS(config)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: quietBeforePing, Timeout: pingTimeout}),
	}
	if c.MaxMessage > 0 {
		options = append(options, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.MaxMessage)))
	}
	return grpc.NewClient(c.Server, options...)
}

// stream receives answers until the stream ends. It reports whether the server was reached, and whether it has answered.
func (c *Client) stream(ctx context.Context) (opened, answered bool, err error) {
	conn, err := c.dial()
	if err != nil {
		return false, false, err
	}
	defer func() { _ = conn.Close() }()
	ctx, end := context.WithCancel(metadata.NewOutgoingContext(ctx, metadata.New(c.Headers)))
	defer end()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return false, false, err
	}
	if err := stream.Send(&discovery.DiscoveryRequest{Node: c.Node, TypeUrl: c.Type}); err != nil {
		_, err = stream.Recv() // has the reason
		return true, false, cmp.Or(err, io.EOF)
	}
	c.change(func(s *Status) { s.Connected, s.Since, s.Why = true, time.Now(), "" })
	c.reported = ""
	c.Log.Info("connected to the control plane", "server", c.Server, "node", c.Node.GetId())
	answered, err = c.converse(ctx, stream)
	return true, answered, err
}

type stream = grpc.BidiStreamingClient[discovery.DiscoveryRequest, discovery.DiscoveryResponse]

// converse answers each answer of the server. A refusal that has to wait gives way to the reply to a later answer.
func (c *Client) converse(ctx context.Context, on stream) (answered bool, err error) {
	answers, failed := make(chan *discovery.DiscoveryResponse), make(chan error, 1)
	go receive(ctx, on, answers, failed)
	silent := time.NewTimer(c.patience)
	defer silent.Stop()
	var refusal *discovery.DiscoveryRequest
	var due <-chan time.Time
	for {
		say := (*discovery.DiscoveryRequest)(nil)
		select {
		case err := <-failed:
			return answered, err
		case <-silent.C:
			c.Log.Warn("the control plane accepts the stream and says nothing; the rules in force stay", "server", c.Server, "node", c.Node.GetId(), "waited", c.patience)
		case a := <-answers:
			silent.Stop()
			answered = true
			say, refusal, due = c.hear(a), nil, nil
			if wait := time.Until(c.nackAt); say.ErrorDetail != nil && wait > 0 {
				say, refusal, due = nil, say, time.After(wait)
			}
		case <-due:
			say, refusal, due = refusal, nil, nil
		}
		if say == nil {
			continue
		}
		if say.ErrorDetail != nil {
			c.nackAt = time.Now().Add(c.nacks.next())
		}
		if err := on.Send(say); err != nil {
			return answered, cmp.Or(<-failed, err)
		}
	}
}

// receive reads answers until the stream ends.
func receive(ctx context.Context, on stream, answers chan<- *discovery.DiscoveryResponse, failed chan<- error) {
	for {
		a, err := on.Recv()
		if err != nil {
			failed <- err
			return
		}
		select {
		case answers <- a:
		case <-ctx.Done():
			failed <- ctx.Err()
			return
		}
	}
}

// hear pushes the resources of an answer, and returns what to say of it.
func (c *Client) hear(a *discovery.DiscoveryResponse) *discovery.DiscoveryRequest {
	wrong := ""
	if a.GetTypeUrl() != c.Type {
		wrong = fmt.Sprintf("the answer has the type %q, want %q", a.GetTypeUrl(), c.Type)
		c.Log.Error("an answer of the control plane is refused", "server", c.Server, "version", a.GetVersionInfo(), "why", wrong)
	} else {
		wrong = c.push(a)
	}
	say := &discovery.DiscoveryRequest{TypeUrl: c.Type, ResponseNonce: a.GetNonce()}
	if wrong == "" {
		c.accepted, c.nacks.made = a.GetVersionInfo(), 0
		c.change(func(s *Status) { s.Accepted++ })
	} else {
		say.ErrorDetail = &rpc.Status{Code: int32(codes.InvalidArgument), Message: wrong}
		c.change(func(s *Status) { s.Refused++ })
	}
	say.VersionInfo = c.accepted
	return say
}

// push pushes resources, unless they are those of the last answer. It returns what is wrong with them.
func (c *Client) push(a *discovery.DiscoveryResponse) (wrong string) {
	sum := sumOf(a.GetResources())
	if c.known && sum == c.last {
		return c.wrong
	}
	defer func() {
		if failed := recover(); failed != nil {
			c.Log.Error("an answer of the control plane could not be read", "panic", failed, "stack", string(debug.Stack()))
			wrong = "the answer could not be read"
		}
		c.last, c.known, c.wrong = sum, true, wrong
	}()
	return c.Push(a.GetVersionInfo(), a.GetResources())
}

// sumOf tells lists of resources apart.
func sumOf(list []*anypb.Any) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, one := range list {
		add(h, one.GetTypeUrl())
		add(h, string(one.GetValue()))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func add(h hash.Hash, text string) { _, _ = fmt.Fprintf(h, "%d %s ", len(text), text) }

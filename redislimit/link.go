package redislimit

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// link connects an engine that Open returned while Redis did not answer.
type link struct {
	client atomic.Pointer[rueidis.Client]
	open   func() (rueidis.Client, error)

	mu     sync.Mutex // held while connecting
	tried  time.Time  // when the last attempt ended
	failed error      // by which it did
	closed bool
}

// connected returns the client. An engine that is not connected yet tries to connect, at most once every redialEvery.
func (e *Engine) connected() (rueidis.Client, error) {
	if client := e.known(); client != nil {
		return client, nil
	}
	l := e.link
	l.mu.Lock()
	defer l.mu.Unlock()
	switch client := e.known(); {
	case client != nil:
		return client, nil
	case l.closed:
		return nil, errClosed
	case l.failed != nil && time.Since(l.tried) < redialEvery:
		return nil, l.failed
	}
	client, err := l.open()
	l.tried, l.failed = time.Now(), err
	if err != nil {
		return nil, err
	}
	l.client.Store(&client)
	return client, nil
}

// known returns the client, or nil if the engine is not connected.
func (e *Engine) known() rueidis.Client {
	if e.link == nil {
		return e.client
	}
	if client := e.link.client.Load(); client != nil {
		return *client
	}
	return nil
}

// closeClient closes the client that Open made.
func (e *Engine) closeClient() {
	if e.link != nil {
		e.link.mu.Lock()
		defer e.link.mu.Unlock()
		e.link.closed = true
	}
	if client := e.known(); client != nil {
		client.Close()
	}
}

// crosses reports whether keys are in several slots of a cluster. Before an engine with a link knew that its
// servers are a cluster, its calls spanned all lanes.
func (e *Engine) crosses(client rueidis.Client, keys []string) bool {
	if e.link == nil || client.Mode() != rueidis.ClientModeCluster {
		return false
	}
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

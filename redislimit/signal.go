package redislimit

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/servers"
)

// signals tell the engine of slots that came free. The script publishes the key of such slots on the channel of its
// lane. The engine subscribes to the channels of lanes with callers that wait for slots.
type signals struct {
	engine *Engine

	mu       sync.Mutex
	channels map[string]*channel
	plain    bool // the cluster has no SPUBLISH: Redis before 7.0
	closed   bool
}

// channel is one subscription. The engine relies on it once it has heard a message that it published itself: an ACL or a proxy
// may deny either side. The lock of signals guards it.
type channel struct {
	servers.Channel
	signals *signals
	hears   map[string][]*listener // by the name that the script publishes
	heard   bool
	cancel  context.CancelFunc
	idle    *time.Timer
}

// listener is a caller of Listen.
type listener struct {
	signals *signals
	lane    int
	woken   string
	hear    func()
}

const (
	idleChannel   = time.Minute // a channel that no caller has needed for this long is closed
	againChannel  = time.Second // between two subscriptions, if the first one is lost
	deniedChannel = time.Minute // and if it was denied
	probeSignal   = "probe"     // what the engine publishes itself; no key is it
	trySignalFor  = time.Second // how long Warnings waits for the answers
)

// Listen calls hear when slots of a request may have come free, until stop is called: see enginekit.Listener.
func (e *Engine) Listen(slots weir.Request, hear func()) (hears func() bool, stop func()) {
	parts := e.slots(weir.Call{Requests: []weir.Request{slots}, Lease: weir.Kit.NewLease()})
	if len(parts) == 0 || e.client.Known() == nil {
		return func() bool { return false }, func() {}
	}
	l := &listener{signals: &e.signals, lane: parts[0].Lane, woken: parts[0].Woken(), hear: hear}
	l.on(func(c *channel) { c.hears[l.woken] = append(c.hears[l.woken], l) })
	return l.hears, l.stop
}

// on calls do with the channel of the listener, which it opens if needed.
func (l *listener) on(do func(*channel)) {
	s := l.signals
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.engine.channelOf(l.lane, s.engine.client.Cluster() && !s.plain)
	c := s.channels[of.Name]
	if c == nil && !s.closed {
		c = s.open(of)
	}
	if c != nil {
		c.idle.Stop()
		do(c)
	}
}

// hears reports whether signals reach the listener now.
func (l *listener) hears() (heard bool) {
	l.on(func(c *channel) { heard = c.heard })
	return heard
}

func (l *listener) stop() {
	l.on(func(c *channel) {
		rest := c.hears[l.woken][:0:0]
		for _, other := range c.hears[l.woken] {
			if other != l {
				rest = append(rest, other)
			}
		}
		if c.hears[l.woken] = rest; len(rest) == 0 {
			delete(c.hears, l.woken)
		}
		if len(c.hears) == 0 {
			c.idle.Reset(idleChannel)
		}
	})
}

// channelOf returns the channel of a lane.
func (e *Engine) channelOf(lane int, shard bool) servers.Channel {
	return e.client.Channel(e.keys.Heads[lane]+"wake", shard)
}

// open begins a subscription. The caller holds the lock.
func (s *signals) open(of servers.Channel) *channel {
	ctx, cancel := context.WithCancel(context.Background())
	c := &channel{Channel: of, signals: s, hears: map[string][]*listener{}, cancel: cancel}
	c.idle = time.AfterFunc(idleChannel, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(c.hears) == 0 {
			c.end()
		}
	})
	if s.channels == nil {
		s.channels = map[string]*channel{}
	}
	s.channels[c.Name] = c
	go c.listen(ctx)
	return c
}

// end ends the subscription. The caller holds the lock.
func (c *channel) end() {
	if c.signals.channels[c.Name] == c {
		delete(c.signals.channels, c.Name)
	}
	c.heard = false
	c.idle.Stop()
	c.cancel()
}

// close ends all subscriptions, and has all listeners ask, so that they learn that the engine is closed.
func (s *signals) close() {
	s.mu.Lock()
	s.closed = true
	var all []*listener
	for _, c := range s.channels {
		for _, some := range c.hears {
			all = append(all, some...)
		}
		c.end()
	}
	s.mu.Unlock()
	for _, l := range all {
		l.hear()
	}
}

// listen subscribes, again and again, until the channel has ended.
func (c *channel) listen(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		err := c.receive(ctx)
		pause := againChannel - time.Since(began)
		if text, refused := fault.Refusal(err); refused {
			if c.Shard && strings.Contains(text, "unknown command") {
				c.withoutShards()
				return
			}
			if reason := fault.ServerReason(text); reason == fault.Denied || reason == fault.Refused {
				pause = deniedChannel
			}
		}
		c.lose()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// receive hears signals until the subscription ends.
func (c *channel) receive(ctx context.Context) error {
	return c.Subscribe(ctx, func() {
		c.lose() // the client subscribes again on its own after a cut
		// If this message is heard, the channel works.
		go func() { _ = c.Publish(ctx, probeSignal) }()
	}, c.received)
}

// lose notes that the channel hears nothing for now.
func (c *channel) lose() {
	c.signals.mu.Lock()
	defer c.signals.mu.Unlock()
	c.heard = false
}

// withoutShards uses plain channels from now on, also for the listeners that are there.
func (c *channel) withoutShards() {
	s := c.signals
	s.mu.Lock()
	s.plain = true
	c.end()
	s.mu.Unlock()
	for _, some := range c.hears {
		for _, l := range some {
			l.on(func(c *channel) { c.hears[l.woken] = append(c.hears[l.woken], l) })
		}
	}
}

// received passes a signal on. The first message that the channel hears also has its listeners ask: slots may have come free
// before.
func (c *channel) received(message string) {
	s := c.signals
	s.mu.Lock()
	var all []*listener
	if message != probeSignal {
		all = append(all, c.hears[message]...)
	} else if !c.heard {
		c.heard = s.channels[c.Name] == c
		for _, some := range c.hears {
			all = append(all, some...)
		}
	}
	s.mu.Unlock()
	for _, l := range all {
		l.hear()
	}
}

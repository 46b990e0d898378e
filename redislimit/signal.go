package redislimit

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// signals are the channels on which the script signals callers of this process that have their turn. In a cluster there
// is one for each lane in use, otherwise one. The lock of standing guards them.
type signals struct {
	channels map[string]*channel
	plain    bool // the cluster has no SPUBLISH: Redis before 7.0
	closed   bool
}

// channel is one subscription. The engine relies on it once it has heard a message that it published itself: an ACL or a
// proxy may deny either side.
type channel struct {
	engine *Engine
	name   string
	lane   int
	shard  bool
	heard  bool
	cancel context.CancelFunc
	idle   *time.Timer
}

const (
	idleChannel   = time.Minute // a channel that no caller needs for so long is closed
	againChannel  = time.Second // between two subscriptions, if the first one is lost
	deniedChannel = time.Minute // and if it was denied
	signalLength  = 16          // what a caller asks for, and the number of its ticket; then perhaps when to ask
	probeSignal   = "probe"     // what the engine publishes itself
	trySignalFor  = time.Second // how long Warnings waits for the answers
)

// hears returns how the callers of the stand hear signals now, and subscribes if they may need it.
func (s *stand) hears() hearing {
	e := s.engine
	all := &e.standing.signals
	if e.known() == nil || all.closed {
		return deaf
	}
	shard := e.known().Mode() == rueidis.ClientModeCluster && !all.plain
	name := e.channelName(s.slots.lane, shard)
	c := all.channels[name]
	if c == nil {
		c = all.open(s, name, shard)
	}
	c.idle.Reset(idleChannel)
	switch {
	case !c.heard:
		return deaf
	case shard:
		return byShard
	}
	return byPublish
}

// channelName returns the channel of this process for a lane.
func (e *Engine) channelName(lane int, shard bool) string {
	if shard {
		return e.keys.heads[lane] + "wake:" + e.standing.process
	}
	return e.options.Prefix + ":wake:" + e.standing.process
}

// open begins a subscription.
func (all *signals) open(s *stand, name string, shard bool) *channel {
	ctx, cancel := context.WithCancel(context.Background())
	e := s.engine
	c := &channel{engine: e, name: name, lane: s.slots.lane, shard: shard, cancel: cancel}
	c.idle = time.AfterFunc(idleChannel, func() {
		e.standing.mu.Lock()
		defer e.standing.mu.Unlock()
		c.end()
	})
	if all.channels == nil {
		all.channels = map[string]*channel{}
	}
	all.channels[name] = c
	go c.listen(ctx)
	return c
}

// end ends the subscription. The caller holds the lock.
func (c *channel) end() {
	if all := &c.engine.standing.signals; all.channels[c.name] == c {
		delete(all.channels, c.name)
	}
	c.heard = false
	c.idle.Stop()
	c.cancel()
}

// work reports whether some channel works.
func (all *signals) work() bool {
	for _, c := range all.channels {
		if c.heard {
			return true
		}
	}
	return false
}

func (all *signals) close() {
	all.closed = true
	for _, c := range all.channels {
		c.end()
	}
}

// listen subscribes, again and again, until the channel has ended.
func (c *channel) listen(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		err := c.receive(ctx)
		pause := againChannel - time.Since(began)
		if text, refused := refusal(err); refused {
			if c.shard && strings.Contains(text, "unknown command") {
				c.withoutShards()
				return
			}
			if reason := serverReason(text); reason == Denied || reason == Refused {
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
	return c.engine.subscribe(ctx, c.name, c.shard, func() {
		c.lose() // the client subscribes again by itself after a cut
		// If this message is heard, the channel works.
		go func() { _ = c.engine.publish(ctx, c.name, c.shard) }()
	}, c.hear)
}

// subscribe hears the messages of a channel until ctx ends.
func (e *Engine) subscribe(ctx context.Context, name string, shard bool, subscribed func(), hear func(message string)) error {
	subscribe := e.known().B().Subscribe().Channel(name).Build()
	if shard {
		subscribe = e.known().B().Ssubscribe().Channel(name).Build()
	}
	confirmed := func(s rueidis.PubSubSubscription) {
		if strings.HasSuffix(s.Kind, "subscribe") && !strings.Contains(s.Kind, "un") {
			subscribed()
		}
	}
	return e.known().Receive(rueidis.WithOnSubscriptionHook(ctx, confirmed), subscribe, func(m rueidis.PubSubMessage) { hear(m.Message) })
}

// publish sends a probe to a channel.
func (e *Engine) publish(ctx context.Context, name string, shard bool) error {
	publish := e.known().B().Publish().Channel(name).Message(probeSignal).Build()
	if shard {
		publish = e.known().B().Spublish().Channel(name).Message(probeSignal).Build()
	}
	return e.known().Do(ctx, publish).Error()
}

// signalWarning returns a warning if the server denies the user signals to waiting callers.
func (e *Engine) signalWarning(ctx context.Context) string {
	if e.known() == nil {
		return ""
	}
	denied := e.trySignal(ctx, e.known().Mode() == rueidis.ClientModeCluster)
	if strings.Contains(denied, "unknown command") { // Redis before 7.0 has no SPUBLISH
		denied = e.trySignal(ctx, false)
	}
	if denied == "" {
		return ""
	}
	return fmt.Sprintf("redis denies signals to callers that wait for slots (%s): they ask again after up to a second instead; docs/redis.md lists the rights", denied)
}

// trySignal returns the server's refusal of a subscription, or of a message to it.
func (e *Engine) trySignal(ctx context.Context, shard bool) (denied string) {
	ctx, cancel := context.WithTimeout(ctx, trySignalFor)
	defer cancel()
	name, published := e.channelName(0, shard)+":probe", make(chan error, 1)
	subscribed := sync.OnceFunc(func() {
		go func() {
			published <- e.publish(ctx, name, shard)
			cancel()
		}()
	})
	if text, refused := refusal(e.subscribe(ctx, name, shard, subscribed, func(string) {})); refused {
		return text
	}
	_ = e.known().Do(context.WithoutCancel(ctx), e.unsubscribe(name, shard)).Error()
	select {
	case err := <-published:
		denied, _ = refusal(err)
	default: // neither was answered in time
	}
	return denied
}

// unsubscribe returns the end of a subscription, which a client keeps after subscribe.
func (e *Engine) unsubscribe(name string, shard bool) rueidis.Completed {
	if shard {
		return e.known().B().Sunsubscribe().Channel(name).Build()
	}
	return e.known().B().Unsubscribe().Channel(name).Build()
}

// lose notes that the channel hears nothing for now. The first caller of each stand asks, because it may have missed a
// signal.
func (c *channel) lose() {
	c.engine.standing.mu.Lock()
	defer c.engine.standing.mu.Unlock()
	if c.heard {
		c.heard = false
		c.callFirst()
	}
}

// callFirst calls the first caller of each stand. The caller holds the lock.
func (c *channel) callFirst() {
	for _, s := range c.engine.standing.stands {
		if !c.shard || s.slots.lane == c.lane {
			s.first().call()
		}
	}
}

// withoutShards uses plain channels from now on.
func (c *channel) withoutShards() {
	c.engine.standing.mu.Lock()
	defer c.engine.standing.mu.Unlock()
	c.engine.standing.signals.plain = true
	c.end()
}

// hear calls the caller that a signal names, now or at the instant at which its rates admit it. After the first message
// of a subscription, the first caller of each stand asks again, because it may have missed one before.
func (c *channel) hear(message string) {
	all := &c.engine.standing
	all.mu.Lock()
	defer all.mu.Unlock()
	if message == probeSignal {
		if !c.heard {
			c.heard = true
			c.callFirst()
		}
		return
	}
	if len(message) != signalLength && len(message) != signalLength+8 {
		return
	}
	switch t := all.signalled(message[:8], doubleAt(message, 8)); {
	case t == nil:
	case len(message) == signalLength:
		t.call()
	default:
		t.callAfter(time.Duration(doubleAt(message, signalLength)) * time.Microsecond)
	}
}

func doubleAt(message string, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64([]byte(message[i:])))
}

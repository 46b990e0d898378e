package redislimit

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
)

// channel is one subscription of a process. In a cluster a process has one for each lane that it uses, otherwise one. The
// engine relies on it once it has heard a message that it published itself: an ACL or a proxy may deny either side. The
// lock of lines guards it.
type channel struct {
	lines  *lines
	name   string
	shard  bool
	heard  bool
	cancel context.CancelFunc
	idle   *time.Timer
}

const (
	idleChannel   = time.Minute // a channel that no caller needs for so long is closed
	againChannel  = time.Second // between two subscriptions, if the first one is lost
	deniedChannel = time.Minute // and if it was denied
	signalLength  = 24          // a token, the units that are free, and the least age of their callers
	probeSignal   = "probe"     // what the engine publishes itself
	trySignalFor  = time.Second // how long Warnings waits for the answers
)

// Hears reports whether signals reach the process.
func (l *lines) Hears() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.channels {
		if !c.heard {
			return false
		}
	}
	return len(l.channels) > 0
}

// hears returns how the process hears signals of a lane now, and subscribes if it may need them.
func (l *lines) hears(lane int) hearing {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.engine
	if e.known() == nil || l.closed {
		return deaf
	}
	shard := e.known().Mode() == rueidis.ClientModeCluster && !l.plain
	name := e.channelName(lane, shard, l.name)
	c := l.channels[name]
	if c == nil {
		c = l.open(name, shard)
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

// channelName returns the channel of a process for a lane.
func (e *Engine) channelName(lane int, shard bool, process string) string {
	if shard {
		return e.keys.heads[lane] + "wake:" + process
	}
	return e.options.Prefix + ":wake:" + process
}

// open begins a subscription. The caller holds the lock.
func (l *lines) open(name string, shard bool) *channel {
	ctx, cancel := context.WithCancel(context.Background())
	c := &channel{lines: l, name: name, shard: shard, cancel: cancel}
	c.idle = time.AfterFunc(idleChannel, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.end()
	})
	l.channels[name] = c
	go c.listen(ctx)
	return c
}

// end ends the subscription. The caller holds the lock.
func (c *channel) end() {
	if c.lines.channels[c.name] == c {
		delete(c.lines.channels, c.name)
	}
	c.heard = false
	c.idle.Stop()
	c.cancel()
}

func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, c := range l.channels {
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
	e := c.lines.engine
	return e.subscribe(ctx, c.name, c.shard, func() {
		c.lose() // the client subscribes again by itself after a cut
		// If this message is heard, the channel works.
		go func() { _ = e.publish(ctx, c.name, c.shard) }()
	}, c.received)
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
	return fmt.Sprintf("redis denies signals to callers that wait for slots (%s): they ask again every 50 ms instead; docs/redis.md lists the rights", denied)
}

// trySignal returns the server's refusal of a subscription, or of a message to it.
func (e *Engine) trySignal(ctx context.Context, shard bool) (denied string) {
	ctx, cancel := context.WithTimeout(ctx, trySignalFor)
	defer cancel()
	name, published := e.channelName(0, shard, "probe-"+rand.Text()[:8]), make(chan error, 1)
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

// lose notes that the channel hears nothing for now.
func (c *channel) lose() {
	c.lines.mu.Lock()
	defer c.lines.mu.Unlock()
	c.heard = false
}

// withoutShards uses plain channels from now on.
func (c *channel) withoutShards() {
	c.lines.mu.Lock()
	defer c.lines.mu.Unlock()
	c.lines.plain = true
	c.end()
}

// received passes a signal on to the process.
func (c *channel) received(message string) {
	if message == probeSignal {
		c.lines.mu.Lock()
		c.heard = c.lines.channels[c.name] == c
		c.lines.mu.Unlock()
		return
	}
	if len(message) == signalLength {
		c.lines.hear(weir.LineSignal{
			Token:  binary.LittleEndian.Uint64([]byte(message)),
			Units:  units(doubleAt(message, 8)),
			MinAge: wait(doubleAt(message, 16)),
		})
	}
}

func doubleAt(message string, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64([]byte(message[i:])))
}
